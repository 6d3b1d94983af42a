// SPDX-License-Identifier: Apache-2.0
//
// Execution of tasks that need others.
//
// A task needs only tasks that were added before it. So after a failure only those added before the
// failed one still start, and the failure that is reported is the one that a single thread would
// have met. A thread without a task that is ready waits until a running one has ended. Between
// tasks nothing asks for memory, so nothing but a task can fail.
#include "base/task_graph.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace gpuwhy {

class TaskGraph::Run {
 public:
  explicit Run(const TaskGraph& graph)
      : nodes_(graph.nodes_), failed_(nodes_.size()), num_missing_(nodes_.size()) {
    if (graph.timer_ != nullptr) {
      timers_.assign(nodes_.size(), graph.timer_->beside());
    }
    ready_.reserve(nodes_.size());
    for (std::size_t place = 0; place < nodes_.size(); ++place) {
      num_missing_[place] = nodes_[place].num_needs;
      if (num_missing_[place] == 0) {
        ready_.push_back(place);  // in order, which is a heap
      }
    }
  }

  // What each thread does until no task is left.
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return has_ready() || num_running_ == 0; });
      if (!has_ready()) {
        return;
      }
      std::ranges::pop_heap(ready_, std::greater());
      const std::size_t place = ready_.back();
      ready_.pop_back();
      ++num_running_;
      lock.unlock();
      std::exception_ptr failure = attempt(place);
      lock.lock();
      --num_running_;
      end(place, std::move(failure));
      changed_.notify_all();
    }
  }

  // After all threads have ended.
  void finish(PassTimer* timer) const {
    if (failure_) {
      std::rethrow_exception(failure_);
    }
    for (const PassTimer& of_task : timers_) {
      timer->append(of_task);
    }
  }

 private:
  bool has_ready() const { return !ready_.empty() && ready_.front() < failed_; }

  std::exception_ptr attempt(std::size_t place) {
    try {
      const Node& node = nodes_[place];
      const PassTimer::Scope pass(timers_.empty() ? nullptr : &timers_[place], node.name);
      node.work();
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  void end(std::size_t place, std::exception_ptr failure) {
    if (failure) {
      if (place < failed_) {
        failed_ = place;
        failure_ = std::move(failure);
      }
      return;
    }
    for (const std::size_t next : nodes_[place].needed_by) {
      if (--num_missing_[next] == 0) {
        ready_.push_back(next);
        std::ranges::push_heap(ready_, std::greater());
      }
    }
  }

  const std::vector<Node>& nodes_;
  std::vector<PassTimer> timers_;  // by task; empty: nobody asks
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::size_t> ready_;  // a heap, the first in the order of adding on top
  std::size_t num_running_ = 0;
  std::size_t failed_;  // the first task that failed
  std::exception_ptr failure_;
  std::vector<std::size_t> num_missing_;  // by task: those it waits for
};

TaskGraph::Task TaskGraph::add(const char* name, std::initializer_list<Task> after,
                               std::function<void()> work) {
  const std::size_t place = nodes_.size();
  for (const Task& needed : after) {
    nodes_[needed.place].needed_by.push_back(place);
  }
  nodes_.push_back({name, after.size(), {}, std::move(work)});
  return {place};
}

void TaskGraph::run(unsigned num_threads) const {
  Run run(*this);
  {
    std::vector<std::jthread> threads;  // each is joined at the end of this block
    const std::size_t wanted = std::min<std::size_t>(num_threads, nodes_.size());
    try {
      threads.reserve(wanted);
      while (threads.size() + 1 < wanted) {
        threads.emplace_back([&run] { run.work(); });
      }
    } catch (const std::exception&) {
      // No more threads, or no memory for one: the existing ones do all the work.
    }
    run.work();
  }
  run.finish(timer_);
}

void run_tasks(const std::vector<std::function<void()>>& tasks, unsigned num_threads) {
  TaskGraph graph;
  for (const std::function<void()>& task : tasks) {
    graph.add("", {}, std::cref(task));
  }
  graph.run(num_threads);
}

}  // namespace gpuwhy

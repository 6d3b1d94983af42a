// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace gpuwhy {

// Durations of the program's own passes: a tree, in the order they started. For --self-profile.
class PassTimer {
 public:
  struct Pass {
    std::string name;
    int depth = 0;
    std::int64_t duration_ns = 0;
  };

  // Told the name of each pass before it starts, on its thread. What it throws is a failure of the
  // pass.
  using OnStart = std::function<void(const char* name)>;

  explicit PassTimer(OnStart on_start = nullptr) : on_start_(std::move(on_start)) {}

  // Measures from construction to destruction. With a null `timer` nothing is measured.
  class Scope {
   public:
    Scope(PassTimer* timer, const char* name) : timer_(timer) {
      if (timer_ != nullptr) {
        if (timer_->on_start_) {
          timer_->on_start_(name);
        }
        index_ = timer_->passes_.size();
        timer_->passes_.push_back({name, timer_->depth_++, 0});
        start_ = std::chrono::steady_clock::now();
      }
    }
    ~Scope() {
      if (timer_ != nullptr) {
        --timer_->depth_;
        timer_->passes_[index_].duration_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                  std::chrono::steady_clock::now() - start_)
                                                  .count();
      }
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PassTimer* timer_;
    std::size_t index_ = 0;
    std::chrono::steady_clock::time_point start_;
  };

  const std::vector<Pass>& passes() const { return passes_; }

  // A timer without passes, for another thread.
  PassTimer beside() const { return PassTimer(on_start_); }

  // Adds the passes that another thread measured with a timer of its own, below the current one.
  void append(const PassTimer& other) {
    for (const Pass& pass : other.passes_) {
      passes_.push_back({pass.name, depth_ + pass.depth, pass.duration_ns});
    }
  }

 private:
  OnStart on_start_;
  std::vector<Pass> passes_;
  int depth_ = 0;
};

}  // namespace gpuwhy

// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy mcp: a server of the Model Context Protocol on standard input and output.
//
// One thread reads ahead, so that a request can be cancelled while another is answered. Standard
// output has nothing but messages.
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include <unistd.h>

#include "agents/mcp_server.h"
#include "agents/skill.h"
#include "base/exit_code.h"
#include "cli/command.h"
#include "session/version.h"

namespace gpuwhy {
namespace {

struct McpOptions {
  std::string root = ".";
  std::optional<std::uint64_t> memory_limit_bytes;
  bool is_skill = false;
};

// Messages that are read and not answered yet, at most 64 MiB of them.
class MessageQueue {
 public:
  struct Message {
    std::string text;
    std::string id;
    bool is_too_long = false;
  };

  // Waits while there are many.
  void push(Message message) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return messages_.size() < kMost; });
    messages_.push_back(std::move(message));
    changed_.notify_all();
  }

  // Takes a request back that waits; one that is being answered gets no answer.
  void cancel(const std::string& id) {
    const std::lock_guard lock(mutex_);
    const auto num_removed =
        std::erase_if(messages_, [&](const Message& one) { return one.id == id; });
    if (num_removed == 0 && id == current_) {
      is_cancelled_ = true;
    }
    changed_.notify_all();
  }

  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }

  // The next message; nullopt: there are no more.
  std::optional<Message> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !messages_.empty() || is_closed_; });
    if (messages_.empty()) {
      return std::nullopt;
    }
    Message message = std::move(messages_.front());
    messages_.pop_front();
    current_ = message.id;
    is_cancelled_ = false;
    changed_.notify_all();
    return message;
  }

  // Whether the message that was taken last is still wanted.
  bool is_wanted() {
    const std::lock_guard lock(mutex_);
    return !is_cancelled_;
  }

 private:
  static constexpr std::size_t kMost = 64;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> messages_;
  std::string current_;
  bool is_cancelled_ = false;
  bool is_closed_ = false;
};

void take_message(std::string text, MessageQueue& queue) {
  if (text.find_first_not_of(" \t\r") == std::string::npos) {
    return;
  }
  MessageIds ids = ids_of_message(text);
  if (!ids.cancels.empty()) {
    queue.cancel(ids.cancels);
  }
  queue.push({std::move(text), std::move(ids.id)});
}

// Lines of standard input until its end. The rest of a line that is too long is skipped.
void read_messages(MessageQueue& queue) {
  std::string line;
  bool is_too_long = false;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t size = read(STDIN_FILENO, buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size <= 0) {
      break;
    }
    std::string_view bytes(buffer, static_cast<std::size_t>(size));
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      const std::string_view piece = bytes.substr(0, end);
      is_too_long = is_too_long || line.size() + piece.size() > kMostMessageBytes;
      if (!is_too_long) {
        line += piece;
      }
      if (end == std::string_view::npos) {
        break;
      }
      if (is_too_long) {
        queue.push({"", "", true});
      } else {
        take_message(std::move(line), queue);
      }
      line.clear();
      is_too_long = false;
      bytes.remove_prefix(end + 1);
    }
  }
  if (!line.empty() && !is_too_long) {
    take_message(std::move(line), queue);
  }
  queue.close();
}

int run_mcp(const McpOptions& options, Context& context) {
  if (options.is_skill) {
    context.console.out(skill_text());
    return kExitOk;
  }
  McpServer server(McpTools(options.root, context.system, options.memory_limit_bytes),
                   program_version());
  // Shared: the reader may still wait for input when the output is gone.
  const auto queue = std::make_shared<MessageQueue>();
  std::thread([queue] { read_messages(*queue); }).detach();
  while (const auto message = queue->pop()) {
    const std::optional<std::string> said =
        message->is_too_long ? McpServer::answer_too_long() : server.answer(message->text);
    if (said && queue->is_wanted()) {
      context.console.out(*said + "\n");
      if (!context.console.flush()) {
        break;
      }
    }
  }
  return kExitOk;
}

}  // namespace

Command mcp_command() {
  auto options = std::make_shared<McpOptions>();
  Command command = command_of("mcp", "Answer a coding agent's questions: a read-only MCP server",
                               options, run_mcp);
  command.options = {
      {"--root", "DIR", "Folder with recordings; no file outside of it is read", &options->root},
      {"--memory-limit", "BYTES", "Memory limit of an analysis, as 4GiB",
       &options->memory_limit_bytes},
      {"--skill", "", "Print SKILL.md instead: how an agent records and reads profiles",
       &options->is_skill},
  };
  command.examples =
      "  gpuwhy mcp --root gpuwhy-runs\n"
      "  gpuwhy mcp --skill > skills/gpuwhy/SKILL.md\n";
  return command;
}

}  // namespace gpuwhy

// SPDX-License-Identifier: Apache-2.0
//
// From the composed tree to typed options: the one place that knows which values make sense.
#include "config/options.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace llmprof {
namespace {

class Reader {
 public:
  explicit Reader(const Config& config) : config_(config) {}

  const Json& at(const std::string& path) const {
    const Json* value = find_value(config_.tree, path);
    if (value == nullptr) {
      throw Error(ErrorKind::kUsage, fmt::format("{} is needed and was removed", path));
    }
    return *value;
  }

  std::string text(const std::string& path) const {
    const Json& value = at(path);
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
      fail(path, "a text");
    }
    return value.get<std::string>();
  }

  std::int64_t whole_from(const std::string& path, std::int64_t least) const {
    const Json& value = at(path);
    if (!value.is_number_integer() || value.get<std::int64_t>() < least) {
      fail(path, fmt::format("a whole number of at least {}", least));
    }
    return value.get<std::int64_t>();
  }

  [[noreturn]] void fail(const std::string& path, const std::string& wanted) const {
    const auto origin = config_.origins.find(path);
    throw Error(ErrorKind::kUsage,
                fmt::format("{} takes {}, not {}", path, wanted, printable(to_json_line(at(path)))),
                origin == config_.origins.end() ? "" : fmt::format("set by {}", origin->second));
  }

 private:
  const Config& config_;
};

Options::Mode mode_of(const Reader& reader) {
  const std::string mode = reader.text("run.mode");
  if (mode == "deep") {
    return Options::Mode::kDeep;
  }
  if (mode == "light") {
    return Options::Mode::kLight;
  }
  reader.fail("run.mode", "deep or light");
}

}  // namespace

Options options_of(const Config& config) {
  const Reader reader(config);
  Options options;
  options.mode = mode_of(reader);
  options.top_n_kernels = reader.whole_from("run.top_n_kernels", 1);
  options.stage2_dir = reader.text("artifacts.stage2_dir");
  return options;
}

}  // namespace llmprof

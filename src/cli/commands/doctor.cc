// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy doctor: report on whether a capture can work on this machine. It exits 0 whatever it
// finds; --strict is for scripts.
#include "capture/doctor.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "config/compose.h"
#include "session/reading/memory_fit.h"
#include "session/record/run_options.h"
#include "session/writing/engine_version.h"
#include "session/writing/machine_json.h"

namespace gpuwhy {
namespace {

struct DoctorOptions {
  bool json = false;
  bool strict = false;
  std::string file;
  std::vector<std::string> overrides;
};

struct StatusLook {
  const char* word;
  Color color;
};

StatusLook look_of(CheckStatus status) {
  switch (status) {
    case CheckStatus::kOk:
      return {"OK", Color::kGreen};
    case CheckStatus::kWarn:
      return {"WARN", Color::kYellow};
    case CheckStatus::kFail:
      return {"FAIL", Color::kRed};
    case CheckStatus::kSkip:
      return {"SKIP", Color::kDim};
  }
  return {"", Color::kPlain};
}

std::size_t count(const Diagnosis& diagnosis, CheckStatus status) {
  return static_cast<std::size_t>(
      std::count_if(diagnosis.checks.begin(), diagnosis.checks.end(),
                    [&](const Check& check) { return check.status == status; }));
}

Json json_of(const Diagnosis& diagnosis) {
  Json document = json_document("doctor", 1);
  for (const CheckStatus status :
       {CheckStatus::kOk, CheckStatus::kWarn, CheckStatus::kFail, CheckStatus::kSkip}) {
    document["summary"][to_lower(look_of(status).word)] = count(diagnosis, status);
  }
  document["checks"] = Json::array();
  for (const Check& check : diagnosis.checks) {
    document["checks"].push_back({{"id", check.id},
                                  {"status", look_of(check.status).word},
                                  {"finding", check.finding},
                                  {"remedy", check.remedy}});
  }
  document["tools"] = tools_json(diagnosis.nsys, diagnosis.ncu);
  document["machine"] = machine_json(diagnosis.machine);
  return document;
}

void print(const Diagnosis& diagnosis, Console& console) {
  std::size_t widest = 0;
  for (const Check& check : diagnosis.checks) {
    widest = std::max(widest, check.id.size());
  }
  for (const Check& check : diagnosis.checks) {
    const StatusLook look = look_of(check.status);
    constexpr std::size_t kWord = 4;
    const std::size_t indent = widest + kWord + 4;
    const std::string line = fmt::format("{:<{}}  {:<{}}  {}", look.word, kWord, check.id, widest,
                                         printable(check.finding));
    // Painted when the lines are broken: an escape sequence has no width.
    console.out(console.painted(look.color, line.substr(0, kWord)) +
                wrapped(line, console.width(), indent).substr(kWord) + "\n");
    if (!check.remedy.empty()) {
      console.out(
          wrapped(std::string(indent, ' ') + "-> " + check.remedy, console.width(), indent + 3) +
          "\n");
    }
  }
  console.out(fmt::format("\n{} OK, {} WARN, {} FAIL, {} SKIP\n",
                          count(diagnosis, CheckStatus::kOk), count(diagnosis, CheckStatus::kWarn),
                          count(diagnosis, CheckStatus::kFail),
                          count(diagnosis, CheckStatus::kSkip)));
}

int run_doctor(const DoctorOptions& options, Context& context) {
  const RunOptions run = common_options_of(compose(user_file(options.file), options.overrides));
  Diagnosis diagnosis = diagnose(context.system, run.artifacts_dir);
  diagnosis.checks.push_back(check_engines(context.system));
  diagnosis.checks.push_back(
      {"analysis_memory", CheckStatus::kOk, largest_recording(context.system), ""});
  if (options.json) {
    context.console.out(to_json_text(json_of(diagnosis)));
  } else {
    print(diagnosis, context.console);
  }
  return options.strict && count(diagnosis, CheckStatus::kFail) > 0 ? kExitEnvironment : kExitOk;
}

}  // namespace

Command doctor_command() {
  auto options = std::make_shared<DoctorOptions>();
  Command command =
      command_of("doctor", "Check what a capture needs: tools, driver, permissions, space", options,
                 run_doctor);
  command.options = {
      json_option(options->json),
      {"--strict", "", "Exit with 5 when a check fails", &options->strict},
      config_option(options->file),
      override_option(options->overrides),
  };
  return command;
}

}  // namespace gpuwhy

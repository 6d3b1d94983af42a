// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "capture/supervise.h"

namespace gpuwhy {

// Progress of a run. The command line draws it; a library caller may ignore it.
class Progress {
 public:
  virtual ~Progress() = default;

  virtual void begin(const std::string& step) = 0;
  virtual void update(const StepProgress& progress) = 0;
  virtual void end(const std::string& outcome) = 0;  // a few words: "done", "n/a (no_gpu)"
  virtual void note(const std::string& sentence) = 0;
};

}  // namespace gpuwhy

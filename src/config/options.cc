// SPDX-License-Identifier: Apache-2.0
//
// Configuration options that more than one command reads, as a typed struct.
#include "config/options.h"

#include "config/reader.h"

namespace gpuwhy {

Options options_of(const Config& config) {
  const SettingsReader reader(config);
  Options options;
  const std::string mode = reader.text("run.mode");
  if (mode != "deep" && mode != "light") {
    reader.fail("run.mode", "deep or light");
  }
  options.mode = mode == "light" ? Options::Mode::kLight : Options::Mode::kDeep;
  options.top_n_kernels = reader.whole_from("run.top_n_kernels", 1);
  options.artifacts_dir = reader.text("artifacts.dir");
  return options;
}

}  // namespace gpuwhy

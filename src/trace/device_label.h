// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trace/trace.h"

namespace gpuwhy {

// A GPU by its runtime and number: "cuda:0", "hip:0" of AMD, "GPU 0" if neither is known. One
// spelling for every table.
std::string device_label(const DeviceInfo& device);

}  // namespace gpuwhy

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpuwhy {

struct Profile;

// kernels.pb.gz: the kernel table as a pprof profile, with the values `gpu_time` (nanoseconds) and
// `launches`, and the GPU as the label `device`. The stack of a kernel in a pass of the model is
// stage, pass, kind of layer, part, kernel, with the label `layer`; that of others stage, family,
// kernel.
std::string pprof_profile(const Profile& profile);

}  // namespace gpuwhy

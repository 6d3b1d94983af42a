// SPDX-License-Identifier: Apache-2.0
//
// Generation of a GPU that a recording does not name, as far as its kernels prove it.
#pragma once

#include <string>
#include <string_view>

namespace gpuwhy {

// The major number of the compute capability that a kernel needs: cuBLAS's nvjet kernels and those
// that name sm90 run on Hopper alone, those that name sm100 or sm120 on Blackwell alone. Others,
// such as sm80, also run on later GPUs: 0.
int generation_of_kernel(std::string_view kernel_name);

// "Hopper (sm_90)"; empty: not known.
std::string generation_words(int compute_major);

}  // namespace gpuwhy

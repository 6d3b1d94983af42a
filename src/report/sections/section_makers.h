// SPDX-License-Identifier: Apache-2.0
//
// What sections share.
#pragma once

#include "report/sections/sections.h"
#include "results/results.h"

namespace gpuwhy {

// "Hopper (sm_90)" of a GPU without a name, where its kernels prove it; else empty.
std::string generation_of(const Results& metrics, const DeviceRow& device);

// The tool that recorded; metrics.json of older versions does not name it.
std::string tool_of(const Results& metrics);

// Functions of sections are declared by their lines in sections.cc. A section without data has
// `missing` set to the reason and what to do about it.

}  // namespace gpuwhy

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "capture/subprocess.h"

namespace gpuwhy {

// Why a program failed, as far as its output tells: the last line that is not indented, which is
// the error of a Python traceback or of a program that adds a hint. Safe to show, at most 300
// bytes.
std::string last_statement(const ProcessResult& ended);

}  // namespace gpuwhy

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "model/config_reader.h"

namespace gpuwhy {

// Why a model of an unknown type has no cost: its configuration has keys of parts that a plain
// transformer lacks (experts, states, indexers, ...). Empty if it has none.
std::string unpriced_reason(std::string_view model_type, const ConfigReader& reader);

}  // namespace gpuwhy

// SPDX-License-Identifier: Apache-2.0
//
// simdjson, without the checks that end a program over what a file says. Included by this header
// alone, so that all sources agree.
#pragma once

#define SIMDJSON_DEVELOPMENT_CHECKS 0
#include <simdjson.h>

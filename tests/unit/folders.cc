// SPDX-License-Identifier: Apache-2.0
//
// The folders that unit tests read, as CMake names them.
#include "folders.h"

namespace llmprof {

const char* corpus_folder() {
  return LLMPROF_CORPUS;
}

const char* data_folder() {
  return LLMPROF_TEST_DATA;
}

}  // namespace llmprof

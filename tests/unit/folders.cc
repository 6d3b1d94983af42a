// SPDX-License-Identifier: Apache-2.0
//
// The folders that unit tests read, as CMake names them.
#include "folders.h"

namespace gpuwhy {

const char* corpus_folder() {
  return GPUWHY_TEST_CORPUS;
}

const char* data_folder() {
  return GPUWHY_TEST_DATA;
}

}  // namespace gpuwhy

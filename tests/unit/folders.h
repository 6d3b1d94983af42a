// SPDX-License-Identifier: Apache-2.0
//
// The folders that unit tests read. Only folders.cc knows their paths: the objects of all other
// tests are the same in every clone, so a compiler cache finds them.
#pragma once

namespace gpuwhy {

const char* corpus_folder();  // of real recordings; may be absent
const char* data_folder();    // tests/data

}  // namespace gpuwhy

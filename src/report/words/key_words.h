// SPDX-License-Identifier: Apache-2.0
//
// Keys of metrics.json in the words of a reader who does not know that file.
#pragma once

#include <string>

namespace gpuwhy {

// "waiting for CPU launch (decode, cuda:0)" of
// ledgers[stage=decode,device=cuda:0].buckets_ns.launch_late. A text that is not a key stays.
std::string key_words(const std::string& key);

}  // namespace gpuwhy

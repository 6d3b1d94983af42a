#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Line coverage of the readers by unit and golden tests, seeds and the fuzzer's corpus (build/fuzz/corpus, if tools/fuzz.sh ran).
# Prints one line per file of src/ingest and src/model, and fails below 90 %. Needs llvm-cov and llvm-profdata (Debian: llvm).
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset coverage >/dev/null
cmake --build --preset coverage
rm -rf build/coverage/profiles
export LLVM_PROFILE_FILE=$PWD/build/coverage/profiles/%8m.profraw
build/coverage/tests/gpuwhy_unit_tests --gtest_brief=1
ctest --preset coverage -L golden -E 'faults|ranks|planted_waste|each_can_fail'
build/coverage/tests/gpuwhy_fuzz_seeds tests/golden build/coverage/fuzz-seeds
if [ -d build/fuzz/corpus ]; then cp -rn build/fuzz/corpus/. build/coverage/fuzz-seeds/; fi
build/coverage/tests/gpuwhy_fuzz_replay build/coverage/fuzz-seeds tests/fuzz/found
llvm-profdata merge -sparse build/coverage/profiles/*.profraw -o build/coverage/all.profdata
programs=(build/coverage/tests/gpuwhy_unit_tests -object build/coverage/gpuwhy -object build/coverage/tests/gpuwhy_fuzz_replay)
llvm-cov export "${programs[@]}" -instr-profile build/coverage/all.profdata -summary-only >build/coverage/all.json
python3 - <<'END'
import json
import sys

files = json.load(open("build/coverage/all.json"))["data"][0]["files"]
worst = 100
for folder in ("src/ingest/", "src/model/"):
    rows = sorted((file["summary"]["lines"]["percent"], file["filename"], file["summary"]["lines"])
                  for file in files if folder in file["filename"])
    for percent, name, _ in rows:
        print(f"{percent:6.1f} % {name}")
    covered, count = (sum(lines[key] for _, _, lines in rows) for key in ("covered", "count"))
    print(f"{folder}: {100 * covered / count:.1f} % of {count} lines")
    worst = min(worst, 100 * covered / count)
sys.exit(worst < 90)
END

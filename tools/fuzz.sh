#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fuzzes each target for a while: tools/fuzz.sh SECONDS [TARGET...]. Seeds come from tests/golden; what was learnt stays in
# build/fuzz/corpus, what broke something in build/fuzz/found. Ends with the first target that breaks, after its input.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?usage: tools/fuzz.sh SECONDS [TARGET...]}
shift
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz | tail -1
build/fuzz/tests/llmprof_fuzz_seeds tests/golden build/fuzz/seeds
if [ $# -eq 0 ]; then
  mapfile -t targets < <(ls build/fuzz/seeds)
  set -- "${targets[@]}"
fi
mkdir -p build/fuzz/found
for target in "$@"; do
  mkdir -p "build/fuzz/corpus/$target"
  log="build/fuzz/$target.log"
  # 2 GB and 25 s an input are what a reader may never need for a file of 100 KB. Leaks are for the end of a program.
  if ! LLMPROF_FUZZ_TARGET=$target build/fuzz/tests/llmprof_fuzz "build/fuzz/corpus/$target" "build/fuzz/seeds/$target" \
    -max_total_time="$seconds" -max_len=100000 -rss_limit_mb=2048 -timeout=25 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/found/$target-" >"$log" 2>&1; then
    grep -m1 -A20 'ERROR\|SUMMARY\|terminate\|does not' "$log" || tail -30 "$log"
    echo "$target: broken; the input is in build/fuzz/found"
    exit 1
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  cover=$(grep -o 'cov: [0-9]*' "$log" | tail -1)
  echo "$target: $runs executions, $cover edges"
done

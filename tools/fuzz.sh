#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fuzzes each target for SECONDS of CPU time, one per core: tools/fuzz.sh SECONDS [TARGET...]. Seeds come from tests/golden and
# from earlier findings (tests/fuzz/found); the corpus stays in build/fuzz/corpus, inputs that break something in
# build/fuzz/found. GPUWHY_FUZZ_SEED=1 takes the same path every time, as far as the time allows.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = --one ]; then
  seconds=$2
  target=$3
  corpus=build/fuzz/corpus/$target
  log=build/fuzz/$target.log
  mkdir -p "$corpus" "tests/fuzz/found/$target"
  # 1 GB as the system counts it. The program itself counts more closely: memory at every allocation, and the time of the processor
  # (tests/fuzz/fuzz.cc). Wall time is not limited: beside other work an input may wait for minutes.
  ASAN_OPTIONS=quarantine_size_mb=32 GPUWHY_FUZZ_TARGET=$target \
    build/fuzz/tests/gpuwhy_fuzz "$corpus" "build/fuzz/fuzz-seeds/$target" "tests/fuzz/found/$target" \
    -seed="${GPUWHY_FUZZ_SEED:-0}" -max_len=100000 -rss_limit_mb=1024 -malloc_limit_mb=512 -timeout=0 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/found/$target-" >"$log" 2>&1 &
  fuzzer=$!
  used=0
  before=-1
  hangs_at=0
  while stat=$(cat "/proc/$fuzzer/stat" 2>/dev/null) && read -ra fields <<<"${stat##*) }" && [ "${fields[0]}" != Z ]; do
    used=$(((fields[11] + fields[12]) / $(getconf CLK_TCK)))
    [ "$used" -lt "$seconds" ] || kill -USR1 "$fuzzer" 2>/dev/null || true   # libFuzzer ends by itself, in order
    # Ten minutes without a second of processor time: it waits for something that does not come.
    [ "$used" -eq "$before" ] || hangs_at=$((SECONDS + 600))
    before=$used
    [ "$SECONDS" -lt "$hangs_at" ] || kill -KILL "$fuzzer" 2>/dev/null || true
    sleep 0.5
  done
  if ! wait "$fuzzer"; then
    grep -m1 -A20 'ERROR\|SUMMARY\|terminate\|does not' "$log" || tail -30 "$log"
    echo "$target: broken; the input is in build/fuzz/found"
    exit 1
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  accepted=$(sed -n 's/^accepted: //p' "$log" | tail -1)
  cover=$(grep -o 'cov: [0-9]*' "$log" | tail -1)
  echo "$target: $used s, $runs executions, $accepted accepted, ${cover#cov: } edges"
  # Some of what it found, grown to 2 MB: what takes the square of its size in time is not seen in small inputs.
  mapfile -t grown < <(find "$corpus" "build/fuzz/fuzz-seeds/$target" -type f | sort |
    shuf -n $((4 + seconds / 10)) --random-source=<(yes "${GPUWHY_FUZZ_SEED:-$RANDOM}"))
  if ! ASAN_OPTIONS=quarantine_size_mb=32 GPUWHY_FUZZ_TARGET=$target GPUWHY_FUZZ_GROW=1 build/fuzz/tests/gpuwhy_fuzz \
    -rss_limit_mb=2048 -timeout=0 -artifact_prefix="build/fuzz/found/$target-grown-" "${grown[@]}" >"$log.grown" 2>&1; then
    grep -m1 -A20 'ERROR\|SUMMARY\|terminate\|does not' "$log.grown" || tail -30 "$log.grown"
    echo "$target: broken when it grows; the input is in build/fuzz/found"
    exit 1
  fi
  exit 0
fi

seconds=${1:?usage: tools/fuzz.sh SECONDS [TARGET...]}
shift
[ -f build/fuzz/build.ninja ] || cmake --preset fuzz >/dev/null
cmake --build --preset fuzz | tail -1
build/fuzz/tests/gpuwhy_fuzz_seeds tests/golden build/fuzz/fuzz-seeds
if [ $# -eq 0 ]; then
  mapfile -t targets < <(ls build/fuzz/fuzz-seeds)
  set -- "${targets[@]}"
fi
mkdir -p build/fuzz/found
printf '%s\n' "$@" | xargs -P "$(nproc)" -n 1 "$0" --one "$seconds"
rmdir tests/fuzz/found/* 2>/dev/null || true

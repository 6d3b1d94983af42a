#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# clang-tidy over the pieces that the preset `ci` compiles together, one per core: tools/tidy.sh [CHECKS]. CHECKS are added to those of
# .clang-tidy. A piece that passed on this machine, with the same checks and the same bytes in all files that it includes, is not checked
# again: ~/.cache/gpuwhy/tidy has an empty file for each.
set -euo pipefail
cd "$(dirname "$0")/.."

passed=${XDG_CACHE_HOME:-$HOME/.cache}/gpuwhy/tidy

if [ "${1:-}" = --one ]; then
  checks=$2
  piece=${3#build/fuzz/}
  files=$(ninja -C build/fuzz -t deps "$piece.o" | sed -n 's/^    //p')
  [ -n "$files" ] || { echo "tidy: $piece was not compiled" >&2; exit 1; }
  key=$({
    clang-tidy --version
    echo "$checks"
    cat .clang-tidy
    ninja -C build/fuzz -t commands "$piece.o" | tail -n 1
    echo "$files"
    cd build/fuzz && xargs -d '\n' cat <<<"$files"
  } | sed "s#$PWD#.#g" | sha256sum | cut -d ' ' -f 1)
  [ ! -e "$passed/$key" ] || exit 0
  clang-tidy --quiet --checks="$checks" -p build/fuzz "build/fuzz/$piece" 2>/dev/null
  mkdir -p "$passed"
  touch "$passed/$key"
  exit 0
fi

mkdir -p "$passed"
find "$passed" -mtime +60 -delete
find build/fuzz/CMakeFiles/gpuwhy*.dir/Unity -name '*.cxx' -print0 | xargs -0 -P "$(nproc)" -n 1 "$0" --one "-bugprone-suspicious-include${1:+,$1}"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# clang-tidy over the pieces that the preset `ci` compiles together, one per core: tools/tidy.sh [--changed] [CHECKS]. CHECKS are added to
# those of .clang-tidy. --changed: only pieces with a file that changed since origin/main, or since the commit before where that is this
# commit; a header is checked in the first piece that includes it, and of many pieces those with the most changes. GPUWHY_TIDY_BUILD names
# another build. A piece that passed on this machine, with the same checks and the same bytes in all files that it includes, is not checked
# again: ~/.cache/gpuwhy/tidy has an empty file for each.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${GPUWHY_TIDY_BUILD:-build/fuzz}
passed=${XDG_CACHE_HOME:-$HOME/.cache}/gpuwhy/tidy

if [ "${1:-}" = --one ]; then
  checks=$2
  piece=${3#"$build"/}
  files=$(ninja -C "$build" -t deps "$piece.o" | sed -n 's/^    //p')
  [ -n "$files" ] || { echo "tidy: $piece was not compiled" >&2; exit 1; }
  key=$({
    clang-tidy --version
    echo "$checks"
    cat .clang-tidy
    ninja -C "$build" -t commands "$piece.o" | tail -n 1
    echo "$files"
    cd "$build" && xargs -d '\n' cat <<<"$files"
  } | sed "s#$PWD#.#g" | sha256sum | cut -d ' ' -f 1)
  [ ! -e "$passed/$key" ] || exit 0
  clang-tidy --quiet --checks="$checks" --extra-arg=-Wno-unknown-warning-option -p "$build" "$build/$piece" 2>/dev/null
  mkdir -p "$passed"
  touch "$passed/$key"
  exit 0
fi

max_changed=4

pieces() { find "$build"/CMakeFiles/gpuwhy*.dir/Unity -name '*.cxx'; }

changed_pieces() {
  local base=HEAD~1
  if ! git merge-base --is-ancestor HEAD origin/main 2>/dev/null && git rev-parse --verify --quiet origin/main >/dev/null; then
    base=$(git merge-base HEAD origin/main)
  fi
  git diff --name-only "$base" -- src >build/changed || { pieces; return; } # a clone without history
  ninja -C "$build" -t deps | awk -v build="$build" '
    FILENAME != "-" { wanted[$1]; next }
    /^[^ ].*: #deps/ { piece = /^CMakeFiles\/gpuwhy[^\/]*\/Unity\// ? $1 : ""; sub(/\.o:$/, "", piece) }
    /^    / && piece { sub(/^.*\/src\//, "src/", $1); if ($1 in wanted) { delete wanted[$1]; ++changes[piece] } }
    END { for (piece in changes) print changes[piece], build "/" piece }' build/changed - | sort -k1,1nr -k2 >build/changed-pieces
  echo "tidy: $(wc -l <build/changed-pieces) pieces have $(wc -l <build/changed) files that changed since $base; at most $max_changed are checked" >&2
  head -n "$max_changed" build/changed-pieces | cut -d ' ' -f 2
}

list=pieces
if [ "${1:-}" = --changed ]; then
  list=changed_pieces
  shift
fi
mkdir -p "$passed"
find "$passed" -mtime +60 -delete
"$list" | xargs -r -d '\n' -P "$(nproc)" -n 1 "$0" --one "-bugprone-suspicious-include${1:+,$1}"

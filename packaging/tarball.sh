#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The static program with its manual page, completions and SBOM: packaging/tarball.sh BUILD_DIR OUT.tar.gz. The same
# commit gives the same bytes: names are sorted, owners are 0, times are the commit's (or SOURCE_DATE_EPOCH).
set -euo pipefail
build=$(realpath "${1:?usage: packaging/tarball.sh BUILD_DIR OUT.tar.gz}")
out=$(realpath "${2:?usage: packaging/tarball.sh BUILD_DIR OUT.tar.gz}")
cd "$(dirname "$0")/.."
cmake --build "$build" --target llmprof_static
time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
version=$("$build/llmprof_static" --version | sed -n '1s/^llmprof \([^ ]*\).*/\1/p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=llmprof-$version-linux-$(uname -m)
mkdir -p "$work/$name"/{bin,share/man/man1,share/bash-completion/completions,share/zsh/site-functions} \
  "$work/$name"/share/{fish/vendor_completions.d,doc/llmprof,llmprof/skills/llmprof}
strip -o "$work/$name/bin/llmprof" "$build/llmprof_static"
program=$work/$name/bin/llmprof
"$program" completion bash >"$work/$name/share/bash-completion/completions/llmprof"
"$program" completion zsh >"$work/$name/share/zsh/site-functions/_llmprof"
"$program" completion fish >"$work/$name/share/fish/vendor_completions.d/llmprof.fish"
"$program" skill >"$work/$name/share/llmprof/skills/llmprof/SKILL.md"
cp docs/llmprof.1 "$work/$name/share/man/man1/"
cp LICENSE README.md CHANGELOG.md "$work/$name/share/doc/llmprof/"
SOURCE_DATE_EPOCH=$time python3 packaging/sbom.py --out "$work/$name/share/doc/llmprof/llmprof.spdx.json"
chmod -R u=rwX,go=rX "$work/$name"
tar -C "$work" --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner -cf - "$name" | gzip -9n >"$out"
echo "$out: $(stat -c %s "$out") bytes"

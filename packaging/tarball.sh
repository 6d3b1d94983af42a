#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The static program with its manual page, completions and SBOM: packaging/tarball.sh BUILD_DIR OUT.tar.gz. The same
# commit gives the same bytes: names are sorted, owners are 0, times are the commit's (or SOURCE_DATE_EPOCH).
set -euo pipefail
build=$(realpath "${1:?usage: packaging/tarball.sh BUILD_DIR OUT.tar.gz}")
out=$(realpath "${2:?usage: packaging/tarball.sh BUILD_DIR OUT.tar.gz}")
cd "$(dirname "$0")/.."
cmake --build "$build" --target gpuwhy_static
time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
version=$("$build/gpuwhy_static" --version | sed -n '1s/^gpuwhy \([^ ]*\).*/\1/p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=gpuwhy-$version-linux-$(uname -m)
mkdir -p "$work/$name"/{bin,share/man/man1,share/bash-completion/completions,share/zsh/site-functions} \
  "$work/$name"/share/{fish/vendor_completions.d,doc/gpuwhy,gpuwhy/skills/gpuwhy}
strip -o "$work/$name/bin/gpuwhy" "$build/gpuwhy_static"
program=$work/$name/bin/gpuwhy
"$program" completion bash >"$work/$name/share/bash-completion/completions/gpuwhy"
"$program" completion zsh >"$work/$name/share/zsh/site-functions/_gpuwhy"
"$program" completion fish >"$work/$name/share/fish/vendor_completions.d/gpuwhy.fish"
"$program" mcp --skill >"$work/$name/share/gpuwhy/skills/gpuwhy/SKILL.md"
cp docs/gpuwhy.1 "$work/$name/share/man/man1/"
cp LICENSE README.md CHANGELOG.md "$work/$name/share/doc/gpuwhy/"
SOURCE_DATE_EPOCH=$time python3 packaging/sbom.py --out "$work/$name/share/doc/gpuwhy/gpuwhy.spdx.json"
chmod -R u=rwX,go=rX "$work/$name"
tar -C "$work" --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner -cf - "$name" | gzip -9n >"$out"
echo "$out: $(stat -c %s "$out") bytes"

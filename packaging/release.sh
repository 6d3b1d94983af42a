#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# All files of a release: packaging/release.sh OUT_DIR [TAG]. Makes the tarball of the static program, the Debian package, the wheel, the
# sdist, the SBOM, the notes and SHA256SUMS from the tag (default: the commit that is checked out), in a clone of it, so that nothing
# uncommitted gets in. The same commit gives the same bytes in any directory. Needs what
# `tools/install-deps.sh build static python` installs.
set -euo pipefail
out=$(realpath -m "${1:?usage: packaging/release.sh OUT_DIR [TAG]}")
cd "$(dirname "$0")/.."
commit=$(git rev-parse --verify "${2:-HEAD}^{commit}")
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone -q --no-checkout . "$work/gpuwhy"
cd "$work/gpuwhy"
git checkout -q --detach "$commit"
version=$(sed -n 's/^project(gpuwhy VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
# A tag that names another version would be found out by users only.
if [ -n "${2:-}" ] && [[ $2 == v* ]] && [ "$2" != "v$version" ]; then
  echo "the tag is $2, and CMakeLists.txt says $version" >&2
  exit 2
fi
mkdir -p "$out"
cmake --preset release -DBUILD_TESTING=OFF -DGPUWHY_WITH_LLAMA=OFF
cmake --build build/release
packaging/tarball.sh build/release "$out/gpuwhy-$version-linux-$(uname -m).tar.gz"
cpack -G DEB --config build/release/CPackConfig.cmake -B "$work/deb"
cp "$work"/deb/*.deb "$out"
packaging/wheel.sh "$out"
python3 packaging/sbom.py --out "$out/gpuwhy-$version.spdx.json"
# The newest part of CHANGELOG.md, without its heading.
awk '/^## / { if (seen++) exit; next } seen' CHANGELOG.md >"$out/NOTES.md"
cd "$out"
find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%f\n' | LC_ALL=C sort | xargs -d '\n' sha256sum >SHA256SUMS
cat SHA256SUMS

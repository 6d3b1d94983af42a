#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The sdist and, built from it, the wheel: packaging/wheel.sh OUT_DIR. Needs what `tools/install-deps.sh static python`
# installs.
set -euo pipefail
out=$(realpath -m "${1:?usage: packaging/wheel.sh OUT_DIR}")
cd "$(dirname "$0")/.."
python=${GPUWHY_PYTHON_PREFIX:-$HOME/.cache/gpuwhy/python}/bin/python
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/source"
"$python" -m build --no-isolation --sdist --outdir "$work" .
tar -xzf "$work"/gpuwhy-*.tar.gz -C "$work/source" --strip-components=1
# What was compiled before, in another folder, is not compiled again.
CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1 "$python" -m build --no-isolation --wheel --outdir "$work" "$work/source"
# Gives it the tag of the oldest C library it works with. There is nothing to put in: the libraries it needs are inside.
PATH=$(dirname "$python"):$PATH "$python" -m auditwheel repair --wheel-dir "$out" "$work"/gpuwhy-*-py3-none-linux_*.whl
cp "$work"/gpuwhy-*.tar.gz "$out"
ls -l "$out"

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""packaging/release.sh, twice, in clones and build directories with names of different lengths and without a compiler cache: the same
files with the same bytes, and SHA256SUMS that fits them. Some twenty minutes on two cores."""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/python")]
import testing  # noqa: E402
from prefix import tools_python  # noqa: E402

KINDS = (".tar.gz", ".deb", ".whl", ".spdx.json", "NOTES.md", "SHA256SUMS")


def released(source):
    subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(source)], check=True)
    out = source / "release"
    # It builds in a directory of its own below TMPDIR, so that has to differ too.
    temporary = source.parent / source.name.replace(" ", "_").upper()
    temporary.mkdir()
    run = subprocess.run([str(source / "packaging/release.sh"), str(out)], capture_output=True, text=True,
                         env=dict(os.environ, CCACHE_DISABLE="1", TMPDIR=str(temporary)))
    assert run.returncode == 0, (run.stdout[-3000:], run.stderr[-3000:])
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in out.iterdir()}


def main():
    testing.arguments()
    tools_python()  # packs the wheel
    static = pathlib.Path(os.environ.get("GPUWHY_STATIC_PREFIX") or pathlib.Path.home() / ".cache/gpuwhy/static")
    if not static.exists():
        testing.skip("tools/install-deps.sh static installs what a release is made with")
    with tempfile.TemporaryDirectory(prefix="release-") as directory:
        first = released(pathlib.Path(directory) / "a")
        second = released(pathlib.Path(directory) / "a directory of another length")
    for name in sorted(first):
        print(f"{first[name][:16]} {second.get(name, 'absent')[:16]} {name}")
    assert all(any(name.endswith(kind) for name in first) for kind in KINDS), first
    assert first == second
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commit built in two directories, without a cache: the program, the library, the Debian package and the tarball of the static
program have the same bytes. Some ten minutes on two cores."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*words, **more):
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    assert result.returncode == 0, (words, result.stdout[-3000:], result.stderr[-3000:])
    return result.stdout


def built(source):
    """What a user would take away, by its name."""
    environment = {**os.environ, "CCACHE_DISABLE": "1", "SOURCE_DATE_EPOCH": run("git", "-C", ROOT, "log", "-1", "--format=%ct").strip()}
    run("git", "clone", "-q", "--shared", ROOT, source)
    run("cmake", "--preset", "release", "-DBUILD_TESTING=OFF", "-DGPUWHY_WITH_LLAMA=OFF", cwd=source, env=environment)
    build = source / "build/release"
    run("cmake", "--build", build, env=environment)
    run("cpack", "-G", "DEB", "--config", build / "CPackConfig.cmake", "-B", build / "deb", env=environment)
    files = {"gpuwhy": build / "gpuwhy", "libgpuwhy.so": build / "libgpuwhy.so", "package": next((build / "deb").glob("*.deb"))}
    if "gpuwhy_static" in run("cmake", "--build", build, "--target", "help"):
        run(source / "packaging/tarball.sh", build, source / "gpuwhy.tar.gz", env=environment)
        files["tarball"] = source / "gpuwhy.tar.gz"
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}


def main():
    asked = testing.arguments(keep=None)  # keep: where the two builds stay, to be looked at
    if not shutil.which("cpack"):
        testing.skip("cpack is not here")
    folder = pathlib.Path(asked.keep or tempfile.mkdtemp(prefix="reproducible-"))
    try:
        first = built(folder / "a")
        second = built(folder / "a directory of another length")
        for name in first:
            print(f"{name}: {first[name][:16]} {second[name][:16]}")
        assert first == second
    finally:
        if not asked.keep:
            shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())

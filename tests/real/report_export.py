#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports of the real nsys: exported once, by content and never by name, and a sentence where this nsys is too old."""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

from runs import guarded


def main():
    program = testing.arguments("program").program
    if not shutil.which("nsys"):
        testing.skip("nsys is not installed (tools/install-deps.sh nsight)")
    with testing.scratch() as directory:
        environment = {**os.environ, "XDG_CACHE_HOME": str(directory / "cache")}

        def analyze(name, **more):
            return subprocess.run([program, "analyze", directory / name], capture_output=True, text=True, timeout=120,
                                  env={**environment, **more})

        def capture(name, *command):
            subprocess.run(["nsys", "profile", "--trace=osrt", "--sample=none", "--cpuctxsw=none",
                            f"--session-new=gpuwhy-test-{os.getpid()}-{name}", f"--output={directory / name}",
                            *command], check=True, timeout=120, capture_output=True)

        capture("one", "sleep", "0.1")
        result = analyze("one.nsys-rep")
        assert result.returncode == 0 and result.stdout.startswith("No CUDA activity"), result
        exports = list((directory / "cache/gpuwhy/exports").iterdir())
        assert len(exports) == 1 and exports[0].suffix == ".sqlite", exports

        # From the cache: nsys is not needed any more.
        result = analyze("one.nsys-rep", GPUWHY_NSYS="/absent/nsys")
        assert result.returncode == 0, result

        # The same name with other contents is another report.
        capture("two", "sleep", "0.2")
        (directory / "two.nsys-rep").replace(directory / "one.nsys-rep")
        result = analyze("one.nsys-rep", GPUWHY_NSYS="/absent/nsys")
        assert result.returncode == 5 and "only nsys opens" in result.stderr, result
        assert analyze("one.nsys-rep").returncode == 0
        assert len(list((directory / "cache/gpuwhy/exports").iterdir())) == 2

        # A report of a newer nsys, of which only the beginning counts here.
        (directory / "new.nsys-rep").write_bytes(b"NVIDIA Tegra Profiler Report 2099@1@1@1-1v0.\n" + b"x" * 100)
        result = analyze("new.nsys-rep")
        assert result.returncode == 5 and "was written by nsys 2099.1.1" in result.stderr, result
        assert "install nsys 2099.1 or newer" in result.stderr

        # Damage: nsys says no, and nothing partial stays behind.
        whole = (directory / "one.nsys-rep").read_bytes()
        (directory / "cut.nsys-rep").write_bytes(whole[:len(whole) // 2])
        result = analyze("cut.nsys-rep")
        assert result.returncode == 5 and "exporting" in result.stderr, result
        assert len(list((directory / "cache/gpuwhy/exports").iterdir())) == 2
    print("exports are kept by content; old, new, replaced and damaged reports are distinguished")
    return 0


if __name__ == "__main__":
    guarded(main)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The installed nsys really captures here: NVTX ranges of a small program come back out of its SQLite export.

Proves what tools/install-deps.sh claims of the nsight group (the importer above all), with no GPU.
"""
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

from runs import guarded

PROGRAM = r"""
#include <nvtx3/nvToolsExt.h>
int main() {
  for (int i = 0; i < 5; ++i) {
    nvtxRangePushA("decode_step");
    nvtxRangePop();
  }
}
"""


def nvtx_include():
    """The folder that holds nvtx3/nvToolsExt.h: of the package, or of a CUDA toolkit."""
    listed = subprocess.run(["dpkg", "-L", "nsight-systems-target"], capture_output=True, text=True).stdout
    candidates = [pathlib.Path(line) for line in listed.splitlines() if line.endswith("/nvtx3/nvToolsExt.h")]
    candidates += pathlib.Path("/usr/local").glob("cuda*/include/nvtx3/nvToolsExt.h")
    return candidates[0].parent.parent if candidates else None


def main():
    testing.arguments()
    include = nvtx_include()
    if not shutil.which("nsys") or not shutil.which("g++") or include is None:
        testing.skip("needs nsys, g++ and the NVTX headers (tools/install-deps.sh build nsight)")
    with testing.scratch() as directory:
        (directory / "marks.cc").write_text(PROGRAM)
        subprocess.run(["g++", "-I", include, "marks.cc", "-o", "marks", "-ldl"], cwd=directory, check=True)
        # Without --cpuctxsw=none nsys 2022.4 hangs on recent kernels, two or three times in ten.
        subprocess.run(["nsys", "profile", "--trace=nvtx", "--sample=none", "--cpuctxsw=none",
                        f"--session-new=gpuwhy-test-{os.getpid()}", "--output=run", "./marks"],
                       cwd=directory, check=True, timeout=120, capture_output=True)
        subprocess.run(["nsys", "export", "--type=sqlite", "--output=run.sqlite", "run.nsys-rep"],
                       cwd=directory, check=True, timeout=120, capture_output=True)
        rows = sqlite3.connect(directory / "run.sqlite").execute(
            "SELECT count(*), min(end - start) FROM NVTX_EVENTS WHERE text = 'decode_step'").fetchone()
    assert rows[0] == 5 and rows[1] >= 0, rows
    print("5 of 5 NVTX ranges came back")
    return 0


if __name__ == "__main__":
    guarded(main)

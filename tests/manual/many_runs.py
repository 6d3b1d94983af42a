#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run after run of a real LLM under the real nsys: none hangs, none fails, none leaves a process, a session of nsys or a
scratch folder behind. Some minutes, so it is not part of ctest:

  python3 tests/manual/many_runs.py --program build/release/gpuwhy [--runs 50] [--target llama_tiny]
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "real"))
from runs import Run, processes_of  # noqa: E402

LONGEST_S = 120  # a run takes some seconds; who takes longer than this hangs


def sessions():
    return subprocess.run(["nsys", "sessions", "list"], capture_output=True, text=True, timeout=250).stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--target", default="llama_tiny")
    asked = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="gpuwhy-many-"))
    scratch = directory / "scratch"
    scratch.mkdir()
    lengths, retries = [], 0
    try:
        for number in range(asked.runs):
            start = time.time()
            result = subprocess.run([asked.program.resolve(), "run", "--progress", "plain", f"model.target={asked.target}"],
                                    cwd=directory, capture_output=True, text=True, timeout=LONGEST_S,
                                    env={**os.environ, "TMPDIR": str(scratch)})
            lengths.append(time.time() - start)
            os.chdir(directory)
            run = Run(result.returncode, result.stdout, result.stderr)
            assert run.code == 0 and (run.bundle / "nsys/run.sqlite").exists(), (number, str(run))
            assert not processes_of(run.bundle), (number, processes_of(run.bundle))
            left = [path.name for path in scratch.iterdir() if path.name.startswith("gpuwhy-")]
            assert not left, (number, left)
            assert run.bundle.name not in sessions(), number
            retries += "once more" in run.err
            shutil.rmtree(run.bundle)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{asked.runs} runs of {asked.target}: {sum(lengths):.0f} s, median {statistics.median(lengths):.1f} s, "
          f"longest {max(lengths):.1f} s; nsys had to be started again in {retries}; nothing was left behind")
    return 0


if __name__ == "__main__":
    sys.exit(main())

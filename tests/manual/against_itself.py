#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""False alarm rate of interleaved repeats of one program: tests/manual/against_itself.py BUILD [TRIES [REPEATS]].

Some minutes: each try is twice REPEATS runs of llama_100m and two that are thrown away."""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    tries = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    repeats = sys.argv[3] if len(sys.argv) > 3 else "10"
    os.environ["PATH"] = f"{build}:{os.environ['PATH']}"
    verdicts, alarms = collections.Counter(), []
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for i in range(tries):
            run = subprocess.run([build / "gpuwhy", "run", "--repeat", repeats, "--passes", "baseline", "--against",
                                  "workload.environment.GPUWHY_SIDE=b", "model.target=llama_100m"], cwd=folder,
                                 capture_output=True, text=True)
            assert run.returncode in (0, 3, 4), run.stderr
            comparison = json.loads((pathlib.Path(folder) / run.stdout.strip() / "compare.json").read_text())
            verdicts[comparison["verdict"]] += 1
            alarms += [comparison["sentence"]] if comparison["verdict"] == "regress" else []
            print(f"{i + 1} of {tries}: {comparison['verdict']}", flush=True)
    print(f"{dict(verdicts)} in {time.monotonic() - started:.0f} s")
    assert not alarms and not verdicts["invalid"], alarms
    return 0


if __name__ == "__main__":
    sys.exit(main())

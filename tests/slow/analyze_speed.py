#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole of `gpuwhy analyze`, all files written, beside SQLite stepping over the same columns and computing nothing.

The budget has slack for a busy machine; bench/README.md has the figures of a quiet one.
"""
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

KERNELS = 500_000
BUDGET = {2: 1.5, 1: 2.2}  # threads -> times the bare scan


def best(function, rounds=5):
    return min(function() for _ in range(rounds))


def main():
    program = testing.arguments("program").program
    tools = pathlib.Path(program).parent
    testing.needs_release(program)
    with tempfile.TemporaryDirectory() as directory:
        trace = pathlib.Path(directory) / "trace.sqlite"
        subprocess.run([tools / "gpuwhy_make_trace", trace, str(KERNELS)], check=True, stdout=subprocess.DEVNULL)

        def bare():
            return float(subprocess.run([tools / "gpuwhy_bare_scan", trace], check=True, capture_output=True,
                                        text=True).stdout)

        def analyze(threads):
            start = time.perf_counter()
            subprocess.run([program, "analyze", trace, "--threads", str(threads), "--out", directory], check=True,
                           stdout=subprocess.DEVNULL)
            return time.perf_counter() - start

        bare_s = best(bare)
        ratios = {threads: best(lambda: analyze(threads)) / bare_s for threads in BUDGET}
    peak_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"bare scan {bare_s:.3f} s; analyze with 2 threads {ratios[2]:.2f} x, with one {ratios[1]:.2f} x; "
          f"peak memory of any child {peak_bytes / 1e6:.0f} MB")
    for threads, budget in BUDGET.items():
        assert ratios[threads] < budget, (threads, ratios[threads])
    return 0


if __name__ == "__main__":
    sys.exit(main())

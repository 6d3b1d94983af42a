#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measurement of the way into a data frame: a million launches in polars against `gpuwhy analyze` alone.

Both read the same file in turn, several times, and the quickest of each counts. Processor time and wall time must both keep the
ratio; what importing polars takes is not the package's.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "python"))
from prefix import tools_python  # noqa: E402

NUM_KERNELS = 1_000_000
MOST_RATIO = 1.3
ROUNDS = 5
READ = """
import polars, gpuwhy, resource, sys, time
used = resource.getrusage(resource.RUSAGE_SELF)
begin = time.perf_counter()
profile = gpuwhy.open(sys.argv[1])
frame = polars.DataFrame(profile.launches)
kernels = polars.DataFrame(profile.kernels)
wall = time.perf_counter() - begin
now = resource.getrusage(resource.RUSAGE_SELF)
assert frame["duration_ns"].sum() == kernels["total_ns"].sum()
print(frame.height, wall, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)
"""


def main():
    arguments = testing.arguments("program", "make-trace")
    python = tools_python()
    testing.needs_release(arguments.program)
    library = pathlib.Path(arguments.library or pathlib.Path(arguments.program).parent / "libgpuwhy.so").resolve()
    environment = {**os.environ, "GPUWHY_LIBRARY": str(library), "PYTHONPATH": str(TESTS.parent / "python")}
    with tempfile.TemporaryDirectory() as temporary:
        trace = pathlib.Path(temporary) / "trace.sqlite"
        subprocess.run([arguments.make_trace, trace, str(NUM_KERNELS)], check=True, stdout=subprocess.DEVNULL)
        program, package = [], []
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            process = subprocess.Popen([arguments.program, "analyze", trace], stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status
            assert status == 0
            program.append((time.perf_counter() - begin, usage.ru_utime + usage.ru_stime))
            run = subprocess.run([python, "-c", READ, trace], env=environment, check=True, capture_output=True, text=True)
            rows, wall, used = run.stdout.split()
            assert int(rows) >= NUM_KERNELS, rows
            package.append((float(wall), float(used)))
    is_within = True
    for index, what in enumerate(("wall", "processor")):
        analyze, frame = min(row[index] for row in program), min(row[index] for row in package)
        print(f"{what}: gpuwhy analyze {analyze:.2f} s, open and frames {frame:.2f} s: {frame / analyze:.2f} x")
        is_within &= frame <= MOST_RATIO * analyze
    if not is_within:
        sys.exit(f"more than {MOST_RATIO} x")


if __name__ == "__main__":
    main()

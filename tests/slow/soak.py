#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Soak test: no memory, file or process may accumulate. `run` with the real nsys leaves no process, no file outside its bundle and no session;
`analyze` as a command takes the same memory each time; in one process neither memory nor descriptors grow.

Without nsys the analyses are checked and the test still counts as skipped, not as passed.

A few of each; by hand: tests/slow/soak.py --runs 500 --analyses 5000 --program ... (docs/testing.md has the figures)."""
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/real")]
from recording import make_recording  # noqa: E402
from runs import Runner  # noqa: E402


def files_below(folder):
    """All that was left in the home and the temporary directory which the commands were given."""
    return {str(path) for path in folder.rglob("*")}


def peak_kb(argv):
    """Peak memory of one command, by the kernel's own account of it."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        devnull = os.open(os.devnull, os.O_WRONLY)
        child = subprocess.run(argv, stdout=devnull, stderr=devnull)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        os.write(writer, f"{child.returncode} {usage.ru_maxrss}".encode())
        os._exit(0)
    os.close(writer)
    text = os.read(reader, 100).decode()
    os.close(reader)
    os.waitpid(pid, 0)
    code, peak = map(int, text.split())
    assert code == 0, argv
    return peak


def compare_ends(values, what, most=1.05):
    """The last tenth against the first."""
    tenth = max(len(values) // 10, 1)
    first, last = statistics.median(values[:tenth]), statistics.median(values[-tenth:])
    assert last <= first * most, f"{what} grew from {first} to {last}"
    return f"{first:.0f} -> {last:.0f}"


def soak_runs(program, workload, count, place):
    if not shutil.which("nsys"):
        testing.skip("nsys is not here, so that nothing was run; the analyses were proven")
    runner = Runner(program, workload)  # which fails where a process is left
    try:
        environment = {"HOME": str(place), "TMPDIR": str(place)}
        runner.run("run.passes=[baseline,nsys]", **environment)  # makes the folders that nsys keeps
        before, start, seconds, sizes, failed = files_below(place), time.time(), [], [], 0
        for _ in range(count):
            began = time.time()
            run = runner.run("run.passes=[baseline,nsys]", **environment)
            if run.code != 0:
                failed += 1  # a failure of nsys, reported as one
                assert run.step("nsys")["status"] != "ok", run
            seconds.append(time.time() - began)
            sizes.append(sum(path.stat().st_size for path in run.bundle.rglob("*") if path.is_file()))
            shutil.rmtree(run.bundle)
        assert files_below(place) <= before, files_below(place) - before
        print(f"run with nsys: {count} in {time.time() - start:.0f} s, nsys failed in {failed} and it was told; seconds each "
              f"{statistics.median(seconds):.2f}, bundle bytes {compare_ends(sizes, 'bundles', 1.2)}, no process or file left")
        # On a busy machine nsys loses its agents; most of the time it must not.
        assert failed <= max(count // 5, 1), f"nsys failed in {failed} of {count}"
        return 0
    finally:
        runner.close()


def soak_analyses(program, read_again, count, folder, place):
    recording = make_recording(folder / "run.sqlite")
    os.environ.update(HOME=str(place), TMPDIR=str(place))
    peaks = []
    for i in range(count):
        out = folder / f"out-{i % 3}"
        shutil.rmtree(out, ignore_errors=True)
        peaks.append(peak_kb([program, "analyze", str(recording), "--out", str(out)]))
    assert not files_below(place), files_below(place)
    print(f"analyze: {count} commands, peak kB {compare_ends(peaks, 'memory')}, no file left")
    lines = subprocess.run([read_again, recording, str(count)], capture_output=True, text=True, check=True).stdout.splitlines()
    memory, descriptors = zip(*[map(int, line.split()) for line in lines])
    assert len(set(descriptors)) == 1, descriptors
    assert memory[-1] <= memory[0] * 1.02 + 256, memory
    print(f"analyze in one process: {count} times, kB {memory[0]} -> {memory[-1]}, descriptors {descriptors[0]} -> {descriptors[-1]}")


def main():
    asked = testing.arguments("program", "workload", "read-again", runs=5, analyses=200)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        place = folder / "home"
        place.mkdir()
        soak_analyses(asked.program, asked.read_again, asked.analyses, folder, place)
        return soak_runs(asked.program, asked.workload, asked.runs, place)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/scale.md: gpuwhy beside SQLite stepping over the same columns and computing nothing (bare_scan.cc).

  bench/table.py --program build/release/gpuwhy --kernels 1000000 5000000 20000000

Recordings are made by make_trace and kept in --scratch. In each round every command runs once, so that noise of the machine meets all
of them; the best of the rounds counts. Times are of the clock, with processor time in brackets: on a busy machine only the latter can
be trusted. All files come from the page cache.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

COMMANDS = {"answer, 2 threads": ["--threads", "2"],
            "answer, 1 thread": ["--threads", "1"],
            "all files": ["--threads", "2", "--out", "{out}"],
            "all files and trace": ["--threads", "2", "--out", "{out}", "--with", "trace"]}
NSYS_REPORTS = ("gpukernsum", "cudaapisum", "nvtxsum")


def run(argv):
    """(seconds, processor seconds, peak resident bytes, standard output) of one program."""
    start = time.perf_counter()
    process = subprocess.Popen([str(word) for word in argv], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    printed = process.stdout.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(map(str, argv))} ended with {process.returncode}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, printed


class Best:
    """The best of several runs, each figure by itself."""

    def __init__(self):
        self.seconds = self.cpu = self.peak = float("inf")

    def add(self, result):
        self.seconds, self.cpu, self.peak = (min(pair) for pair in zip((self.seconds, self.cpu, self.peak), result))


def bare_scan(tools, files):
    """Of all files one after the other, without the start of the program."""
    seconds = cpu = 0
    for file in files:
        _, one_cpu, _, printed = run([tools / "gpuwhy_bare_scan", file])
        seconds += float(printed)
        cpu += one_cpu
    return seconds, cpu, 0


def measure(program, tools, files, scratch, rounds):
    """Best results by command; "bare" is the reference."""
    best = {name: Best() for name in ["bare", *COMMANDS]}
    for _ in range(rounds):
        best["bare"].add(bare_scan(tools, files))
        for name, options in COMMANDS.items():
            out = scratch / "out"
            shutil.rmtree(out, ignore_errors=True)
            best[name].add(run([program, "analyze", *files, "-q", *[word.format(out=out) for word in options]])[:3])
    return best


def events_of(program, files):
    plan = subprocess.run([program, "analyze", *files, "--memory-need", "--json"], capture_output=True, text=True, check=False).stdout
    return json.loads(plan)["events"]


def nsys_rows(file, bare, rounds):
    """Tables that nsys itself makes of the file, one by one."""
    rows = []
    for report in NSYS_REPORTS if shutil.which("nsys") else ():
        best = Best()
        num_lines = 0
        for _ in range(rounds):
            result = run(["timeout", "600", "nsys", "stats", "--report", report, "--format", "csv", "--output", "-", file])
            best.add(result[:3])
            num_lines = len(result[3].splitlines())
        if num_lines < 4:
            continue  # a table of nothing, or a refusal
        rows.append(f"| nsys stats {report} | {best.seconds:.2f} s | {best.seconds / bare.seconds:.1f} x |")
    return rows


def cell(best, bare):
    return f"{best.seconds:.2f} s, {best.seconds / bare.seconds:.2f} x ({best.cpu / bare.cpu:.2f} x)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--kernels", nargs="*", type=int, default=[1_000_000, 5_000_000, 20_000_000])
    parser.add_argument("--files", nargs="*", type=pathlib.Path, default=[], help="recordings of your own, a row each")
    parser.add_argument("--job", nargs="*", type=pathlib.Path, default=[], help="recordings of one job, a row for all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nsys-rounds", type=int, default=1)
    parser.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path("build/bench"))
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    tools = program.parent
    arguments.scratch.mkdir(parents=True, exist_ok=True)
    rows = [[file] for file in arguments.files]
    for count in arguments.kernels:
        file = arguments.scratch / f"{count}.sqlite"
        if not file.exists():
            run([tools / "gpuwhy_make_trace", file, count, "--processes", "1"])
        rows.append([file])
    rows += [arguments.job] if arguments.job else []
    print("| kernels | file | events | bare scan | " + " | ".join(COMMANDS) + " | peak memory per event |")
    print("|---" * (5 + len(COMMANDS)) + "|")
    last = None
    for files in rows:
        events = events_of(program, files)
        best = measure(program, tools, files, arguments.scratch, arguments.rounds)
        bare = best["bare"]
        size = sum(file.stat().st_size for file in files)
        peak = max(best[name].peak for name in ("answer, 2 threads", "all files"))
        name = f"{events['kernels'] / 1e6:.1f} M" + (f", {len(files)} files" if len(files) > 1 else "")
        print(f"| {name} | {size / 1e6:.0f} MB | {events['total'] / 1e6:.1f} M | {bare.seconds:.2f} s | " +
              " | ".join(cell(best[name], bare) for name in COMMANDS) + f" | {peak / events['total']:.0f} bytes |", flush=True)
        if last:
            growth = best["all files"].seconds / last[1] / (events["kernels"] / last[0])
            print(f"<!-- growth per kernel since the row above: {growth:.2f} -->", flush=True)
        last = (events["kernels"], best["all files"].seconds)
        if len(files) == 1 and events["kernels"] < 2e6:
            for row in nsys_rows(files[0], bare, arguments.nsys_rounds):
                print(f"<!-- {row} -->", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions of a start, of a small analysis, and of a kernel row for reading, analysis and report, counted by callgrind and compared
with tests/data/instructions.json: 5 % more fails. Unlike times, counts are the same on a busy machine. A row's cost is the difference
between two sizes. Skips where valgrind is missing, and in builds by another compiler than the baseline's.

  instructions.py --program build/release/gpuwhy --make-trace build/release/gpuwhy_make_trace --update
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

BASELINE = pathlib.Path(__file__).resolve().parent.parent / "data/instructions.json"
SIZES = (10_000, 40_000)
MOST_GROWTH = 1.05
# Functions that one pass is in, by the name of the pass.
PASSES = {"load": "load_input", "analysis": "profile", "findings": "complete", "report": "write_report_folder"}


def counted(argv, directory):
    """Instructions of a whole command, and of each pass with what it calls."""
    file = directory / "callgrind.out"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={file}", *map(str, argv)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stderr
    total = int(re.search(r"refs:\s+([\d,]+)", said)[1].replace(",", ""))
    listed = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", "--auto=no", file], check=True,
                            capture_output=True, text=True, timeout=300).stdout
    passes = dict.fromkeys(PASSES, 0)
    for name, function in PASSES.items():
        for line in listed.splitlines():
            found = re.match(rf"\s*([\d,]+) .*:gpuwhy::{function}(?:\[abi:\w+\])?\(", line)
            if found:
                passes[name] = max(passes[name], int(found[1].replace(",", "")))
    return total, passes


def measure(program, make_trace):
    figures = {}
    with testing.scratch() as directory:
        for argument in ("--version", "--help"):
            figures[f"{argument[2:]}"] = counted([program, argument], directory)[0]
        results = []
        for size in SIZES:
            trace = directory / f"{size}.sqlite"
            subprocess.run([make_trace, trace, str(size), "--processes", "1"], check=True, stdout=subprocess.DEVNULL)
            results.append(counted([program, "analyze", trace, "--threads", "1", "--out", directory / "out"], directory)[1])
        trace = directory / "small.sqlite"
        subprocess.run([make_trace, trace, "2000"], check=True, stdout=subprocess.DEVNULL)
        figures["small analysis"] = counted([program, "analyze", trace, "--threads", "1"], directory)[0]
    for name, function in PASSES.items():
        assert results[0][name] > 0, f"no function {function} was counted: are there symbols in the program?"
    for name in ("load", "analysis"):
        figures[f"{name}, one kernel"] = round((results[1][name] - results[0][name]) / (SIZES[1] - SIZES[0]))
    figures["findings"] = results[1]["findings"]
    figures["report"] = results[1]["report"]
    return figures


def main():
    arguments = testing.arguments("program", "make-trace", update=False)
    built = re.search(r"built: (.*)", subprocess.run([arguments.program, "--version"], capture_output=True, text=True).stdout)[1]
    if "Release" not in built or "sanitize" in built:
        testing.skip("only a release build is held to it")
    if not shutil.which("valgrind"):
        testing.skip("valgrind is not installed (tools/install-deps.sh build)")
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    if baseline.get("built") != built and not arguments.update:
        testing.skip(f"the baseline is of {baseline.get('built')}, this is {built}")
    figures = measure(arguments.program, arguments.make_trace)
    if arguments.update:
        BASELINE.write_text(json.dumps({"built": built, "instructions": figures}, indent=2) + "\n")
    worse = []
    for name, count in figures.items():
        expected = baseline.get("instructions", {}).get(name, count)
        print(f"{name:>24}: {count:>12,} instructions, {count / expected:6.3f} x the baseline")
        if count > MOST_GROWTH * expected:
            worse.append(name)
    if worse and not arguments.update:
        print(f"more than {MOST_GROWTH - 1:.0%} above the baseline: {', '.join(worse)}. Make it faster, or accept it with --update.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What report.html costs beside the analysis it shows, for a million kernels: both times of one run, so that a busy machine slows
both."""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

KERNELS = 1_000_000
BUDGET = 0.5
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def main():
    asked = testing.arguments("program", "make-trace")
    testing.needs_release(asked.program)
    with tempfile.TemporaryDirectory() as directory:
        trace = pathlib.Path(directory) / "trace.sqlite"
        subprocess.run([asked.make_trace, trace, str(KERNELS)], check=True, stdout=subprocess.DEVNULL)
        ratios = []
        for _ in range(3):
            told = subprocess.run([asked.program, "analyze", trace, "--out", f"{directory}/out", "--self-profile"],
                                  check=True, capture_output=True, text=True).stderr
            passes = {}
            for name, number, unit in re.findall(r"^ +(\S.*?) +([\d.]+) (ns|us|ms|s)$", told, re.MULTILINE):
                passes[name] = passes.get(name, 0.0) + float(number) * UNITS[unit]
            page_s = passes["timeline"] + passes["page"]
            analysis_s = passes["load"] + passes["analyze"] - passes["timeline"]
            ratios.append(page_s / analysis_s)
        size = (pathlib.Path(directory) / "out" / "report.html").stat().st_size
    print(f"{KERNELS} kernels: timeline {passes['timeline']:.3f} s and page {passes['page']:.3f} s beside {analysis_s:.3f} s of reading "
          f"and analysis; at best {min(ratios):.2f} x; {size} bytes")
    assert min(ratios) <= BUDGET, ratios
    return 0


if __name__ == "__main__":
    sys.exit(main())

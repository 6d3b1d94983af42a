#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernel summaries of nsys stats, 2022 to 2025: kernels, totals and calls as a plain reading of the CSV has them."""
import collections
import csv
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

options = testing.arguments("program", "corpus")
folder = testing.needed(options.corpus / "nsys_csv")

failures = 0
paths = sorted([*folder.rglob("*gpukernsum.csv"), *folder.rglob("*cuda_gpu_kern_sum.csv")])
for path in paths:
    expected = collections.defaultdict(lambda: [0, 0, 1 << 62, 0, 0])
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            total = expected[row["Name"]]
            total[0] += int(row["Total Time (ns)"])
            total[1] += int(row["Instances"])
            total[2] = min(total[2], int(float(row["Min (ns)"])))
            total[3] = max(total[3], int(float(row["Max (ns)"])))
            total[4] += "GridXYZ" in row
    run = subprocess.run([options.program, "analyze", str(path), "--json"], capture_output=True, text=True, timeout=250)
    found = {kernel["kernel_name"]: [kernel["total_ns"], kernel["calls"], kernel["min_ns"], kernel["max_ns"],
                                     kernel["num_shapes"]] for kernel in json.loads(run.stdout)["kernels"]}
    if found != dict(expected):
        failures += 1
        print("FAILED:", path.name, [name for name in expected if found.get(name) != expected[name]][:3])
    print(f"{path.name}: {len(found)} kernels")
print(f"{len(paths)} summaries, {failures} failures")
sys.exit(bool(failures) or len(paths) < 13)

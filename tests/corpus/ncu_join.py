#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counters of DeepSeek-OCR's twenty largest kernels on an RTX 5090, joined to nsys' summaries of the same program.

The counters were taken of the kernels in the order of the summary, so the n-th one must be joined to the n-th row: that
is known without comparing a name. Classes are compared with the published ones of the same counters, which were found
by another rule; where they differ, the figures that make the difference must be there.
"""
import collections
import csv
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

options = testing.arguments("program", "corpus")
summaries = testing.needed(options.corpus / "nsys_csv" / "dsocr_rtx5090")
tables = testing.needed(options.corpus / "ncu_csv" / "dsocr_rtx5090")

failures = 0


def check(condition, sentence):
    global failures
    if not condition:
        failures += 1
        print("FAILED:", sentence)


def analyze(summary, files):
    run = subprocess.run([options.program, "analyze", str(summary), "--json", "--ncu", *map(str, files)],
                         capture_output=True, text=True, timeout=250)
    check(run.returncode == 0, run.stderr)
    return json.loads(run.stdout)


def rows_of(summary):
    with open(summary, newline="") as file:
        return list(csv.DictReader(file))


all_files = sorted(tables.glob("*.csv"))
whole = summaries / "all-stage_cuda_gpu_kern_sum.csv"
rows = rows_of(whole)
document = analyze(whole, all_files)
joined = document["counters"]["kernels"]
check(len(joined) == 20, f"{len(joined)} launches: the seven files of each must be one")

# The kernel an ncu name belongs to, from the file it came from.
for number in range(1, 21):
    table = rows_of(tables / f"kernel_{number:04d}.ncu.details.csv")
    name = table[0]["Kernel Name"]
    grid = [int(n) for n in table[0]["Grid Size"].strip("()").split(",")]
    found = [k for k in joined if k["kernel_name"] == name and k["grid"] == grid]
    check(len(found) == 1, f"kernel {number}: {len(found)} results")
    expected = rows[number - 1]["Name"]
    check(found and found[0]["matched_kernel"] == expected,
          f"kernel {number}: joined to {found and found[0]['matched_kernel']}, not {expected}")
    check(found and found[0]["bound"] is not None, f"kernel {number} has no class")
    found[0]["number"] = number

# Coverage: exactly the time of the twenty rows.
covered = sum(int(row["Total Time (ns)"]) for row in rows[:20])
total = sum(int(row["Total Time (ns)"]) for row in rows)
check(document["counters"]["coverage"][-1]["covered_ns"] == covered, "covered time")
check(document["counters"]["coverage"][-1]["kernel_ns"] == total, "all time")
print(f"20 kernels cover {covered / total:.1%} of GPU time")

# By stage, from the summaries of the stages: what the joined names take there.
for stage in ("prefill", "decode", "sam", "clip"):
    path = summaries / f"{stage}_cuda_gpu_kern_sum.csv"
    stage_rows = rows_of(path)
    by_stage = analyze(path, all_files)["counters"]
    names = {row["Name"] for row in rows[:20]}
    used = {k["matched_kernel"] for k in by_stage["kernels"] if k["covered_ns"]}
    withheld = {k["matched_kernel"] for k in by_stage["kernels"] if k["confidence"] == "withheld"}
    check(used | withheld == names & {row["Name"] for row in stage_rows}, f"{stage}: {used ^ names}")
    expected = sum(int(row["Total Time (ns)"]) for row in stage_rows if row["Name"] in used)
    check(by_stage["coverage"][-1]["covered_ns"] == expected, f"{stage}: covered")
    print(f"{stage}: {by_stage['coverage'][-1]['fraction']:.1%} covered by {len(used)} kernels, {len(withheld)} withheld")

# Published: memory where memory throughput exceeds compute, compute where it is the other way round, balanced where
# both are low. No share of a ceiling is asked for, waiting warps and launches are not looked at.
PUBLISHED = "MMCBCBBMBBBMMMMCCMMB"
WORDS = {"M": "memory", "C": "compute", "B": "balanced"}
check(collections.Counter(PUBLISHED) == {"M": 9, "B": 7, "C": 4}, "the published counts")
for kernel in sorted(joined, key=lambda k: k["number"]):
    published = WORDS[PUBLISHED[kernel["number"] - 1]]
    ours, roof = kernel["bound"], kernel["roofline"]
    nearest = max(roof["memory_fraction"], roof["compute_fraction"])
    if ours == published:
        why = "the same"
    elif ours == "launch":
        why = f"{kernel['ncu_duration_ns'] / 1e3:.1f} us and {roof['waves']:.2f} waves: launching is all there is"
        check(kernel["ncu_duration_ns"] < 5000 and roof["waves"] < 1, f"{kernel['number']}: launch")
    elif ours == "latency":
        why = f"reaches {nearest:.0%} of any ceiling and waits {roof['no_eligible_fraction']:.0%} of cycles"
        check(nearest < 0.6, f"{kernel['number']}: latency")
    else:
        why = f"{roof['memory_level']} at {roof['memory_fraction']:.0%} is its ceiling, compute at " \
              f"{roof['compute_fraction']:.0%}"
        check(ours == "memory" and roof["memory_fraction"] >= 0.6 and roof["memory_fraction"] > roof["compute_fraction"],
              f"{kernel['number']}: {ours}")
    print(f"{kernel['number']:>3} {published:>9} -> {ours:<8} {why}")
counts = collections.Counter(kernel["bound"] for kernel in joined)
print(dict(counts))
check(sum(counts.values()) == 20 and None not in counts, f"{counts}")
print(f"{failures} failures")
sys.exit(bool(failures))

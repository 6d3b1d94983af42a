#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ncu prints, read by gpuwhy: every CSV and text of the corpus, and the same launch from several of them.

A launch read from its .ncu-rep, its raw page (scaled and in base units), its details page, its summary by kernel and
its text must have the same values, within what each printed. The cells are converted here by a table of their own.
"""
import collections
import csv
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

options = testing.arguments("program", "corpus")
tables = testing.needed(options.corpus / "ncu_csv")

failures = 0


def check(condition, sentence):
    global failures
    if not condition:
        failures += 1
        print("FAILED:", sentence)


def run(path):
    return subprocess.run([options.program, "ncu", str(path), "--json"], capture_output=True, text=True, timeout=250)


def read(path):
    result = run(path)
    check(result.returncode == 0, f"{path.name}: {result.stderr}")
    return json.loads(result.stdout) if result.returncode == 0 else {"results": [], "units": {}}


# -- every file parses to as many launches as a plain look at its rows finds

def launches_of(path):
    text = path.read_text()
    rows = list(csv.reader(text[re.search(r'^"?(ID|Process ID)"?,', text, re.M).start():].splitlines()))
    at = {name: i for i, name in enumerate(rows[0])}
    identity = ["ID", "Process ID"] if "ID" in at else ["Process ID", "Kernel Name", "Block Size", "Grid Size"]
    return {tuple(row[at[column]] for column in identity) for row in rows[1:] if row[at["Kernel Name"]]}


csv_files = [path for path in sorted(tables.rglob("*.csv")) if "source" not in path.name]
numbers = 0
for path in csv_files:
    document = read(path)
    check(len(document["results"]) == len(launches_of(path)), f"{path.name}: {len(document['results'])} launches")
    count = sum(isinstance(v, (int, float)) for r in document["results"] for v in r["metrics"].values())
    check(count > 0, f"{path.name}: no number")
    numbers += count
print(f"{len(csv_files)} CSV files, {numbers} numbers")
check(len([p for p in csv_files if p.parent.name == "dsocr_rtx5090"]) == 140, "140 files of DeepSeek-OCR")

texts = sorted(tables.rglob("*.txt"))
for path in texts:
    document = read(path)
    check(document["results"] and all(len(r["metrics"]) >= 10 for r in document["results"]), f"{path.name}: empty")
print(f"{len(texts)} text files")

for path in sorted(tables.rglob("*source*.csv")):
    result = run(path)
    check(result.returncode != 0 and "source page" in result.stderr, f"{path.name}: {result.stderr}")


# -- the same launch, from five files

SCALES = {"": 1, "%": 1, "nsecond": 1, "usecond": 1e3, "msecond": 1e6, "second": 1e9, "byte": 1, "Kbyte": 1e3,
          "Mbyte": 1e6, "Gbyte": 1e9, "byte/second": 1, "Kbyte/second": 1e3, "Mbyte/second": 1e6, "Gbyte/second": 1e9,
          "Tbyte/second": 1e12, "byte/block": 1, "Kbyte/block": 1e3, "cycle/second": 1, "cycle/usecond": 1e6,
          "cycle/nsecond": 1e9, "byte/cycle": 1, "Kbyte/cycle": 1e3, "cycle": 1, "inst": 1, "inst/cycle": 1, "block": 1,
          "warp": 1, "thread": 1, "register/thread": 1, "sectors": 1}


def printed(path):
    """launch -> [(value in base units, half of the last digit printed)]"""
    rows = list(csv.reader(path.read_text().splitlines()))
    at = {name: i for i, name in enumerate(rows[0])}
    if "Metric Name" in at:
        cells = [(row[at["ID"]], row[at["Metric Unit"]], row[at["Metric Value"]]) for row in rows[1:]]
    else:
        cells = [(row[at["ID"]], unit, cell) for row in rows[2:] for unit, cell in zip(rows[1], row)]
    values = collections.defaultdict(list)
    for launch, unit, cell in cells:
        if re.fullmatch(r"-?\d+(\.\d+)?", cell):
            values[launch].append((float(cell) * SCALES[unit], 0.501 * 10 ** -len(cell.partition(".")[2]) * SCALES[unit]))
    return values


PAIRS = {"nvtrain_CuVectorAddDrv": "v2022.3.0_CuVectorAddDrv", "nvtrain_manual_nvtx": "v2022.3.0_manual_nvtx",
         "esmm_a": "v2023.1.1_esmm_a10g_a", "esmm_out": "v2023.1.1_esmm_a10g_output"}
for stem, report_name in PAIRS.items():
    report = read(options.corpus / "ncu_rep" / (report_name + ".ncu-rep"))["results"]
    for page in ("raw", "raw_base", "details"):
        path = tables / "tool2022.3" / f"{stem}.{page}.csv"
        document = read(path)
        cells = printed(path)
        compared = 0
        for one, other in zip(document["results"], report, strict=True):
            check(one["kernel_name"] == other["kernel_name"], f"{path.name}: names")
            check(one["nvtx"] == other["nvtx"], f"{path.name}: {one['nvtx']} and {other['nvtx']}")
            check(page == "details" or one["grid"] == other["grid"], f"{path.name}: grid")
            for metric, value in one["metrics"].items():
                if isinstance(value, str):
                    continue
                stored = other["metrics"].get(metric)
                # The cell it was read from: a details page has labels, so it is found by its value.
                slack = max((slack for number, slack in cells[str(one["id"])]
                             if abs(number - value) <= 1e-9 * abs(value)), default=None)
                check(slack is not None, f"{path.name}: {metric} {value} is in no cell")
                check(isinstance(stored, (int, float)) and abs(stored - value) <= slack + abs(stored) * 1e-9,
                      f"{path.name}: {metric} {value}, report {stored}, slack {slack}")
                compared += 1
        check(compared >= 10, f"{path.name}: compared {compared}")
        print(f"{path.name}: {compared} values as in the report")

print(f"{failures} failures")
sys.exit(bool(failures))

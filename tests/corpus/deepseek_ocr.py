#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""DeepSeek-OCR end to end: the bundle of a kernel summary with a folder of exported counters, against the files themselves.

The facts are computed here, from the CSV of nsys and ncu and from nothing of gpuwhy.
"""
import collections
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

SECTIONS = ["Executive Summary", "Recommendations", "Environment", "Aggregates", "Per-Stage Timings", "MFU", "Stage Takeaways",
            "Top Operators", "Top Kernels"]
ROWS = 20
NS = {"ns": 1, "us": 1e3, "ms": 1e6}


def kernels_of(path):
    """name -> (total in ns, calls), of the summary that nsys stats printed."""
    sums = collections.defaultdict(lambda: [0, 0])
    for row in csv.DictReader(path.open(newline="")):
        sums[row["Name"]][0] += int(row["Total Time (ns)"])
        sums[row["Name"]][1] += int(row["Instances"])
    return {name: tuple(both) for name, both in sums.items()}


def launches_of(folder):
    """(number, process, kernel) -> its pages and its duration in ns, of all files that ncu printed."""
    launches = collections.defaultdict(lambda: {"pages": set(), "ns": None})
    for path in sorted(folder.glob("*.csv")):
        for row in csv.DictReader(path.open(newline="")):
            launch = launches[row["ID"], row["Process ID"], row["Kernel Name"]]
            launch["pages"].add(path.name)
            if row["Metric Name"] == "Duration":
                launch["ns"] = float(row["Metric Value"].replace(",", "")) * NS[row["Metric Unit"]]
    return launches


def table_of(markdown, title):
    """Rows of the first table below a heading, as dictionaries."""
    lines = markdown.split(f"## {title}\n", 1)[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if line.startswith("|")]
    return rows[0], [dict(zip(rows[0], row)) for row in rows[2:]]


def check_stage(program, source, folder, kernels, launches):
    with tempfile.TemporaryDirectory() as out:
        result = subprocess.run([program, "analyze", source, "--ncu", folder, "--model", "deepseek_ocr", "-o", out],
                                capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, result.stderr
        read = {path.name: path.read_text() for path in pathlib.Path(out).iterdir() if path.suffix in (".md", ".json")}
    metrics = json.loads(read["metrics.json"])
    whole_ns = sum(total for total, _ in kernels.values())
    assert metrics["capture"]["kernel_ns"] == whole_ns
    # kernels.md: the specified columns, the largest first, of as many rows as there are, at most 20.
    columns, rows = table_of(read["kernels.md"], "Top Kernels")
    assert columns[:5] == ["kernel_name", "total_ms", "calls", "mean_ms", "device"], columns
    largest = sorted(kernels.items(), key=lambda one: -one[1][0])[:ROWS]
    assert len(rows) == len(largest)
    for row, (name, (total, calls)) in zip(rows, largest):
        same = [other for other, sums in kernels.items() if sums[0] == total]
        assert row["kernel_name"].strip("`").replace("\\|", "|") in same, (row["kernel_name"], name)
        assert float(row["total_ms"]) == round(total / 1e6, 6) and int(row["calls"]) == calls, row
        assert abs(float(row["mean_ms"]) - total / calls / 1e6) <= 1e-6, row
    # report.md shows as many kernels.
    assert len(table_of(read["report.md"], "Top Kernels")[1]) == len(rows)
    # All sections, and no sentence that denies what was recorded.
    summary = read["stakeholder_summary.md"]
    assert re.findall(r"^## (.*)$", summary, re.M) == SECTIONS, re.findall(r"^## (.*)$", summary, re.M)
    assert "without GPU work" not in summary and "DeepSeek-OCR" in summary
    assert len(table_of(summary, "Top Kernels")[1]) == min(len(kernels), 10)
    # All pages of one kernel are one launch, with what several of them say.
    counters = metrics["counters"]["kernels"]
    expected = sorted((name, launch["ns"]) for (_, _, name), launch in launches.items())
    assert sorted((row["kernel_name"], row["ncu_duration_ns"]) for row in counters) == expected
    assert all(row["roofline"][key] for key in ("dram_bytes", "achieved_occupancy_fraction") for row in counters)
    return len(rows)


def main():
    arguments = testing.arguments("program", "corpus")
    folder = arguments.corpus / "ncu_csv" / "dsocr_rtx5090"
    sources = testing.needed(sorted((arguments.corpus / "nsys_csv" / "dsocr_rtx5090").glob("*.csv")))
    launches = launches_of(folder)
    pages = sum(len(launch["pages"]) for launch in launches.values())
    assert len(launches) > 1 and pages > len(launches), "a folder of several pages a launch"
    for source in sources:
        rows = check_stage(arguments.program, source, folder, kernels_of(source), launches)
        print(f"{source.name}: {rows} rows of kernels.md")
    print(f"{len(sources)} summaries, each with {len(launches)} launches of {pages} printed pages: as in the files")
    return 0


if __name__ == "__main__":
    sys.exit(main())

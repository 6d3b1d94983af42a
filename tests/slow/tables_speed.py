#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Size and time of launches.parquet for a million kernels, beside pyarrow writing the same table.

The time to write is that of the export without that of `gpuwhy table kernels`, which analyzes the same and prints little.
"""
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "python"))
from prefix import tools_python

KERNELS = 1_000_000
MOST_BYTES = 1.0  # times the file of pyarrow with zstd
MOST_TIME = 4.0   # times pyarrow with zstd on one thread: the analysis is not in it, a busy machine is


def seconds(words):
    best = float("inf")
    for _ in range(3):
        began = time.monotonic()
        subprocess.run([str(word) for word in words], check=True, capture_output=True)
        best = min(best, time.monotonic() - began)
    return best


def pyarrow_figures(file, out):
    import pyarrow
    import pyarrow.parquet
    pyarrow.set_cpu_count(1)
    table = pyarrow.parquet.read_table(file, use_threads=False)
    figures = {}
    for codec in ("gzip", "zstd", "none"):
        began = time.monotonic()
        pyarrow.parquet.write_table(table, out, compression=codec, row_group_size=1 << 17)
        figures[codec] = (out.stat().st_size, time.monotonic() - began)
    return figures


def main():
    arguments = testing.arguments("program", "make-trace", inside=False)  # inside: this Python has pyarrow
    if not arguments.inside:
        return subprocess.run([tools_python(), __file__, *sys.argv[1:], "--inside"]).returncode
    with testing.scratch(prefix="gpuwhy-tables-") as folder:
        trace = folder / "trace.sqlite"
        subprocess.run([arguments.make_trace, trace, str(KERNELS)], check=True, capture_output=True)
        whole = seconds([arguments.program, "export", trace, "--format", "parquet", "--out", folder / "tables"])
        analysis = seconds([arguments.program, "table", "kernels", trace])
        file = folder / "tables" / "launches.parquet"
        size, wrote = file.stat().st_size, whole - analysis
        others = pyarrow_figures(file, folder / "other.parquet")
        print(f"gpuwhy: {size:,} bytes, {size / KERNELS:.1f} per launch; {wrote:.2f} s to write all tables, {whole:.2f} s with the analysis")
        for codec, (other, took) in others.items():
            print(f"pyarrow, {codec}: {other:,} bytes, {took:.2f} s")
        if size > MOST_BYTES * others["zstd"][0] or wrote > MOST_TIME * others["zstd"][1]:
            print(f"more than {MOST_BYTES} times the bytes or {MOST_TIME} times the time of pyarrow with zstd")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports of Nsight Compute, read by gpuwhy, against two readers that share no code with it.

Every .ncu-rep of the corpus is walked here byte by byte: it must end exactly at the end of the file, and each stored
number must come out of gpuwhy unchanged. Those that the installed ncu opens must agree with its raw page, every
number of every kernel, within the last digit it prints.
"""
import csv
import io
import json
import math
import pathlib
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

options = testing.arguments("program", "corpus")

failures = []


def check(condition, sentence):
    if not condition:
        failures.append(sentence)
        print("FAILED:", sentence)


def gpuwhy_results(path):
    run = subprocess.run([options.program, "ncu", str(path), "--json"], capture_output=True, text=True, timeout=250)
    check(run.returncode == 0, f"{path.name}: exit {run.returncode}: {run.stderr}")
    return json.loads(run.stdout)


# -- protobuf, as little of it as is needed

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif kind == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        else:
            assert kind == 2, kind
            size, at = varint(data, at)
            value = data[at:at + size]
            assert len(value) == size
            at += size
        yield number, value


def field(data, number, otherwise=None):
    return next((value for at, value in fields(data) if at == number), otherwise)


def pieces(data):
    at = 0
    while at < len(data):
        size = struct.unpack_from("<I", data, at)[0]
        yield data[at + 4:at + 4 + size]
        at += 4 + size
    assert at == len(data), "a piece goes beyond its payload"


def walk_report(path):
    """[(mangled name, grid, block, {metric: value})], all numbers and texts of all results."""
    data = path.read_bytes()
    assert data[:4] == b"NVR\0"
    at = 8 + struct.unpack_from("<I", data, 4)[0]
    names, results = [], []
    while at < len(data):
        size = struct.unpack_from("<I", data, at)[0]
        header = data[at + 4:at + 4 + size]
        at += 4 + size
        payload_size = field(header, 5, 0)
        payload = data[at:at + payload_size]
        at += payload_size
        names += [value.decode() for number, value in fields(field(header, 4, b"")) if number == 1]
        sources, count = field(header, 1, 0), field(header, 2, 0)
        results += list(pieces(payload))[sources:sources + count]
    assert at == len(data), "the walk does not end at the end of the file"
    launches = []
    for result in results:
        metrics = {}
        for number, value in fields(result):
            if number == 13 and field(value, 2) is not None:
                stored = [v for _, v in fields(field(value, 2))]
                if stored and stored[0] not in (b"",):
                    last = stored[-1]
                    metrics[names[field(value, 1)]] = last.decode() if isinstance(last, bytes) else last
        axes = [[field(field(result, n), axis, 0) for axis in (1, 2, 3)] for n in (10, 11)]
        launches.append((field(result, 5).decode(), *axes, metrics))
    return launches


def same_as_stored(path, document):
    stored = walk_report(path)
    check(len(stored) == len(document["results"]), f"{path.name}: {len(stored)} results stored")
    troubles = [t for t in document["data_quality"] if t["kind"] != "ncu_not_a_number"]
    check(not troubles, f"{path.name}: {troubles}")
    compared = 0
    for (mangled, grid, block, metrics), read in zip(stored, document["results"]):
        check((read["mangled_name"] or "") == mangled, f"{path.name}: {mangled}")
        check(read["grid"] == grid and read["block"] == block, f"{path.name}: shape of {mangled}")
        finite = {n: v for n, v in metrics.items() if not isinstance(v, float) or math.isfinite(v)}
        check(finite.keys() == read["metrics"].keys(),
              f"{path.name}: {sorted(finite.keys() ^ read['metrics'].keys())[:5]}")
        for name, value in finite.items():
            other = read["metrics"].get(name)
            check(other == value, f"{path.name}: {name} stored {value!r}, read {other!r}")
            compared += not isinstance(value, str)
    return compared


# -- ncu itself

UNITS = {"nsecond": 1, "usecond": 1e3, "msecond": 1e6, "second": 1e9}
PREFIX = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


def scale_of(unit):
    if unit in UNITS:
        return UNITS[unit]
    above, _, below = unit.partition("/")
    factor = 1
    for prefix, power in PREFIX.items():
        if prefix and above == prefix + "byte":
            factor = power
    if below in UNITS and below != "second":
        factor *= 1e9 / UNITS[below]
    return factor


def raw_page(path, *more):
    run = subprocess.run(["ncu", "--import", str(path), "--page", "raw", "--csv", *more], capture_output=True, text=True,
                         timeout=120)
    if "==ERROR==" in run.stdout or run.returncode != 0:
        return None
    rows = list(csv.reader(io.StringIO(run.stdout)))
    return rows[0], rows[1], rows[2:]


LAUNCH_COLUMNS = {"ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream"}


def number(cell):
    try:
        return float(cell)
    except ValueError:
        return None


def same_as_ncu(path, document, *more):
    """How many numbers agree. Where a value is not a number ncu's base page says so; its scaled page prints some as 0."""
    page, base = raw_page(path, *more), raw_page(path, "--print-units", "base")
    if page is None:
        return None
    headings, units, rows = page
    check(len(rows) == len(document["results"]), f"{path.name}: ncu prints {len(rows)} launches")
    compared = 0
    check(headings == base[0], f"{path.name}: ncu's pages differ in columns")
    for row, base_row, read in zip(rows, base[2], document["results"]):
        for heading, unit, cell, base_cell in zip(headings, units, row, base_row):
            value = number(cell)
            if heading in LAUNCH_COLUMNS or "_Range:" in heading or value is None:
                continue
            scale = scale_of(unit)
            digits = len(cell.partition(".")[2])
            # Half of the last digit, and what a double loses in the conversion.
            slack = 0.5 * 10 ** -digits * scale * 1.001 + abs(value * scale) * 1e-9
            other = read["metrics"].get(heading)
            if base_cell == "nan":
                check(other is None, f"{path.name}: {heading}: ncu {cell}, gpuwhy {other!r}")
                continue
            check(other is not None and not isinstance(other, str) and abs(other - value * scale) <= slack,
                  f"{path.name}: {heading}: ncu {cell} {unit}, gpuwhy {other!r}")
            if more and document["units"].get(heading, unit) != unit:
                check(False, f"{path.name}: {heading} is in {unit}, gpuwhy says {document['units'][heading]}")
            compared += 1
    return compared


reports = testing.needed(sorted((options.corpus / "ncu_rep").glob("*.ncu-rep")))
opened = 0
for report in reports:
    document = gpuwhy_results(report)
    stored = same_as_stored(report, document)
    line = f"{report.name}: {len(document['results'])} results, {stored} stored numbers"
    if shutil.which("ncu"):
        counts = [same_as_ncu(report, document, *more) for more in ([], ["--print-units", "base"])]
        opened += counts[0] is not None
        line += f", ncu agrees on {counts}" if counts[0] is not None else ", refused by ncu"
    print(line)
    check(stored > 100, f"{report.name}: only {stored} numbers")
check(len(reports) == 11, f"{len(reports)} reports")
check(opened == 5 or not shutil.which("ncu"), f"ncu opened {opened}")
print(f"{len(failures)} failures")
sys.exit(bool(failures))

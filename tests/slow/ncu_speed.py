#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reading reports of Nsight Compute: 3 MB in under 50 ms, 200 MB in linear time and at most twice the file in memory.

The reports are written here, field by field: results of a few hundred metrics with sections, rules and a source each,
in the proportions of real ones.
"""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

options = testing.arguments("program")


def varint(value):
    out = bytearray()
    while True:
        out.append(value & 127 | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def double(field, value):
    return varint(field << 3 | 1) + struct.pack("<d", value)


METRICS = 800


def result(index):
    shape = number(1, 8) + number(2, 2) + number(3, 1)
    metrics = b"".join(data(13, number(1, m) + data(2, double(3, m * 1.5 + index))) for m in range(METRICS))
    section = data(17, data(1, b"SpeedOfLight") + data(2, b"GPU Speed Of Light Throughput") + data(7, b"x" * 400))
    rule = data(19, data(1, b"Rule") + data(4, b"SpeedOfLight") + data(3, data(1, data(1, data(1, b"too few warps " * 20)))))
    return (number(1, 77) + data(5, b"_Z4gemmPf") + data(6, b"gemm") + data(7, b"gemm(float *)") + data(10, shape)
            + data(11, shape) + metrics + section * 10 + rule * 4 + number(22, 1) + number(23, 7))


def with_length(message):
    return struct.pack("<I", len(message)) + message


def write_report(path, size):
    names = b"".join(data(1, f"unit__quantity_{m}.sum".encode()) for m in range(METRICS))
    payload = with_length(b"s" * 4000) + with_length(result(1))
    header = with_length(number(1, 1) + number(2, 1) + number(5, len(payload)) + data(6, number(1, 42)))
    first = with_length(number(1, 0) + number(2, 0) + data(4, names) + number(5, 0))
    block = header + payload
    count = max(1, size // len(block))
    with open(path, "wb") as file:
        file.write(b"NVR\0" + with_length(number(1, 7)) + first)
        for _ in range(count):
            file.write(block)
    return count


def measure(path):
    """Seconds and peak bytes of `gpuwhy ncu` that reads all and prints one kernel."""
    start = time.monotonic()
    process = subprocess.Popen([options.program, "ncu", str(path), "--kernel", "no such kernel"],
                               stdout=subprocess.PIPE)
    process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, status
    return time.monotonic() - start, usage.ru_maxrss * 1024


testing.needs_release(options.program)
failed = False
with tempfile.TemporaryDirectory() as directory:
    report = pathlib.Path(directory) / "run.ncu-rep"
    times = {}
    for size in (3_000_000, 50_000_000, 200_000_000):
        write_report(report, size)
        actual = report.stat().st_size
        measure(report)
        seconds, memory = min(measure(report) for _ in range(3))
        times[size] = seconds
        print(f"{actual / 1e6:.0f} MB: {seconds * 1e3:.0f} ms, {memory / actual:.2f} x the file in memory")
        if size > 3_000_000 and memory > 2 * actual:
            failed = True
    per_byte = [times[size] / size for size in (50_000_000, 200_000_000)]
    print(f"200 MB costs {per_byte[1] / per_byte[0]:.2f} times as much a byte as 50 MB")
    failed |= times[3_000_000] > 0.05 or per_byte[1] > 1.5 * per_byte[0]
sys.exit(failed)

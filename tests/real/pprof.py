#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kernels.pb.gz, opened by `go tool pprof -top`: totals and rows equal metrics.json, for time and for launches. Skips where
Go is missing."""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing
import exported


BLOCK = re.compile(r"\[(prologue|layer( [A-Z])?|epilogue)\]")


def top(path, sample, unit, home, *words):
    """name -> (flat, cumulative) in whole units, and the total."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PPROF_TMPDIR": str(home), "GOFLAGS": "-mod=mod",
                   "GOCACHE": str(home / "cache")}
    result = subprocess.run(["go", "tool", "pprof", "-top", "-nodecount=100000", "-nodefraction=0", "-edgefraction=0",
                             f"-sample_index={sample}", f"-unit={unit}", *words, str(path)], capture_output=True, text=True,
                            env=environment, cwd=home, timeout=120)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    total = next(int(re.search(r"of (\d+)", line).group(1)) for line in lines if line.startswith("Showing"))
    start = next(i for i, line in enumerate(lines) if line.split() == ["flat", "flat%", "sum%", "cum", "cum%"])
    rows = {}
    for line in lines[start + 1:]:
        flat, _, _, cumulative, _, name = line.strip().split(None, 5) if len(line.split(None, 5)) > 5 else \
            (*line.strip().split(None, 4), "")
        assert name not in rows, f"two rows of {name}"
        rows[name] = tuple(int(re.match(r"\d+", value).group()) for value in (flat, cumulative))
    return rows, total


def compare(path, metrics, in_model, home):
    families = {kernel["kernel_name"]: kernel["family"] for kernel in metrics["kernels"]}
    for sample, unit, key in (("gpu_time", "nanoseconds", "total_ns"), ("launches", "count", "calls")):
        rows, total = top(path, sample, unit, home)
        expected = collections.Counter()
        for kernel in metrics["kernels"]:
            expected["[" + kernel["stage"] + "]"] += kernel[key]
            expected["[" + kernel["family"] + "]"] += kernel[key]
        # Kernels with a part have frames of the model instead of their family.
        for kernel in in_model:
            number = int(kernel["duration_ns"]) if key == "total_ns" else 1
            expected["[" + families[kernel["kernel_name"]] + "]"] -= number
            for frame in ("pass", "part"):
                expected["[" + kernel[frame] + "]"] += number
        expected = +expected
        blocks = [name for name in rows if BLOCK.fullmatch(name)]
        assert sum(rows[name][1] for name in blocks) == sum(int(kernel["duration_ns"]) if key == "total_ns" else 1 for kernel in in_model)
        assert total == sum(kernel[key] for kernel in metrics["kernels"]), (sample, total)
        for name, value in expected.items():
            assert rows[name] == (0, value), (name, rows[name], value)
        kernels = collections.Counter()
        for kernel in metrics["kernels"]:
            kernels[kernel["kernel_name"]] += kernel[key]
        leaves = sorted(flat for name, (flat, _) in rows.items() if name not in expected and name not in blocks)
        assert leaves == sorted(value for value in kernels.values()), (sample, leaves, kernels)


def main():
    arguments = testing.arguments("program", "make-trace", "corpus")
    if not shutil.which("go"):
        testing.skip("Go is not here (tools/install-deps.sh viewers)")
    with testing.scratch() as directory:
        for name, path in exported.recordings(arguments, directory, num_kernels=20_000).items():
            out = directory / name
            subprocess.run([arguments.program, "analyze", path, "--out", out], check=True, capture_output=True)
            metrics = json.loads((out / "metrics.json").read_text())
            if not metrics["kernels"]:
                continue
            alone = directory / "alone.pb.gz"
            exported.export(arguments.program, path, "--format", "pprof", "--out", alone)
            assert alone.read_bytes() == (out / "kernels.pb.gz").read_bytes()
            in_model = [kernel for kernel in exported.kernels_in_model(arguments.program, path) if kernel["part"]]
            assert in_model or name != "layers"
            compare(alone, metrics, in_model, directory)
            devices = {kernel["device"] for kernel in metrics["kernels"]}
            rows, _ = top(alone, "gpu_time", "nanoseconds", directory, f"-tagfocus=device={min(devices)}")
            total = sum(flat for flat, _ in rows.values())
            assert total == sum(k["total_ns"] for k in metrics["kernels"] if k["device"] == min(devices)), total
            print(f"{name}: {len(metrics['kernels'])} rows, {alone.stat().st_size} bytes")


main()

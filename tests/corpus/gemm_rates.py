#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of the rates of GEMMs, attention and collectives: equal to those computed here from the traces, and to published ones.

  gemm_rates.py --program build/release/gpuwhy --corpus DIR
"""
import collections
import decimal
import gzip
import json
import math
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

# Operator, sizes, calls, TFLOP/s, per cent of the GPU's peak.
PUBLISHED = {
    "tracelens_sglang_qwen3-8b_prefilldecode": [
        ("aten::mm", "15360x4096 x 4096x24576", 36, 456.9, 35),
        ("aten::mm", "15360x12288 x 12288x4096", 36, 583.2, 45),
        ("aten::mm", "15360x4096 x 4096x6144", 36, 542.6, 41),
        ("aten::mm", "15360x4096 x 4096x4096", 36, 629.1, 48),
        ("aten::mm", "15x4096 x 4096x151936", 1, 42.8, 3),
    ],
    "tracelens_h100_qwen1.5-0.5b": [
        ("aten::mm", "8944x1024 x 1024x2816", 48, 616.6, 62),
        ("aten::addmm", "8944x1024 x 1024x1024", 72, 595.9, 60),
        ("aten::mm", "8944x2816 x 2816x1024", 24, 682.2, 69),
        ("aten::mm", "8944x1024 x 1024x1024", 24, 593.8, 60),
    ],
    "tracelens_h100_timesformer": [
        ("aten::bmm", "96x3137x64 x 96x64x3137", 12, 63.6, 6),
        ("aten::bmm", "96x3137x3137 x 96x3137x64", 12, 71.2, 7),
        ("aten::addmm", "25089x768 x 768x3072", 12, 722.0, 73),
        ("aten::addmm", "25089x3072 x 3072x768", 12, 751.3, 76),
        ("aten::addmm", "25096x768 x 768x2304", 12, 710.0, 72),
        ("aten::addmm", "25088x768 x 768x2304", 12, 725.7, 73),
        ("aten::bmm", "37632x8x8 x 37632x8x64", 12, 2.8, 0),
        ("aten::addmm", "25088x768 x 768x768", 24, 645.0, 65),
        ("aten::addmm", "25096x768 x 768x768", 12, 637.5, 64),
    ],
    "tracelens_b200_eager": [
        ("aten::addmm", "888x2880 x 2880x640", 36, 410.0, 18),
        ("aten::addmm", "888x2880 x 2880x128", 36, 99.8, 4),
        ("aten::addmm", "888x512 x 512x2880", 36, 414.2, 18),
        ("aten::mm", "1x2880 x 2880x25136", 1, 4.3, 0),
    ],
}
# Slowest and fastest all-reduce, GB/s of bus bandwidth.
PUBLISHED_BUS = {"hta_nccl_data": (1.4, 13.0)}

WIDTHS = {"Float": 4, "Long": 8, "BFloat16": 2, "Half": 2, "Int": 4, "Byte": 1}
FIRST = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1, "aten::_scaled_mm": 0, "aten::linear": 0}
FLASH = "aten::_flash_attention_forward"  # query, keys and values: batch, positions, heads, width; the ninth input: causal
CATEGORIES = {"Operator": "cpu_op", "Runtime": "cuda_runtime", "Kernel": "kernel"}  # as in 2021
TYPES = {"c10::BFloat16": "bf16", "c10::Half": "fp16", "float": "fp32", "double": "fp64", "signed char": "int8"}


def is_wanted(op):
    args = op.get("args", {})
    return (op["name"] in (*FIRST, FLASH) and "Input Dims" in args) or "Collective name" in args


def launches(events):
    """(operator, kernel ns): the innermost operator around the call that launched each kernel."""
    calls = {}
    ops = collections.defaultdict(list)
    for event in events:
        event["cat"] = CATEGORIES.get(event["cat"], event["cat"])
        event["start"] = event["ts"] * 1000
        event["end"] = event["start"] + event["dur"] * 1000
        place = (event["pid"], event["tid"])
        if event["cat"] in ("cuda_runtime", "cuda_driver") and "correlation" in event.get("args", {}):
            calls[event["args"]["correlation"]] = event
        elif event["cat"] == "cpu_op":
            ops[place].append(event)
    by_thread = collections.defaultdict(list)
    for event in events:
        args = event.get("args", {})
        call = calls.get(args.get("correlation")) if event["cat"] == "kernel" else None
        if call and not args.get("graph node id") and not call["name"].endswith("GraphLaunch"):
            by_thread[call["pid"], call["tid"]].append((call["start"], event["end"] - event["start"]))
    for place, kernels in by_thread.items():
        ops[place].sort(key=lambda op: (op["start"], -op["end"]))
        opened, following = [], 0
        for start, length in sorted(kernels):
            while following < len(ops[place]) and ops[place][following]["start"] <= start:
                opened.append(ops[place][following])
                following += 1
            opened = [op for op in opened if op["end"] >= start]
            if opened:
                yield opened[-1], length


def products(calls):
    rates = collections.defaultdict(lambda: [0, 0, 0])
    for op, length in calls:
        first = FIRST.get(op["name"])
        dims = op["args"].get("Input Dims")
        if first is None or not dims or len(dims) < first + 2:
            continue
        left, right = dims[first:first + 2]
        if op["name"] == "aten::linear":
            if any(other["name"] in FIRST and other is not op and op["tid"] == other["tid"] and
                   op["start"] <= other["start"] < op["end"] for other, _ in calls):
                continue
            columns = right[0]
        else:
            columns = right[-1]
        kind = op["args"].get("Input type", [""] * 3)[first]
        key = (op["name"], f"{'x'.join(map(str, left))} x {'x'.join(map(str, right))}", TYPES.get(kind, kind))
        rates[key][0] += 1
        rates[key][1] += length
        rates[key][2] += 2 * math.prod(left) * columns
    return rates


def attention(calls):
    rates = collections.defaultdict(lambda: [0, 0, 0])
    for op, length in calls:
        if op["name"] == FLASH:
            (batch, queries, heads, width), keys = op["args"]["Input Dims"][0], op["args"]["Input Dims"][1]
            is_causal = op["args"]["Concrete Inputs"][8] == "True"
            dims = f"{batch}x{queries}x{heads}x{width} x {'x'.join(map(str, keys))}{', causal' if is_causal else ''}"
            kind = op["args"]["Input type"][0]
            row = rates[FLASH, dims, TYPES.get(kind, kind)]
            row[0] += 1
            row[1] += length
            row[2] += 4 * batch * heads * queries * keys[1] * width // (2 if is_causal else 1)
    return rates


def collectives(calls):
    rates = collections.defaultdict(list)
    for op, length in calls:
        args = op["args"]
        if "Collective name" in args:
            size = max(args["In msg nelems"], args["Out msg nelems"]) * WIDTHS[args["dtype"]]
            ranks = args["Group size"]
            name = args["Collective name"].replace("_", "")
            factor = 2 * (ranks - 1) / ranks if name.startswith("allreduce") else \
                (ranks - 1) / ranks if name.startswith(("allgather", "reducescatter")) else 1
            key = (args["Collective name"], args.get("Process Group Name", ""), args["dtype"])
            rates[key].append((size, float(length), factor))
    return rates


def is_near(one, other):
    return abs(one - other) <= 1e-6 * max(abs(one), abs(other))


def check_rows(name, rows, expected):
    """Every row is expected, and with fewer rows than the most there are, every expected one is there."""
    found = {(row["operator"], row["dims"], row["dtype"]): row for row in rows}
    for key, row in found.items():
        calls, total, flops = expected[key]
        if row["calls"] != calls or not is_near(row["total_ns"], float(total)) or not is_near(row["flops"], flops):
            sys.exit(f"{name}: {key} is {row}, expected {calls} calls, {total} ns, {flops} FLOP")
        if not is_near(row["flops_per_s"], flops / (float(total) / 1e9)):
            sys.exit(f"{name}: the rate of {key} is {row['flops_per_s']}")
        if (row["peak_fraction"] is None) == (row["reason"] is None):
            sys.exit(f"{name}: {key} has neither a share nor a reason, or both")
    if len(found) < 100 and set(found) != set(expected):
        sys.exit(f"{name}: missing {set(expected) - set(found)}")


def check_collectives(name, rows, expected):
    found = {(row["collective"], row["group"], row["dtype"]): row for row in rows}
    if set(found) != set(expected):
        sys.exit(f"{name}: collectives {set(found)}, expected {set(expected)}")
    for key, calls in expected.items():
        row = found[key]
        size, total = sum(call[0] for call in calls), sum(call[1] for call in calls)
        buses = sorted(call[0] * call[2] / (call[1] / 1e9) for call in calls)
        checks = {"calls": len(calls), "size_bytes": size, "total_ns": total, "bytes_per_s": size / (total / 1e9),
                  "bus_bytes_per_s": size / (total / 1e9) * calls[0][2], "bus_min_bytes_per_s": buses[0],
                  "bus_median_bytes_per_s": buses[(len(buses) - 1) // 2], "bus_max_bytes_per_s": buses[-1]}
        for field, value in checks.items():
            if not is_near(row[field], value):
                sys.exit(f"{name}: {field} of {key} is {row[field]}, expected {value}")


def check_published(name, rows):
    for op, dims, calls, rate, share in PUBLISHED.get(name, []):
        match = [row for row in rows if (row["operator"], row["dims"]) == (op, dims)]
        if len(match) != 1 or match[0]["calls"] != calls or abs(match[0]["flops_per_s"] / 1e12 - rate) > 0.051:
            sys.exit(f"{name}: {op} {dims} is {match}, published {calls} calls at {rate}")
        if abs(match[0]["peak_fraction"] * 100 - share) > 0.51:
            sys.exit(f"{name}: {op} {dims} is {match[0]['peak_fraction']} of the peak, published {share} %")


def main():
    arguments = testing.arguments("program", "corpus")
    num_rows = num_collectives = num_attentions = 0
    seen = set()
    for path in sorted((arguments.corpus / "kineto").glob("*.json.gz")):
        text = gzip.open(path, "rt").read()
        if '"Input Dims"' not in text and '"Collective name"' not in text:
            continue
        name = path.name.split(".json")[0].removesuffix(".pt.trace")
        events = [event for event in json.loads(text, parse_float=decimal.Decimal, strict=False)["traceEvents"]
                  if event.get("ph") == "X" and "cat" in event and "dur" in event]
        wanted = [(op, length) for op, length in launches(events) if is_wanted(op)]
        summed = {}
        for op, length in wanted:
            summed.setdefault(id(op), [op, 0])[1] += length
        calls = [tuple(call) for call in summed.values()]
        run = subprocess.run([arguments.program, "analyze", path, "--json"], capture_output=True, timeout=300)
        if run.returncode != 0:
            sys.exit(f"{name}: {run.stderr.decode()[:300]}")
        metrics = json.loads(run.stdout)
        attentions = attention(calls)
        num_attentions += len(attentions)
        check_rows(name, metrics["gemm_rates"], products(calls) | attentions)
        check_collectives(name, metrics["collective_rates"], collectives(calls))
        check_published(name, metrics["gemm_rates"])
        if name in PUBLISHED_BUS:
            low, high = PUBLISHED_BUS[name]
            row = next(row for row in metrics["collective_rates"] if row["collective"] == "allreduce")
            if abs(row["bus_min_bytes_per_s"] / 1e9 - low) > 0.05 or abs(row["bus_max_bytes_per_s"] / 1e9 - high) > 0.5:
                sys.exit(f"{name}: bus bandwidth {row['bus_min_bytes_per_s']} to {row['bus_max_bytes_per_s']}")
        seen.add(name)
        num_rows += len(metrics["gemm_rates"])
        num_collectives += len(metrics["collective_rates"])
    testing.needed(seen)
    missing = (set(PUBLISHED) | set(PUBLISHED_BUS)) - seen
    if missing:
        sys.exit(f"the corpus lacks {missing}")
    if num_attentions == 0:
        sys.exit("no attention was compared")
    print(f"{len(seen)} traces, {num_rows - num_attentions} matrix products, {num_attentions} attentions and {num_collectives} collectives agree")


if __name__ == "__main__":
    main()

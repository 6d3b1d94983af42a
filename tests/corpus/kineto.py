#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces of PyTorch's profiler against Python's own JSON parser: kernels by name, their operators, and what must be conserved."""
import bisect
import collections
import csv
import decimal
import gzip
import io
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing
from laws import broken_laws

KERNELS = ("kernel", "Kernel")
CALLS = ("cuda_runtime", "cuda_driver", "Runtime")
OPERATORS = ("cpu_op", "Operator")


def run(program, *arguments):
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, (arguments, result.stderr)
    return result.stdout


def events_of(path):
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    document = json.loads(text, parse_float=decimal.Decimal)
    return document if isinstance(document, list) else document["traceEvents"]


def ns(value):
    return int((decimal.Decimal(value) * 1000).to_integral_value(decimal.ROUND_HALF_UP))


def complete(events, categories):
    return [event for event in events if event.get("ph") == "X" and event.get("cat") in categories]


def by_python(events):
    """name -> (total, calls, min, max)"""
    durations = collections.defaultdict(list)
    for event in complete(events, KERNELS):
        durations[event["name"]].append(ns(event["dur"]))
    return {name: (sum(all_), len(all_), min(all_), max(all_)) for name, all_ in durations.items()}


def by_gpuwhy(program, path):
    totals = {}
    for row in csv.DictReader(io.StringIO(run(program, "table", "kernels", path, "--format", "csv"))):
        total, calls, least, most = totals.get(row["kernel_name"], (0, 0, 1 << 62, 0))
        totals[row["kernel_name"]] = (total + int(row["total_ns"]), calls + int(row["calls"]),
                                      min(least, int(row["min_ns"])), max(most, int(row["max_ns"])))
    return totals


def operators_by_id(events):
    """Kernel time by operator, as the profiler itself links them: (name -> ns, kernels it links, their ns)."""
    names = {event["args"]["External id"]: event["name"] for event in complete(events, OPERATORS)
             if "External id" in event.get("args", {})}
    calls = {event["args"]["correlation"] for event in complete(events, CALLS) if "correlation" in event.get("args", {})}
    totals = collections.Counter()
    for event in complete(events, KERNELS):
        arguments = event["args"]
        link = arguments.get("External id", arguments.get("external id"))
        if link in names and arguments["correlation"] in calls:
            totals[names[link]] += ns(event["dur"])
    return totals


def operators_by_time(events):
    """The same by definition: the operator on the call's thread that began last before the call and had not ended."""
    threads = collections.defaultdict(list)
    for event in complete(events, OPERATORS):
        start = ns(event["ts"])
        threads[event["pid"], event["tid"]].append((start, start + ns(event["dur"]), event["name"]))
    for operators in threads.values():
        operators.sort(key=lambda row: (row[0], -row[1]))
    calls = {}
    for event in complete(events, CALLS):
        if "correlation" in event.get("args", {}):
            calls.setdefault(event["args"]["correlation"], event)
    totals = collections.Counter()
    for event in complete(events, KERNELS):
        call = calls.get(event["args"]["correlation"])
        if call is None:
            continue
        at = ns(call["ts"])
        operators = threads[call["pid"], call["tid"]]
        row = bisect.bisect_right(operators, at, key=lambda operator: operator[0]) - 1
        while row >= 0 and operators[row][1] < at:
            row -= 1
        if row >= 0:
            totals[operators[row][2]] += ns(event["dur"])
    return totals


def check(program, path):
    events = events_of(path)
    expected = by_python(events)
    found = by_gpuwhy(program, path)
    assert found == expected, (path.name, set(found.items()) ^ set(expected.items()))
    metrics = json.loads(run(program, "analyze", path, "--json"))
    capture = metrics["capture"]
    assert capture["kernel_ns"] == sum(total for total, *_ in expected.values()), path.name
    assert broken_laws(metrics) == [], (path.name, broken_laws(metrics))
    correlations = {event["args"].get("correlation") for event in complete(events, CALLS) if "args" in event}
    orphans = sum(event["args"]["correlation"] not in correlations for event in complete(events, KERNELS))
    told = [row["count"] for row in metrics["data_quality"] if row["kind"] == "orphan_kernel"]
    assert told == ([orphans] if orphans else []), (path.name, told, orphans)
    linked = 0
    if metrics["operators"]:
        names = metrics["graph_names"]
        linked = check_operators(path, events, metrics["operators"], capture["kernel_ns"], names and names["named"] > 0)
    return metrics, linked


def check_operators(path, events, operators, kernel_ns, has_graph_names):
    assert operators["whole_ns"] == kernel_ns and "kernels" in operators["time_of"], path.name
    assert operators["covered_ns"] == sum(row["total_ns"] for row in operators["rows"]) <= kernel_ns, path.name
    assert all(row["total_ns"] > 0 and row["kernels"] >= row["calls"] > 0 for row in operators["rows"]), path.name
    assert sum(layer["total_ns"] for layer in operators["layers"]) <= kernel_ns, path.name
    found = collections.Counter()
    for row in operators["rows"]:
        found[row["name"]] += row["total_ns"]
    if has_graph_names:
        return 0  # what launched a graph does not name its kernels: graph_names.py has those
    defined = operators_by_time(events)
    missed = sum(abs(found[name] - defined[name]) for name in set(found) | set(defined))
    assert missed <= 0.002 * kernel_ns, (path.name, missed, found - defined, defined - found)
    by_id = operators_by_id(events)
    # Between 2022 and 2024 the id is the call's own, which links nothing.
    if sum(by_id.values()) < 0.5 * operators["covered_ns"]:
        return 0
    differs = sum(max(by_id[name] - found[name], 0) for name in by_id)
    assert differs <= 0.01 * sum(by_id.values()), (path.name, differs, by_id - found)
    return 1


def check_known(metrics):
    """What is known of single files."""
    def stages(name):
        return [(row["stage"], row["instances"], row["tokens"], row["kernels"]) for row in metrics[name]["stages"]]

    def family(name, words):
        return {row["family"] for row in metrics[name]["kernels"] if any(word in row["kernel_name"] for word in words)}

    assert stages("tracelens_b200_eager.json.gz") == [("prefill", 1, 888, 768)]
    assert len(metrics["tracelens_b200_eager.json.gz"]["operators"]["layers"]) == 36
    for name, kernels in (("tracelens_sglang_qwen3-8b_decode.json.gz", 555),
                          ("tracelens_vllm_decode_fullgraph.json.gz", 425)):
        assert stages(name) == [("decode", 1, 32, kernels)], stages(name)
        assert metrics[name]["capture"]["unattributed_kernel_ns"] == 0
        assert all(row["total_ns"] > 0 for row in metrics[name]["kernels"])
        graph = sum(ledger["buckets_ns"]["graph"] for ledger in metrics[name]["ledgers"])
        assert graph > 0, name  # gaps between kernels of one launch have their own bucket
    assert stages("tracelens_vllm_prefilldecode_piecewise.json.gz") == [("mixed", 1, 8192, 413)]
    assert family("deepseek_v3_train.json.gz", ["::ep::"]) == {"communication"}
    assert family("deepseek_v3_train.json.gz", ["dispatch", "combine"]) == {"communication"}
    assert family("tracelens_b200_eager.json.gz", ["multimem_all_reduce"]) == {"communication"}
    assert metrics["hta_sampled_rank-1.json.gz"]["capture"]["rank"] == 1
    assert metrics["hta_sampled_rank-1.json.gz"]["capture"]["world_size"] == 128


def main():
    arguments = testing.arguments("program", "corpus")
    files = testing.needed(sorted((arguments.corpus / "kineto").glob("*.json*")))
    metrics = {}
    linked = 0
    for path in files:
        metrics[path.name], is_linked = check(arguments.program, path)
        linked += is_linked
    assert len(files) >= 33 and linked >= 10, (len(files), linked)
    check_known(metrics)
    print(f"{len(files)} traces equal Python's count; {linked} agree with the profiler's own links to operators")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of kernels in CUDA graphs: real captures of vLLM, SGLang and xDiT against their replays.

Which operator launched how many kernels is counted here from the events of the capture, and must be what the report of
the replay says. Without the capture the same replays have next to no operators.
"""
import bisect
import collections
import gzip
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

# Capture, replay, kernels of the replayed graphs, share of kernel time with an operator before and after. xDiT launches its
# graph inside an operator, which has all of its kernels as long as their own are unknown.
PAIRS = [
    ("tracelens_vllm_decode_full_capture.pt.trace.json.gz", "tracelens_vllm_decode_fullgraph.json.gz", 421, 0.05, 0.999),
    ("tracelens_vllm_piecewise_capture.pt.trace.json.gz", "tracelens_vllm_prefilldecode_piecewise.json.gz", 361, 0.05, 0.999),
    ("tracelens_sglang_capture_bs32.json.gz", "tracelens_sglang_qwen3-8b_decode.json.gz", 544, 0.05, 0.995),
    ("tracelens_xdit_flux_capture.json.gz", "tracelens_xdit_flux_replay.json.gz", 6264, 1, 0.999),
]


def expect(condition, what):
    if not condition:
        sys.exit(what)


def analyze(program, file, *options):
    result = subprocess.run([program, "analyze", str(file), "--json", *map(str, options)], capture_output=True, text=True)
    expect(result.returncode == 0, f"analyze {file}: exit {result.returncode}: {result.stderr}")
    return json.loads(result.stdout)


def coverage(metrics):
    return metrics["operators"]["covered_ns"] / metrics["operators"]["whole_ns"]


def events_of(path):
    with gzip.open(path) as file:
        return json.load(file)["traceEvents"]


def captured_operators(events):
    """Operators around the launches between the begin and the end of a capture, with the number of launches."""
    calls = sorted((e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")), key=lambda e: e["ts"])
    operators = sorted((e for e in events if e.get("cat") == "cpu_op"), key=lambda e: (e["ts"], -e["dur"]))
    starts = [e["ts"] for e in operators]
    counts = collections.Counter()
    is_capturing = False
    for call in calls:
        if "BeginCapture" in call["name"]:
            is_capturing = True
        elif "EndCapture" in call["name"]:
            is_capturing = False
        elif is_capturing and "kernel" in call.get("args", {}):
            at = bisect.bisect_right(starts, call["ts"]) - 1
            while at >= 0 and (operators[at]["tid"] != call["tid"]
                               or operators[at]["ts"] + operators[at]["dur"] < call["ts"]):
                at -= 1
            if at >= 0:
                counts[operators[at]["name"]] += 1
    return counts


def check_pair(program, folder, capture, replay, num_kernels, before, after):
    bare = analyze(program, folder / replay)
    expect(bare["graph_names"] == {"kernels": num_kernels, "named": 0, "by_nvtx": 0, "by_annotations": 0, "by_order": 0},
           f"{replay} alone: {bare['graph_names']}")
    expect(coverage(bare) <= before, f"{replay} alone covers {coverage(bare)}")
    named = analyze(program, folder / replay, "--capture-trace", folder / capture)
    expect(named["graph_names"]["named"] == num_kernels and named["graph_names"]["by_order"] == num_kernels,
           f"{replay}: {named['graph_names']}")
    expect(coverage(named) >= after, f"{replay}: operators cover {coverage(named)}")
    expect(named["capture"]["kernel_ns"] == bare["capture"]["kernel_ns"], f"{replay}: names changed the time")
    launches = collections.Counter()
    for row in named["operators"]["rows"]:
        launches[row["name"]] += row["kernels"]
    for row in bare["operators"]["rows"]:
        launches[row["name"]] -= row["kernels"]
    return named, launches  # of operators inside graphs


def check_counts(capture, launches):
    expected = captured_operators(events_of(capture))
    found = {name: count for name, count in launches.items() if count > 0}
    expect(found == dict(expected), f"{capture.name}: {found} are not {dict(expected)}")


def check_beside(program, folder, capture, replay, num_kernels):
    """Found beside the recording under the names of the engines."""
    for place in ("capture_traces/graph_capture_rank_0.pt.trace.json.gz", "graph_capture_profile/decode_bs_32_rank0.json.gz"):
        with tempfile.TemporaryDirectory() as name:
            target = pathlib.Path(name) / place
            target.parent.mkdir()
            shutil.copyfile(folder / capture, target)
            shutil.copyfile(folder / replay, pathlib.Path(name) / "trace.json.gz")
            names = analyze(program, pathlib.Path(name) / "trace.json.gz")["graph_names"]
            expect(names["by_order"] == num_kernels, f"{place}: {names}")


def check_strangers(program, folder):
    """A capture of another graph gives no names, and says so."""
    for capture in (PAIRS[1][0], PAIRS[2][0]):
        metrics = analyze(program, folder / PAIRS[0][1], "--capture-trace", folder / capture)
        expect(metrics["graph_names"]["named"] == 0, f"{capture}: {metrics['graph_names']}")
        kinds = [row for row in metrics["data_quality"] if row["kind"] == "graph_names"]
        expect(len(kinds) == 1 and kinds[0]["severity"] == "warning", f"{capture}: {kinds}")


def main():
    arguments = testing.arguments("program", "corpus")
    folder = testing.needed(arguments.corpus / "kineto")
    for capture, replay, num_kernels, before, after in PAIRS:
        named, launches = check_pair(arguments.program, folder, capture, replay, num_kernels, before, after)
        if before < 1:
            check_counts(folder / capture, launches)
        if "sglang" in replay:
            expect(len(named["operators"]["layers"]) == 36, "SGLang's replay lacks layers of the model")
            check_beside(arguments.program, folder, capture, replay, num_kernels)
    check_strangers(arguments.program, folder)
    # This one holds the capture and its first replay.
    names = analyze(arguments.program, folder / PAIRS[3][0])["graph_names"]
    expect(names["kernels"] == names["by_order"] == 1566, f"{PAIRS[3][0]} alone: {names}")


if __name__ == "__main__":
    main()

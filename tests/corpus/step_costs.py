#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""FLOPs and bytes of real engine steps against arithmetic written down here, from the sums in their markers."""
import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

PHASE = r"(\d+)\(sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)\)"
MARKER = re.compile(rf"execute_\d+_context_{PHASE}_generation_{PHASE}$")

# Llama-3.1-8B, whatever ran: the arithmetic is of the marker, not of the recording.
HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD, FF, VOCAB = 4096, 32, 32, 8, 128, 14336, 128256


def markers(trace):
    names = [event.get("name", "") for event in trace["traceEvents"] if event.get("cat") == "user_annotation"]
    return [match for match in map(MARKER.match, names) if match]


def cost(marker):
    numbers = [int(text) for text in marker.groups()]
    (c, c_sq, c_sk, c_sqsq, c_sqsk), (g, g_sq, g_sk, g_sqsq, g_sqsk) = numbers[:5], numbers[5:]
    weights = HIDDEN * (HEADS + 2 * KV_HEADS) * HEAD + HIDDEN * HEADS * HEAD + 3 * HIDDEN * FF
    pairs = c_sqsk - (c_sqsq - c_sq) // 2 + g_sqsk - (g_sqsq - g_sq) // 2
    head = HIDDEN * VOCAB
    flops = 2 * (c_sq + g_sq) * LAYERS * weights + 4 * pairs * LAYERS * HEADS * HEAD + 2 * (c + g_sq) * head
    norms = (2 * LAYERS + 1) * HIDDEN
    kv_tokens = (c_sk - c_sq) + g_sk + (c_sq + g_sq)
    elements = LAYERS * weights + norms + head + (c_sq + g_sq) * HIDDEN + kv_tokens * LAYERS * 2 * KV_HEADS * HEAD
    stage = "mixed" if c and g else "prefill" if c else "decode" if g_sq == g else "verify"
    return stage, c_sq + g_sq, flops, 2 * elements


def check(program, path, folder):
    trace = json.loads(gzip.decompress(path.read_bytes()))
    found = markers(trace)
    if not found:
        return 0
    # Kernels of experts contradict a dense model, which is then refused.
    for event in trace["traceEvents"]:
        if event.get("cat") == "kernel":
            event["name"] = "kernel"
    copy = folder / path.stem
    copy.write_text(json.dumps(trace))
    command = [program, "analyze", copy, "--model", "llama_3_1_8b", "--gpu-name", "H100-SXM5-80GB", "--tp", "1", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, (path.name, result.stderr)
    rows = {row["stage"]: row for row in json.loads(result.stdout)["efficiency"]["stages"]}
    for stage in {cost(marker)[0] for marker in found}:
        costs = [cost(marker) for marker in found if cost(marker)[0] == stage]
        row = rows[stage]
        assert row["passes"] == len(costs), (path.name, row)
        assert row["tokens"] == sum(one[1] for one in costs), (path.name, row)
        assert row["flops"] == sum(one[2] for one in costs), (path.name, row["flops"], costs)
        assert row["bytes"] == sum(one[3] for one in costs), (path.name, row["bytes"], costs)
        assert row["mfu"]["wall_fraction"] and row["mbu"]["wall_fraction"], (path.name, row)
        print(f"{path.name}: {stage}, {row['flops']} FLOP, {row['bytes']} bytes")
    return len(found)


def main():
    arguments = testing.arguments("program", "corpus")
    files = testing.needed(sorted((arguments.corpus / "kineto").glob("tracelens_*.json.gz")))
    with tempfile.TemporaryDirectory() as folder:
        num_steps = sum(check(arguments.program, path, pathlib.Path(folder)) for path in files)
    assert num_steps >= 4, num_steps
    print(f"{num_steps} steps cost what their markers say")
    return 0


if __name__ == "__main__":
    sys.exit(main())

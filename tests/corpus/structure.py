#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Passes and layers of every recording: the known models are recovered, the layer of a kernel is that of its nn.Module,
and nothing is claimed for programs without a layered model."""
import bisect
import collections
import csv
import gzip
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

# (passes, passes cut by the capture, layers) of each kind of pass.
MODELS = {
    "v2024.6.2_cs336_lm2.7B_a100_clean.sqlite": [(10, 0, 32)],
    "v2024.6.2_cs336_lm2.7B_a100_nonvtx.sqlite": [(4, 0, 32)],
    "v2024.6.2_cs336_lm2.7B_a100_nvtx.sqlite": [(4, 0, 32)],
    "v2024.6.2_cs336_small_a100.sqlite": [(4, 0, 12)],
    "v2025.1.3_cs336_train_rtx3070ti.sqlite": [(15, 0, 12), (5, 0, 12)],  # forward, backward
    "v2026.2.1_cs336_windows_rtx5000ada.sqlite": [(5, 0, 12)],
    "v2026.2.1_nsysai_h100x2_1s.sqlite": [(2, 2, 24)],  # one whole pass on each of two GPUs
    "tracelens_b200_eager.json.gz": [(1, 0, 36)],
    "tracelens_h100_bert-small.json.gz": [(1, 0, 4)],
    "tracelens_h100_qwen1.5-0.5b.json.gz": [(1, 1, 24)],
    "tracelens_h100_timesformer.json.gz": [(1, 0, 12)],
    "tracelens_h100_vit_falconsai.json.gz": [(1, 0, 12)],
    "tracelens_mi300_bert-small.json.gz": [(1, 0, 4)],
    "tracelens_mi300_owlv2.json.gz": [(5, 0, 24), (5, 0, 12)],  # vision, text
    "tracelens_mi300_qwen1.5-0.5b.json.gz": [(1, 1, 24)],
    "tracelens_mi300_timesformer.json.gz": [(1, 0, 12)],
    "tracelens_mi300_vit_falconsai.json.gz": [(1, 0, 12)],
    "tracelens_sglang_qwen3-8b_decode.json.gz": [(1, 0, 36)],
    "tracelens_sglang_qwen3-8b_prefilldecode.json.gz": [(1, 0, 36)],
    "tracelens_vllm_decode_fullgraph.json.gz": [(1, 0, 24)],
    "tracelens_vllm_prefilldecode_piecewise.json.gz": [(1, 0, 24)],
    "tracelens_xdit_flux_capture.json.gz": [(1, 0, 24), (1, 0, 12)],  # T5, CLIP
    "tracelens_xdit_flux_replay.json.gz": [(1, 0, 24), (1, 0, 12)],
}
# Two kinds of layers in turn: sliding and full attention.
ALTERNATING = {"tracelens_b200_eager.json.gz": "18 of 21 kernels, 18 of 21 kernels",
               "tracelens_vllm_decode_fullgraph.json.gz": "12 of 18 kernels, 12 of 17 kernels"}
MODULE = re.compile(r"nn\.Module: (\w*(?:DecoderLayer|TransformerBlock|ViTLayer|TimesformerLayer|BertLayer|EncoderLayer"
                    r"|T5Block))_\d+$")


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300)


def check_models(name, structure):
    found = [(row["passes"], row["cut_passes"], row["layers"]) for row in structure["passes"]]
    assert found == MODELS.get(name, []), (name, found, structure["reason"])
    for row in structure["passes"]:
        assert len(row["signs"].split("; ")) >= 2, (name, row)
    if name in ALTERNATING:
        assert structure["passes"][0]["layer_kinds"] == ALTERNATING[name], (name, structure["passes"][0])
    if not found:
        assert structure["reason"] and not structure["parts"], (name, structure["reason"])
    return len(found)


def check_modules(program, path):
    """Kernels that nn.Module ranges put into a layer, and those of them that the program puts into the same one."""
    data = path.read_bytes()
    document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    events = document if isinstance(document, list) else document["traceEvents"]
    modules = sorted((event["ts"], event["ts"] + event["dur"], MODULE.search(event["name"])[1]) for event in events
                     if event.get("cat") == "python_function" and MODULE.search(event.get("name", "")))
    if not modules:
        return 0, 0
    launch = {event["args"]["correlation"]: event["ts"] for event in events
              if event.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in event.get("args", {})}
    kernels = sorted((event for event in events if event.get("ph") == "X" and event.get("cat") == "kernel"),
                     key=lambda event: event["ts"])
    launches = csv.DictReader(run(program, "table", "launches", str(path), "--format", "csv").stdout.splitlines())
    rows = [row for row in launches if row["pass"]]
    ours = {(row["kernel_name"], int(row["start_ns"])): (row["pass_number"], row["layer"]) for row in rows}
    first = next(event for event in kernels if event["name"] == rows[0]["kernel_name"])
    shift = int(rows[0]["start_ns"]) - round(first["ts"] * 1000)
    starts = [start for start, _, _ in modules]
    same = collections.defaultdict(collections.Counter)
    named = 0
    for event in kernels:
        time = launch.get(event["args"].get("correlation"))
        at = -1 if time is None else bisect.bisect_right(starts, time) - 1
        if at < 0 or modules[at][1] < time:
            continue
        named += 1
        for rounding in (0, 1, -1):
            place = ours.get((event["name"], round(event["ts"] * 1000) + shift + rounding))
            if place and place[1]:
                same[at][place] += 1
                break
    taken = set()  # a layer of ours is one module, not two
    agreed = 0
    for counts in same.values():
        place, count = counts.most_common(1)[0]
        agreed += 0 if place in taken else count
        taken.add(place)
    return named, agreed


def check_cost(program, corpus):
    """Qwen3-8B's decode step on MI300X: weights of each product by its config.json (hidden 4096, 32 heads and 8 KV heads of
    128, MLP 12288, vocabulary 151936, bf16) over the kernel's mean time, of 5.3 TB/s."""
    path = corpus / "kineto" / "tracelens_sglang_qwen3-8b_decode.json.gz"
    result = run(program, "analyze", str(path), "--model", "qwen3_8b", "--gpu-name", "MI300X", "--json")
    assert result.returncode == 0, result.stderr
    structure = json.loads(result.stdout)["structure"]
    assert structure["cost_reason"] is None, structure["cost_reason"]
    parts = {part["part"]: part for part in structure["parts"] if part["weight_bytes"]}
    hidden, heads, kv_heads, width, mlp, vocabulary = 4096, 32, 8, 128, 12288, 151936
    weights = {"qkv": hidden * (heads + 2 * kv_heads) * width, "o": heads * width * hidden, "gate_up": 2 * hidden * mlp,
               "down": hidden * mlp, "lm_head": hidden * vocabulary}
    printed = {"qkv": (25.1, 2.00, 38), "o": (16.7, 2.01, 38), "gate_up": (67.2, 3.00, 57), "down": (40.6, 2.48, 47)}
    assert set(parts) == set(weights), parts.keys()
    for name, elements in weights.items():
        part = parts[name]
        rate = 2 * elements / (part["mean_ns"] / 1e9)
        assert part["weight_bytes"] == 2 * elements, (name, part)
        assert abs(part["bytes_per_s"] / rate - 1) < 1e-9 and abs(part["roof_fraction"] / (rate / 5.3e12) - 1) < 1e-9, part
        if name in printed:
            mean_us, terabytes, percent = printed[name]
            assert abs(part["mean_ns"] / 1e3 - mean_us) < 0.05 and abs(rate / 1e12 - terabytes) < 0.01, (name, part)
            assert round(100 * part["roof_fraction"]) == percent, (name, part)
    # Keys and values of 32 sequences of 2,048 tokens, read by two kernels of a layer.
    result = run(program, "analyze", str(path), "--model", "qwen3_8b", "--gpu-name", "MI300X", "--json", "--batch", "32",
                 "--context", "2048")
    attention = [part for part in json.loads(result.stdout)["structure"]["parts"] if part["part"] == "attention"]
    kv_bytes = 2 * kv_heads * width * 2 * 2048 * 32
    mean_ns = sum(part["total_ns"] for part in attention) / attention[0]["launches"]
    assert [part["kv_bytes"] for part in attention] == [kv_bytes, None], attention
    assert abs(attention[0]["bytes_per_s"] / (kv_bytes / mean_ns * 1e9) - 1) < 1e-9, attention
    assert abs(attention[0]["roof_fraction"] / (kv_bytes / 5.3e12 / (mean_ns / 1e9)) - 1) < 1e-9, attention
    return len(weights) + 1


def check_experts(program, corpus):
    """gpt-oss-20b's decode step of 32 tokens: 4 of 32 experts per token, so 1 - (28/32)^32 of them are expected to be taken. Each has
    2 x 2880 x 2880 weights before the activation and half of them after it, in MXFP4: 17 bytes for 32."""
    path = corpus / "kineto" / "tracelens_vllm_decode_fullgraph.json.gz"
    result = run(program, "analyze", str(path), "--model", "gpt_oss_20b", "--gpu-name", "MI300X", "--json")
    assert result.returncode == 0, result.stderr
    parts = [part for part in json.loads(result.stdout)["structure"]["parts"] if part["weight_bytes"] and "experts" in part["part"]]
    assert len(parts) == 4, parts  # two products in two kinds of layers
    taken = 32 * (1 - (28 / 32) ** 32)
    for part in parts:
        matrices = 2 if part["part"] == "experts gate_up" else 1
        expected = taken * matrices * 2880 * 2880 * 17 / 32
        assert abs(part["weight_bytes"] / expected - 1) < 1e-6, (part, expected)
        assert part["flops"] == 2 * 32 * 4 * matrices * 2880 * 2880, part
    return len(parts)


def main():
    options = testing.arguments("program", "corpus")
    paths = testing.needed(sorted([*options.corpus.glob("nsys_sqlite/*.sqlite"), *options.corpus.glob("kineto/*.json*")]))
    assert set(MODELS) <= {path.name for path in paths}, "recordings are missing"
    num_models = num_silent = all_named = all_agreed = 0
    for path in paths:
        result = run(options.program, "analyze", str(path), "--json")
        structure = json.loads(result.stdout)["structure"] if result.returncode == 0 and result.stdout else None
        if not structure:
            continue
        if check_models(path.name, structure) == 0:
            num_silent += 1
            continue
        num_models += 1
        if path.parent.name == "kineto":
            named, agreed = check_modules(options.program, path)
            assert agreed >= 0.995 * named, (path.name, agreed, named)
            all_named += named
            all_agreed += agreed
    assert num_models == len(MODELS) and num_silent >= 20 and all_named > 5000, (num_models, num_silent, all_named)
    num_costs = check_cost(options.program, options.corpus) + check_experts(options.program, options.corpus)
    print(f"{num_costs} parts cost what their model says; {num_models} models recovered, nothing claimed for {num_silent} other recordings; layers of {all_agreed} of "
          f"{all_named} kernels are those of nn.Module ranges")


if __name__ == "__main__":
    main()

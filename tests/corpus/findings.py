#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of findings on recordings of real GPUs with known problems: numbers of the ledger by plain SQL."""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

# Recording, the finding that must come first, its share of the window (None: it has none).
FIRST = [("v2024.6.2_cs336_small_a100", "launch_bound", None),
         ("v2024.6.2_cs336_lm2.7B_a100_clean", "gemm_off_tensor_cores", None),
         ("v2024.6.2_cs336_lm2.7B_a100_cudagraph", "graph_opaque", None),
         ("v2026.2.1_nsysai_h100x2_1s", "exposed_copy", 0.97),
         ("v2025.6.1_cs336_nocuda_rtx4070ti", "no_gpu_activity", None)]
# Recording, a finding that must be there, its device, its share of the window.
PRESENT = [("v2026.2.1_nsysai_mfu_h100x2_nccl_before", "exposed_comm", "cuda:0", 0.0572),
           ("v2024.6.2_cs336_lm2.7B_a100_nvtx", "gemm_off_tensor_cores", "cuda:0", None)]

STEP = re.compile(r'([^.\[]+)(?:\[((?:"(?:\\.|[^"\\])*"|[^"\]])*)\])?(?:\.|$)')
CHOICE = re.compile(r'([^=,]+)=("(?:\\.|[^"\\])*"|[^,]+)(?:,|$)')


def value_at(document, path):
    """What a key as `ledgers[stage=decode,device=cuda:0].buckets_ns.sync` names; fails where nothing is there."""
    at = 0
    while at < len(path):
        step = STEP.match(path, at)
        assert step, f"{path} is not a key"
        at = step.end()
        document = document[step[1]]
        if step[2] is None:
            continue
        if step[2].isdigit():
            document = document[int(step[2])]
            continue
        choices = {name: json.loads(text) if text.startswith('"') else text for name, text in CHOICE.findall(step[2])}
        assert choices, f"{path} chooses nothing"
        document = next(row for row in document if all(
            (row[name] if isinstance(row[name], str) else json.dumps(row[name])) == text for name, text in choices.items()))
    return document


def check_values():
    document = {"a": {"b": 1}, "rows": [{"s": "x", "n": 1}, {"s": "a,b]", "n": 2}, {"s": "", "n": 3}]}
    for path, value in (("a.b", 1), ("rows[1].n", 2), ("rows[s=x].n", 1), ('rows[s="a,b]"].n', 2), ('rows[n=3,s=""].s', "")):
        assert value_at(document, path) == value, path
    for path in ("a.c", "rows[s=y].n", "rows[9].n", "b", "a.b.c"):
        try:
            value_at(document, path)
        except (KeyError, IndexError, StopIteration, TypeError):
            continue
        assert False, f"{path} is not there"


def main():
    arguments = testing.arguments("program", "corpus")
    folder = testing.needed(arguments.corpus / "nsys_sqlite")
    check_values()
    cache = {}

    def metrics(name):
        if name not in cache:
            cache[name] = json.loads(subprocess.run(
                [arguments.program, "analyze", folder / f"{name}.sqlite", "--json"], capture_output=True, check=True).stdout)
        return cache[name]

    for name, wanted, share in FIRST:
        first = metrics(name)["findings"][0]
        assert first["id"] == wanted, (name, first)
        assert share is None or abs(first["saving_fraction"] - share) < 0.005, (name, first)
    opaque = metrics("v2024.6.2_cs336_lm2.7B_a100_cudagraph")["findings"]
    assert "--cuda-graph-trace=node" in opaque[0]["next"] and not any(f["id"] == "launch_bound" for f in opaque), opaque
    for name, wanted, device, share in PRESENT:
        rows = [f for f in metrics(name)["findings"] if f["id"] == wanted and f["device"] == device]
        assert len(rows) == 1, (name, wanted, rows)
        assert share is None or abs(rows[0]["saving_fraction"] - share) < 0.001, (name, rows)

    # Loading weights is start-up: in a row of the ledger and in the verdict, and no finding.
    loading = metrics("v2024.6.2_cs336_lm2.7B_a100_nvtx")
    startup = value_at(loading, "ledgers[stage=startup,device=cuda:0].buckets_ns.copy")
    assert abs(startup - 3.156e9) < 0.002e9 and "of start-up" in loading["verdict"], (startup, loading["verdict"])
    assert not any(f["id"] == "exposed_copy" for f in loading["findings"]), loading["findings"]

    # Of every recording: savings that rest on the ledger sum to the window at most, and evidence is there. Some recordings are
    # damaged, or of no GPU: those are refused as files, and are few.
    judged, refused, keys = 0, [], 0
    for path in sorted(folder.glob("*.sqlite")):
        result = subprocess.run([arguments.program, "analyze", path, "--json"], capture_output=True)
        if result.returncode != 0:
            assert 0 < result.returncode < 10, (path.name, result.returncode, result.stderr)
            refused.append(path.name)
            continue
        judged += 1
        sums = {}
        document = json.loads(result.stdout)
        for finding in document["findings"]:
            for key in finding["evidence"]:
                value_at(document, key)
                keys += 1
            assert 0 <= finding["saving_ns"] <= max(finding["window_ns"], 0), (path.name, finding)
            if finding["evidence"][0].startswith("ledgers["):
                key = (finding["stage"], finding["device"], finding["window_ns"])
                sums[key] = sums.get(key, 0) + finding["saving_ns"]
        assert all(total <= key[2] for key, total in sums.items()), (path.name, sums)
    print(f"{judged} recordings judged, {keys} keys of evidence are there; refused: {', '.join(refused) or 'none'}")
    assert judged > 0 and judged >= 4 * len(refused) and keys >= judged, (judged, refused, keys)
    return 0


if __name__ == "__main__":
    sys.exit(main())

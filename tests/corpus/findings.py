#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What to fix first, on recordings of real GPUs whose trouble is known: figures of the ledger by plain SQL."""
import argparse
import json
import pathlib
import subprocess
import sys

# Recording, the finding that must come first, its share of the window (None: it has none).
FIRST = [("v2024.6.2_cs336_small_a100", "launch_bound", None),
         ("v2024.6.2_cs336_lm2.7B_a100_clean", "gemm_off_tensor_cores", None),
         ("v2024.6.2_cs336_lm2.7B_a100_cudagraph", "graph_opaque", None),
         ("v2026.2.1_nsysai_h100x2_1s", "exposed_copy", 0.97),
         ("v2025.6.1_cs336_nocuda_rtx4070ti", "no_gpu_activity", None)]
# Recording, a finding that must be there, its device, its share of the window.
PRESENT = [("v2026.2.1_nsysai_mfu_h100x2_nccl_before", "exposed_comm", "cuda:0", 0.0572),
           ("v2026.2.1_nsysai_mfu_h100x2_nccl_before", "exposed_comm", "cuda:1", 0.0274),
           ("v2026.2.1_nsysai_h100x2_1s", "exposed_copy", "cuda:1", 0.97),
           ("v2024.6.2_cs336_lm2.7B_a100_nvtx", "exposed_copy", "cuda:0", 3.156e9 / 38.08e9),
           ("v2024.6.2_cs336_lm2.7B_a100_nvtx", "gemm_off_tensor_cores", "cuda:0", None)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--corpus", required=True)
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.corpus, "nsys_sqlite")
    if not folder.is_dir():
        print("skipped: the corpus is not here")
        return 77
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

    # Of every recording: savings that rest on the ledger sum to the window at most, and name a key that is there.
    for path in sorted(folder.glob("*.sqlite")):
        result = subprocess.run([arguments.program, "analyze", path, "--json"], capture_output=True)
        if result.returncode != 0:
            continue
        sums = {}
        for finding in json.loads(result.stdout)["findings"]:
            assert 0 <= finding["saving_ns"] <= max(finding["window_ns"], 0), (path.name, finding)
            if finding["evidence"][0].startswith("ledgers["):
                key = (finding["stage"], finding["device"], finding["window_ns"])
                sums[key] = sums.get(key, 0) + finding["saving_ns"]
        assert all(total <= key[2] for key, total in sums.items()), (path.name, sums)
    return 0


if __name__ == "__main__":
    sys.exit(main())

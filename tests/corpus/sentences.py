#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of recordings with missing or odd contents: each gives the right sentence, never a zero that looks like a result."""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing


def main():
    arguments = testing.arguments("program", "corpus")
    folder = testing.needed(arguments.corpus / "nsys_sqlite")

    def metrics(part):
        path, = folder.glob(f"*{part}*")
        return json.loads(subprocess.run([arguments.program, "analyze", path, "--json"], check=True,
                                         capture_output=True, timeout=120).stdout)

    # No CUDA at all, and what nsys said of it.
    for part in ("dynamicvit_nokernels", "cardiac_nokernels", "cs336_nocuda"):
        assert metrics(part)["verdict"].startswith("No CUDA activity was recorded"), part
    assert "nsys says: CUDA profiling might have not been started" in metrics("cs336_nocuda")["verdict"]

    # Calls and copies, but no kernel table.
    assert metrics("alpa_report1")["verdict"].startswith("No kernel was recorded, only copies and memsets")

    # 99.999 % of the time in graphs recorded as a whole.
    graph = metrics("cudagraph")
    assert "recorded as a whole" in graph["verdict"] and "--cuda-graph-trace=node" in graph["verdict"]
    assert graph["capture"]["opaque_graph_ns"] > 7_800_000_000
    assert graph["devices"][0]["busy_ns"] > 7_800_000_000, "graphs count as busy"

    # The GPU's number in the table is not CUDA's; other makers' adapters are in the same table.
    assert [device["name"] for device in metrics("cutlass_a100_a40")["devices"]] == ["NVIDIA A100-PCIE-40GB"]
    assert "RTX 5000 Ada" in metrics("windows_rtx5000ada")["devices"][0]["name"]
    assert metrics("abacus_report1")["devices"][0]["name"] == "TITAN RTX", "an old capture has no CUDA number"
    assert metrics("nsysai_h100x2_1s")["devices"][0]["name"] is None, "not told is not invented"

    # Columns and tables of third parties change nothing; an old export without metadata is read.
    assert sum(k["calls"] for k in metrics("dlprof_augmented")["kernels"]) == 59
    old = metrics("v2020.3.4_beast_report1")
    assert old["capture"]["schema_version"] == "" and sum(k["calls"] for k in old["kernels"]) == 22
    assert "V100" in old["devices"][0]["name"]

    # Launches before the window are counted, not lost.
    before = metrics("nccl_before")
    assert before["data_quality"][0]["kind"] == "orphan_kernel" and before["data_quality"][0]["count"] == 24

    # What plain SQL says of these recordings.
    def fraction(part, device, bucket):
        ledger, = [row for row in metrics(part)["ledgers"] if row["stage"] == "capture" and row["device"] == device]
        return ledger["buckets_ns"][bucket] / ledger["window_ns"]

    assert 0.056 < fraction("nccl_before", "cuda:0", "comm") < 0.058
    assert 0.027 < fraction("nccl_before", "cuda:1", "comm") < 0.029
    for device in ("cuda:0", "cuda:1"):
        assert fraction("nsysai_h100x2_1s", device, "copy") > 0.95
    print("each odd recording gives its sentence")
    return 0


if __name__ == "__main__":
    sys.exit(main())

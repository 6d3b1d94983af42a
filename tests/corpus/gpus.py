#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPUs of real recordings find their row, and their own attributes agree with it.

  gpus.py --program build/release/gpuwhy --corpus DIR
"""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

ROWS = {  # device name: row of conf/hardware/gpus.yaml and the bandwidth the device reports, GB/s
    "NVIDIA GeForce RTX 3090": ("RTX-3090", 936.1),
    "NVIDIA A10G": ("A10G", 600.1),
    "NVIDIA H100 80GB HBM3": ("H100-SXM5-80GB", 3352.3),
    "Tesla V100-PCIE-32GB": ("V100-PCIe", 900.0),
    "NVIDIA A100-PCIE-40GB": ("A100-PCIE-40GB", 1555.2),
    "NVIDIA H100 PCIe": ("H100-PCIe", 2039.0),
    "NVIDIA A100-SXM4-80GB": ("A100-SXM4-80GB", 2039.0),
    "Tesla T4": ("T4", 320.1),
    "NVIDIA GeForce RTX 2070 SUPER": ("RTX-2070-SUPER", 448.1),
    "NVIDIA GeForce RTX 3070 Ti": ("RTX-3070-Ti", 608.1),
    "NVIDIA GeForce RTX 3080": ("RTX-3080", 760.1),
    "NVIDIA GeForce RTX 4060 Ti": ("RTX-4060-Ti", 288.0),
    "TITAN RTX": ("TITAN-RTX", 672.0),
}


def check(program, path):
    run = subprocess.run([program, "analyze", path, "--model", "llama_3_1_8b", "--json"], capture_output=True, timeout=120)
    if run.returncode != 0:
        return None
    metrics = json.loads(run.stdout)
    devices = sorted(metrics["devices"], key=lambda device: device["kernels"] == 0)  # those with kernels first
    name = devices[0]["name"] if devices else None
    efficiency = metrics["efficiency"]
    if name not in ROWS:
        if efficiency["gpu"] is not None:
            sys.exit(f"{path.name}: {name} was mistaken for {efficiency['gpu']}")
        if name is not None and ("add a row" not in efficiency["reason"] or name not in efficiency["reason"]):
            sys.exit(f"{path.name}: nothing says how to add {name}: {efficiency['reason']}")
        return name
    row, bandwidth = ROWS[name]
    if efficiency["gpu"] != row or abs(efficiency["peak_bytes_per_s"] / 1e9 - bandwidth) > 0.2:
        sys.exit(f"{path.name}: {name} is {efficiency['gpu']} with {efficiency['peak_bytes_per_s']}")
    if efficiency["notes"]:
        sys.exit(f"{path.name}: the device disagrees with its row: {efficiency['notes']}")
    return name


def main():
    arguments = testing.arguments("program", "corpus")
    files = testing.needed(sorted((arguments.corpus / "nsys_sqlite").glob("*.sqlite")))
    seen = {check(arguments.program, path) for path in files}
    missing = set(ROWS) - seen
    if missing:
        sys.exit(f"no recording had {missing}")
    print(f"{len(files)} recordings, {len(seen & set(ROWS))} GPUs of the table")


if __name__ == "__main__":
    main()

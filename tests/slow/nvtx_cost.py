#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Overhead of libgpuwhy_nvtx.so: CPU time of a push and its pop, compared with the same program without it.

Four threads push a million ranges each. With and without take turns, and the best of each counts: other programs on
the machine make a run slower, never faster."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

BUDGET_NS = 150
PAIRS = 1_000_000
ROUNDS = 5


def main():
    arguments = testing.arguments("program", "workload", "read-ranges")
    testing.needs_release(arguments.program)

    def ns_per_pair(environment):
        output = subprocess.run([arguments.workload, "--bench", str(PAIRS), "--threads", "4"], capture_output=True,
                                env={**os.environ, **environment}, text=True, check=True).stdout
        if "nvtx yes" not in output:
            return None
        costs = [float(line.split()[1]) for line in output.splitlines() if line.startswith("ns_per_pair")]
        assert len(costs) == 4
        return sum(costs) / len(costs)

    if ns_per_pair({}) is None:
        testing.skip("built without NVTX's headers (tools/install-deps.sh nsight)")
    with_library, without = [], []
    with tempfile.TemporaryDirectory() as temporary:
        library = subprocess.run([arguments.read_ranges, "library", temporary], capture_output=True, text=True,
                                 check=True).stdout.strip()
        for _ in range(ROUNDS):
            without.append(ns_per_pair({}))
            with_library.append(ns_per_pair({"NVTX_INJECTION64_PATH": library, "GPUWHY_NVTX_DIR": temporary}))
            processes = subprocess.run([arguments.read_ranges, "processes", temporary], capture_output=True, text=True,
                                       check=True).stdout.splitlines()
            assert processes[1].split(",")[3:5] == [str(4 * PAIRS), "0"], processes
            for file in pathlib.Path(temporary).glob("*.nvtx"):
                file.unlink()
    cost = min(with_library) - min(without)
    print(f"a push and its pop cost {cost:.0f} ns more: {min(with_library):.1f} ns with the library (of "
          f"{', '.join(f'{value:.0f}' for value in with_library)}), {min(without):.1f} ns without; budget {BUDGET_NS} ns")
    assert cost <= BUDGET_NS
    return 0


if __name__ == "__main__":
    sys.exit(main())

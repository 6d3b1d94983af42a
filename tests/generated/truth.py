#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A generated recording against what was planted in it: several processes with colliding ids, graphs in node mode, ranges
across threads. The ledgers equal the planted sums to the nanosecond, and rows in any order give the same bytes with any number of threads."""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing


def main():
    arguments = testing.arguments("program", "make-trace")
    for processes in (1, 3):
        with testing.scratch() as directory:

            def make(name, threads, *options):
                printed = subprocess.run([arguments.make_trace, directory / name, "20000", "--processes", str(processes),
                                          *options], check=True, capture_output=True, text=True).stdout
                subprocess.run([arguments.program, "analyze", directory / name, "--out", directory / "out", "--threads", threads],
                               check=True, capture_output=True)
                metrics = json.loads((directory / "out/metrics.json").read_text())
                assert metrics["capture"].pop("file") == name  # all the rest is of the rows
                return json.loads(printed), metrics

            truth, metrics = make("sorted.sqlite", "1")
            for seed, threads in (("1", "2"), ("2", "3"), ("3", "8")):
                again, shuffled = make("shuffled.sqlite", threads, "--shuffle", seed)
                assert again == truth
                assert shuffled == metrics, f"the order of rows or {threads} threads change the result (seed {seed})"
        found = {}
        for ledger in metrics["ledgers"]:
            if ledger["stage"] in ("prefill", "decode"):
                buckets = {name: value for name, value in ledger["buckets_ns"].items() if value}
                found.setdefault(ledger["device"], {})[ledger["stage"]] = buckets
        assert found == truth, (found, truth)
        planted = sum(value for stages in truth.values() for buckets in stages.values() for value in buckets.values())
        print(f"{processes} processes: {planted} ns planted, all of them found")
    return 0


if __name__ == "__main__":
    sys.exit(main())

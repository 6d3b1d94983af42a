#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chrome's JSON, read by Python's json: sums by stream and thread equal plain SQL to the nanosecond, slices of a row nest,
the ledger's counters are shares, and whatever the budget leaves out the file is whole."""
import collections
import decimal
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing
import exported


def load(path):
    def no_duplicates(pairs):
        keys = [key for key, _ in pairs]
        assert len(set(keys)) == len(keys), f"a key twice: {keys}"
        return dict(pairs)
    return json.loads(path.read_bytes().decode("utf-8"), parse_float=decimal.Decimal, object_pairs_hook=no_duplicates,
                      parse_constant=lambda word: sys.exit(f"no number: {word}"))["traceEvents"]


def nanoseconds(value):
    whole = value * 1000
    assert whole == int(whole), value
    return int(whole)


def check_nesting(slices):
    """Slices of a row as (start, end): each lies inside those that are open, or after them."""
    open_ends = []
    for start, end in sorted(slices, key=lambda each: (each[0], -each[1])):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1], f"slices cross at {start}"
        open_ends.append(end)


class ChromeTrace:
    def __init__(self, path):
        self.names = {}
        self.slices = collections.defaultdict(list)  # (pid, tid) -> [(start, end)]
        self.categories = collections.Counter()
        self.closed = [0, 0]
        self.num_counters = 0
        for event in load(path):
            key = (event["pid"], event.get("tid"))
            if event["ph"] == "M":
                if event["name"] == "thread_name":
                    self.names[key] = event["args"]["name"]
            elif event["ph"] == "X":
                assert key in self.names, "a row without a name"
                start, length = nanoseconds(event["ts"]), nanoseconds(event["dur"])
                self.slices[key].append((start, start + length))
                self.categories[event["cat"]] += 1
                if event["cat"] == "nvtx" and "open" not in event.get("args", {}):
                    self.closed[0] += 1
                    self.closed[1] += length
            elif event["ph"] == "i":
                self.categories["mark"] += 1
            else:
                assert event["ph"] == "C" and 0 <= event["args"]["%"] <= 100, event
                self.num_counters += 1
        for slices in self.slices.values():
            check_nesting(slices)

    def rows(self, word):
        sums = collections.defaultdict(lambda: [0, 0])
        for key, slices in self.slices.items():
            name = self.names[key]
            if name.startswith(word) or name.endswith(": " + word):
                row = sums[key[0], name]
                row[0] += len(slices)
                row[1] += sum(end - start for start, end in slices)
        return {key: tuple(value) for key, value in sums.items()}


def compare(path, trace):
    recorded = exported.Recorded(path)
    streams = sorted((int(name.split()[1].rstrip(",")), *sums) for (_, name), sums in trace.rows("stream ").items())
    assert streams == recorded.streams(), (streams, recorded.streams())
    calls = sorted((int(name.split()[1].rstrip(":")), *sums) for (_, name), sums in trace.rows("CUDA API").items())
    assert calls == recorded.calls(), (calls, recorded.calls())
    assert trace.num_counters > 0 or not recorded.streams(), "no counter"
    assert (trace.categories["mark"], *trace.closed) == recorded.ranges(), (trace.categories, recorded.ranges())


def main():
    arguments = testing.arguments("program", "make-trace", "corpus")
    with testing.scratch() as directory:
        out = directory / "trace.json"
        found = exported.recordings(arguments, directory, num_kernels=50_000)
        for name, path in found.items():
            exported.export(arguments.program, path, "--format", "chrome", "--out", out)
            trace = ChromeTrace(out)
            compare(path, trace)
            slices = sum(trace.categories.values())
            print(f"{name}: {slices} slices, {out.stat().st_size / max(slices, 1):.1f} bytes per slice")
        path = found["hostile"]
        exported.export(arguments.program, path, "--format", "chrome", "--out", out)
        size = out.stat().st_size
        for budget in (4 * size, size - 1, size // 2, size // 4, 300, 1):
            exported.export(arguments.program, path, "--format", "chrome", "--out", out, "--trace-budget", budget)
            trace = ChromeTrace(out)
            assert out.stat().st_size <= max(budget, 200), (budget, out.stat().st_size)
            assert (trace.categories["api"] > 0) == (budget > size), budget
        try:
            check_nesting([(0, 10), (5, 15)])
        except AssertionError:
            return
        sys.exit("slices that cross went unnoticed")


main()

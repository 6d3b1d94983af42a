#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Merging 10,000 and 100,000 ranks: time and memory, which must grow no faster than the ranks, with everything planted in them named first,
and ten tenths merged before the whole give the same bytes.

The default is 10,000; --flat 100000 takes 10 GB of disk and some minutes."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

RANKS = 10_000
MOST_S = 10
MOST_BYTES = 1_000_000_000
MOST_GROWTH = 1.5  # of CPU time per rank, from 1,000 ranks on


class Merge:
    """One `gpuwhy merge`, with what it took."""

    def __init__(self, program, files, *words):
        began = time.monotonic()
        child = subprocess.Popen([program, "merge", *map(str, files), *map(str, words)], stdout=subprocess.PIPE)
        self.out = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        self.wall_s = time.monotonic() - began
        self.code = os.waitstatus_to_exitcode(status)
        self.bytes = usage.ru_maxrss * 1024
        self.cpu_s = usage.ru_utime + usage.ru_stime

    def __str__(self):
        return f"{self.wall_s:.1f} s, {self.cpu_s:.1f} s of CPU, {self.bytes / 1e6:.0f} MB at most"


def make(options, folder, ranks, *words):
    return json.loads(subprocess.run([options.make_ranks, folder, str(ranks), *map(str, words)], capture_output=True, text=True, check=True).stdout)


def check(fleet, truth):
    assert fleet["rank_table"][0]["rank"] == truth["slow_rank"], fleet["rank_table"][0]
    assert fleet["nodes"][0]["name"] == truth["slow_node"], fleet["nodes"][0]
    assert fleet["kernels"][0]["kernel"] == truth["slow_kernel"], fleet["kernels"][0]
    assert fleet["collectives"]["transfer_ns"] == truth["transfer_ns"]
    assert fleet["collectives"]["total_ns"] == truth["collective_ns"]


def check_flat(options, scratch, ranks):
    """All files in one merge, three times; then in a tree: the same bytes."""
    job = scratch / "job"
    truth = make(options, job, ranks)
    merges = [Merge(options.program, [job], "--json") for _ in range(3 if ranks <= RANKS else 1)]
    best = min(merges, key=lambda merge: merge.wall_s)  # a busy machine is not what is measured
    assert all(merge.code == 0 for merge in merges)
    print(f"{ranks} ranks, {truth['bytes'] / 1e6:.0f} MB: {best}", flush=True)
    check(json.loads(best.out), truth)
    whole = Merge(options.program, [job], "--out", scratch / "all.gpuwhy")
    print(f"  to a file of {(scratch / 'all.gpuwhy').stat().st_size / 1e6:.1f} MB: {whole}", flush=True)
    tenths = []
    folders = sorted(job.iterdir())
    for number in range(10):
        part = scratch / f"tenth-{number}.gpuwhy"
        one = Merge(options.program, folders[number::10], "--out", part)
        assert one.code == 7, one.code  # ranks are missing
        tenths.append(part)
    joined = Merge(options.program, tenths, "--out", scratch / "tree.gpuwhy")
    assert (scratch / "tree.gpuwhy").read_bytes() == (scratch / "all.gpuwhy").read_bytes(), "the tree of merges is not the flat one"
    print(f"  a tree of ten tenths has the same bytes; its last merge: {joined}", flush=True)
    shutil.rmtree(job)
    return best


def main():
    options = testing.arguments("program", "make-ranks", flat=RANKS)  # flat: number of ranks
    with testing.scratch() as scratch:
        make(options, scratch / "thousand", 1000)
        small = min((Merge(options.program, [scratch / "thousand"], "--json") for _ in range(3)), key=lambda merge: merge.cpu_s)
        print(f"1000 ranks: {small}", flush=True)
        shutil.rmtree(scratch / "thousand")
        best = check_flat(options, scratch, options.flat)
    growth = (best.cpu_s / options.flat) / (small.cpu_s / 1000)
    print(f"CPU time per rank: {growth:.2f} times that of 1,000 ranks")
    assert growth < MOST_GROWTH, growth
    assert best.wall_s < MOST_S * max(1, options.flat / RANKS), best
    assert best.bytes < MOST_BYTES * max(1, options.flat / RANKS), best
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of merging generated ranks with three planted problems: each must be named first, waiting must equal the simulation, and files
merged in a tree must give the same bytes as all at once."""
import json
import pathlib
import random
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing


def run(*argv, codes=(0,)):
    result = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=120)
    assert result.returncode in codes, (argv, result.returncode, result.stderr)
    return result.stdout


def check_planted(fleet, truth):
    worst = fleet["rank_table"][0]
    assert worst["rank"] == truth["slow_rank"] and worst["straggler"], worst
    assert abs(worst["deviation_fraction"] - 0.30) < 0.02, worst
    assert abs(worst["reason"]["compute_ratio"] - 1.28) < 0.02, worst  # the others have a slow node among them
    # All its kernels are slower alike: the GPU, not a kernel. The job lost what one rank computes longer.
    assert worst["cause"] == "clocks" and fleet["lateness"] == "pinned", worst
    assert 0.9 < worst["lost_ns"] / worst["excess"]["compute_ns"] < 1.1, worst
    assert fleet["nodes"][0]["name"] == truth["slow_node"] and fleet["nodes"][0]["outlier"], fleet["nodes"][0]
    assert not fleet["nodes"][1]["outlier"], fleet["nodes"][1]
    assert fleet["kernels"][0]["kernel"] == truth["slow_kernel"], fleet["kernels"]
    assert {row["kernel"] for row in fleet["kernels"]} == {truth["slow_kernel"]}, fleet["kernels"]
    slow = sum(1 for rank in range(truth["ranks"]) if rank % 16 == 3)
    assert fleet["kernels"][0]["slow_ranks"] == slow, (fleet["kernels"][0], slow)
    # Nearly all that ranks waited they waited for the slow one, its neighbours' lateness included.
    assert worst["blamed_ns"] > 0.9 * fleet["collectives"]["waiting_ns"], worst


def check_sums(fleet, truth):
    found = fleet["collectives"]
    assert found["total_ns"] == truth["collective_ns"], (found, truth)
    assert found["transfer_ns"] == truth["transfer_ns"], (found, truth)
    assert found["waiting_ns"] == truth["collective_ns"] - truth["transfer_ns"], (found, truth)
    for key in ("total_ns", "transfer_ns", "waiting_ns"):
        assert sum(row["collectives"][key] for row in fleet["rank_table"]) == found[key], key
    assert sum(row["blamed_ns"] for row in fleet["rank_table"]) == found["waiting_ns"]


def tree(program, files, scratch, chance):
    """Merges random handfuls until one file is left."""
    files = list(files)
    count = 0
    while len(files) > 1:
        chance.shuffle(files)
        group, files = files[:7], files[7:]
        out = scratch / f"tree-{count}.gpuwhy"
        run(program, "merge", *group, "--out", out, codes=(0, 7))
        files.append(out)
        count += 1
    return files[0].read_bytes()


def main():
    options = testing.arguments("program", "make-ranks")
    with testing.scratch() as scratch:
        job = scratch / "job"
        truth = json.loads(run(options.make_ranks, job, 64, "--kernels", 60, "--steps", 20, "--name-length", 40))
        fleet = json.loads(run(options.program, "merge", job, "--json", "--out", scratch / "all.gpuwhy",
                               "--html", scratch / "report.html"))
        check_planted(fleet, truth)
        check_sums(fleet, truth)
        page = (scratch / "report.html").read_text()
        assert re.search(rf'title="rank {truth["slow_rank"]}: \+(29|30)\.', page) and "<script" not in page
        files = sorted(job.glob("rank-*/summary.gpuwhy"))
        whole = (scratch / "all.gpuwhy").read_bytes()
        for seed in range(3):
            assert tree(options.program, files, scratch, random.Random(seed)) == whole, seed
        # A merged file says the same as the ranks it was made of, but not why a rank is late.
        again = json.loads(run(options.program, "merge", scratch / "all.gpuwhy", "--json"))
        assert again["rank_table"][0]["reason"] == {"absent": "its own summary is not among the files"}
        again["rank_table"] = fleet["rank_table"] = None
        assert again == fleet
        # A rank that is not there is named; and a folder without a summary is a rank that began.
        (job / "rank-000017/summary.gpuwhy").unlink()
        words = run(options.program, "merge", job, codes=(7,))
        assert "63 of 64 ranks; missing 17" in words and "ranks 17 began attempt 0" in words, words
        # Recordings go where they were asked to go, and nowhere else.
        for rank in (1, truth["slow_rank"]):
            (job / f"rank-{rank:06}/nsys").mkdir()
            (job / f"rank-{rank:06}/nsys/run.sqlite").write_text("recording")
        run(options.program, "merge", job, codes=(7,))
        assert (job / "rank-000001/nsys/run.sqlite").is_file()
        run(options.program, "merge", job, "--keep-raw", "outliers", codes=(7,))
        assert not (job / "rank-000001/nsys/run.sqlite").is_file()
        assert (job / f"rank-{truth['slow_rank']:06}/nsys/run.sqlite").is_file()
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Comparisons of real recordings: sums to the nanosecond, fingerprints that decide what is comparable.

The sums are checked against numbers taken from the recordings themselves by SQL, not by this program.
"""
import json
import pathlib
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing


def compare(program, base, candidate, *options):
    result = subprocess.run([program, "compare", base, "--to", candidate, "--format", "json", *options],
                            capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"compare {base} --to {candidate}: exit {result.returncode}: {result.stderr}")
    return result.returncode, json.loads(result.stdout)


def expect(condition, what):
    if not condition:
        sys.exit(what)


def kernel_sums(path):
    """Kernel time by name and device, straight from the tables."""
    with sqlite3.connect(f"file:{path}?immutable=1", uri=True) as database:
        rows = database.execute("""SELECT coalesce(s.value, ''), k.deviceId, sum(k.end - k.start), count(*)
            FROM CUPTI_ACTIVITY_KIND_KERNEL k LEFT JOIN StringIds s ON s.id = k.shortName GROUP BY 1, 2""").fetchall()
    return rows


def check_sums(program, before, after):
    code, found = compare(program, before, after)
    whole = sum(row[2] for row in kernel_sums(after)) - sum(row[2] for row in kernel_sums(before))
    expect(found["kernel_time"]["difference_ns"] == whole, f"kernel time differs by {whole} in the tables")
    expect(sum(row["difference_ns"] for row in found["kernels"]) == whole, "rows do not sum to the difference")
    expect(found["kernel_time"]["not_in_rows_ns"] == 0, "some time is in no row")
    for row in found["kernels"]:
        expect(row["launches_ns"] + row["duration_ns"] == row["difference_ns"], f"a row does not sum: {row}")
    for stage in found["stages"]:
        rows = sum(row["difference_ns"] for row in found["kernels"] if row["stage"] == stage["stage"])
        expect(rows == stage["difference_ns"], f"{stage} is not the sum of its rows")
    expect(sum(row["difference_ns"] for row in found["families"]) == whole, "families do not sum to the difference")
    operators = found["operators"]
    if operators["rows"]:
        rows = sum(row["difference_ns"] for row in operators["rows"])
        expect(rows + operators["not_in_rows_ns"] == operators["difference_ns"], "operators do not sum to the difference")
        expect(sum(row["difference_ns"] for row in operators["kinds"]) == rows, "kinds do not sum to their operators")
    for ledger in found["ledgers"]:
        expect(sum(row["difference_ns"] for row in ledger["buckets"]) == ledger["difference_ns"], f"{ledger}")
    # What moved most, found another way: by the short names of the tables.
    moved = {}
    for sign, path in ((-1, before), (1, after)):
        for name, _, time, _ in kernel_sums(path):
            moved[name] = moved.get(name, 0) + sign * time
    most = max(moved, key=lambda name: abs(moved[name]))
    names = [row["kernel"] for row in found["kernels"][:6]]
    # Ours leave out what every name has.
    expect(any(most.removesuffix("_kernel") in name for name in names), f"{most} moved by {moved[most]} ns, shown are {names}")
    return code, found


def check_nccl(program, folder):
    before, after = (folder / f"v2026.2.1_nsysai_mfu_h100x2_nccl_{side}.sqlite" for side in ("before", "after"))
    code, found = check_sums(program, before, after)
    # Windows of 0.3 s with no stage marked: 4010 launches against 3587 is not the same work.
    expect(code == 0 and found["verdict"] == "invalid", found["sentence"])
    expect([row["fact"] for row in found["fingerprint"] if row["breaks"]] == ["launches"], found["fingerprint"])
    expect(all(row["change"] == "not judged" for row in found["metrics"]), "an invalid comparison was judged")
    # A clock ended both: nearly all kernels ran less often by one ratio, so that is the work, and less of it fits in.
    calls = [sum(row[3] for row in kernel_sums(path)) for path in (before, after)]
    pace = found["pace"]
    expect(abs(pace["work_ratio"] * calls[0] / calls[1] - 1) < 0.01, (pace, calls))
    expect(abs(pace["time_ratio"] * pace["work_ratio"] * pace["base_ns"] / pace["candidate_ns"] - 1) < 1e-9, pace)
    # Known of this pair: the slow rank is the other one afterwards.
    expect([(row["bucket"], row["from"], row["to"]) for row in found["moved_waits"]] == [("comm", "cuda:0", "cuda:1")], found["moved_waits"])
    code, found = compare(program, before, after, "--allow", "launches")
    expect(code == 0 and found["verdict"] == "inconclusive", found["sentence"])  # one run per side
    code, found = compare(program, before, before)
    expect([row["fact"] for row in found["fingerprint"] if row["breaks"]] == ["runs"], found["fingerprint"])
    code, found = compare(program, before, before, "--allow", "runs")
    expect(found["verdict"] == "inconclusive", found["sentence"])
    expect(all(row["difference_ns"] == 0 for row in found["kernels"]), "a recording differs from itself")


def check_four_ways(program, folder):
    files = {way: folder / f"v2024.6.2_cs336_lm2.7B_a100_{way}.sqlite"
             for way in ("nvtx", "nonvtx", "clean", "cudagraph")}
    breaking = {("nvtx", "nonvtx"): [], ("nvtx", "clean"): ["launches"], ("nonvtx", "clean"): ["launches"],
                ("nvtx", "cudagraph"): ["graphs", "launches"], ("nonvtx", "cudagraph"): ["graphs", "launches"],
                ("clean", "cudagraph"): ["graphs", "launches"]}
    for (a, b), facts in breaking.items():
        _, found = check_sums(program, files[a], files[b]) if "cudagraph" not in (a, b) else compare(
            program, files[a], files[b])
        broken = [row["fact"] for row in found["fingerprint"] if row["breaks"]]
        expect(broken == facts, f"{a} against {b}: {found['fingerprint']}")
        expect((found["verdict"] == "invalid") == bool(facts), f"{a} against {b}: {found['verdict']}")
    small = folder / "v2024.6.2_cs336_small_a100.sqlite"
    expect(compare(program, files["nvtx"], small)[1]["verdict"] == "invalid", "another model")


def check_empty(program, folder):
    full = folder / "v2024.6.2_cs336_lm2.7B_a100_nvtx.sqlite"
    for empty in ("v2021.3.2_dynamicvit_nokernels", "v2025.6.1_cs336_nocuda_rtx4070ti"):
        code, found = compare(program, full, folder / f"{empty}.sqlite", "--allow", "launches,stages,gpu,format")
        expect(code == 0 and found["verdict"] == "invalid", f"{empty} is a win: {found['sentence']}")


def check_vendors(program, folder):
    h100, mi300 = (folder / f"tracelens_{gpu}_qwen1.5-0.5b.json.gz" for gpu in ("h100", "mi300"))
    _, found = compare(program, h100, mi300)
    gpu = [row for row in found["fingerprint"] if row["fact"] == "gpu"]
    expect(found["verdict"] == "invalid" and gpu and gpu[0]["breaks"], found["fingerprint"])
    # The same model on both: each product of a shape ran as often, and an operator of several shapes has a row for each.
    shaped = [row for row in found["operators"]["rows"] if row["shape"]]
    names = [row["operator"] for row in shaped]
    expect(len(names) > len(set(names)) > 1 and all(row["base_calls"] == row["candidate_calls"] for row in shaped), shaped)


def main():
    arguments = testing.arguments("program", "corpus")
    folder = testing.needed(arguments.corpus / "nsys_sqlite")
    check_nccl(arguments.program, folder)
    check_four_ways(arguments.program, folder)
    check_empty(arguments.program, folder)
    check_vendors(arguments.program, arguments.corpus / "kineto")
    print("comparisons of real recordings hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())

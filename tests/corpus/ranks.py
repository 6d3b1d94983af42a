#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real recordings of several ranks: summary, merge, and waiting separated from transfer.

What merge must say is worked out here a second time, from the recordings themselves: SQL on the one, json on the
other. The n-th communication kernel of a stream is the n-th collective.

The same ranks, one file each, through analyze: one job, whose clocks agree as far as its collectives do.
"""
import collections
import gzip
import json
import pathlib
import shutil
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing


def run(*argv, codes=(0,)):
    result = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=120)
    assert result.returncode in codes, (argv, result.returncode, result.stderr)
    return result.stdout


def expected_of(ranks):
    """ranks: {rank: {stream: [(start, duration)...]}} -> the parts of the time in collectives."""
    meetings = collections.defaultdict(dict)
    for rank, streams in ranks.items():
        order = sorted(streams, key=lambda stream: min(streams[stream]))
        for number, stream in enumerate(order):
            for sequence, (_, duration) in enumerate(sorted(streams[stream])):
                meetings[number, sequence][rank] = duration
    parts = {"total_ns": 0, "transfer_ns": 0, "waiting_ns": 0, "alone_ns": 0, "num": len(meetings)}
    caused = collections.Counter()
    for durations in meetings.values():
        total = sum(durations.values())
        parts["total_ns"] += total
        if len(durations) == 1:
            parts["alone_ns"] += total
            continue
        shortest = min(durations.values())
        parts["transfer_ns"] += shortest * len(durations)
        parts["waiting_ns"] += total - shortest * len(durations)
        last = min(rank for rank, duration in durations.items() if duration == shortest)
        caused[last] += total - shortest * len(durations)
    return parts, caused


def check(fleet, ranks):
    parts, caused = expected_of(ranks)
    found = fleet["collectives"]
    assert {key: found[key] for key in parts} == parts, (found, parts)
    assert found["total_ns"] == found["transfer_ns"] + found["waiting_ns"] + found["alone_ns"], found
    assert found["waiting_ns"] > 0 and found["transfer_ns"] > 0, found
    rows = {row["rank"]: row for row in fleet["rank_table"]}
    assert set(rows) == set(ranks), rows
    for rank, row in rows.items():
        own = row["collectives"]
        assert own["total_ns"] == sum(d for calls in ranks[rank].values() for _, d in calls), (rank, own)
        assert own["total_ns"] == own["transfer_ns"] + own["waiting_ns"] + own["alone_ns"], own
        assert row["caused_ns"] == caused[rank], (rank, row["caused_ns"], caused)
    for key in ("total_ns", "transfer_ns", "waiting_ns", "alone_ns"):
        assert sum(row["collectives"][key] for row in rows.values()) == found[key], key
    assert sum(row["blamed_ns"] for row in rows.values()) == found["waiting_ns"]
    return found


def nsys_ranks(path):
    ranks = collections.defaultdict(lambda: collections.defaultdict(list))
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        for device, stream, start, duration in database.execute(
                "SELECT deviceId, streamId, start, k.end - start FROM CUPTI_ACTIVITY_KIND_KERNEL k"
                " JOIN StringIds s ON s.id = k.shortName WHERE s.value LIKE 'nccl%'"):
            ranks[device][stream].append((start, duration))
    return ranks


def kineto_ranks(path):
    with gzip.open(path) as file:
        trace = json.load(file)
    streams = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event.get("cat") == "kernel" and event["name"].startswith("nccl"):
            streams[event["args"]["stream"]].append((event["ts"] * 1000, round(event["dur"] * 1000)))
    return {trace["distributedInfo"]["rank"]: streams}, trace["distributedInfo"]["world_size"]


def write_rank(recording, pid, path, utc_error_ns=0):
    """What this process alone would have recorded."""
    shutil.copy(recording, path)
    path.chmod(0o600)
    with sqlite3.connect(path) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
            for column in columns & {"globalPid", "globalTid"}:
                database.execute(f"DELETE FROM {table} WHERE ({column} >> 24) & 0xffffff != ?", (pid,))
        database.execute("UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = utcEpochNs + ?", (utc_error_ns,))
    database.close()


def kernel_rows(metrics):
    """Without what depends on the other rows."""
    return sorted(json.dumps({key: value for key, value in row.items() if key not in ("kernel_fraction", "short_name")})
                  for row in metrics["kernels"])


def check_files_of_nsys(program, recording, scratch):
    with sqlite3.connect(f"file:{recording}?mode=ro", uri=True) as database:
        pids = [pid for (pid,) in database.execute(
            "SELECT DISTINCT (globalPid >> 24) & 0xffffff FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY 1")]
    whole = json.loads(run(program, "analyze", recording, "--json"))
    for utc_error_ns in (0, 5_000_000):
        files = [scratch / f"rank-{rank}.sqlite" for rank in range(len(pids))]
        for rank, (pid, path) in enumerate(zip(pids, files)):
            write_rank(recording, pid, path, rank * utc_error_ns)
        joined = json.loads(run(program, "analyze", *files, "--json"))
        shift_ns = joined["capture"]["files"][1]["shift_ns"]
        assert abs(shift_ns) <= (30_000 if utc_error_ns else 0), joined["capture"]["files"]
        assert kernel_rows(joined) == kernel_rows(whole)
        if utc_error_ns == 0:
            assert joined["ledgers"] == whole["ledgers"]
        print(recording.name, f"{utc_error_ns} ns off:", joined["capture"]["files"][1]["clock"])


def check_files_of_kineto(program, paths):
    """Two ranks of a data-parallel training: two groups, every kernel as in its own file."""
    joined = json.loads(run(program, "analyze", *paths, "--json"))
    alone = [json.loads(run(program, "analyze", path, "--json")) for path in paths]
    assert [file["rank"] for file in joined["capture"]["files"]] == [0, 1]
    assert [group["steps"] for group in joined["rank_groups"]] == [2, 2], joined["rank_groups"]
    assert kernel_rows(joined) == sorted(row for one in alone for row in kernel_rows(one))
    assert joined["capture"]["kernel_ns"] == sum(one["capture"]["kernel_ns"] for one in alone)


def check_groups(program, path, scratch):
    """Process groups of a real trace, worked out from its kernels: members, operations, calls and time. Nothing tells their kind."""
    with gzip.open(path) as file:
        trace = json.load(file)
    expected = collections.defaultdict(lambda: [0, 0])
    for event in trace["traceEvents"]:
        args = event.get("args") or {}
        if event.get("cat") == "kernel" and "Process Group Name" in args:
            members = json.loads(args["Process Group Ranks"])
            key = (f"group {args['Process Group Name']}, ranks {members[0]}-{members[-1]}", f"{members[0]}-{members[-1]}", len(members))
            expected[key][0] += 1
            expected[key][1] += round(event["dur"] * 1000)
    out = scratch / path.name
    run(program, "analyze", path, "--out", out)
    groups = json.loads(run(program, "merge", out, "--json", codes=(0, 7)))["groups"]
    found = {(g["communicator"], g["ranks"], g["size"]): [g["calls"], g["collectives"]["total_ns"]] for g in groups}
    assert found == expected and expected, (found, expected)
    assert all(g["kind"] is None and g["evidence"] and g["present"] == 1 for g in groups), groups
    print(path.name, groups[0]["ranks"], groups[0]["evidence"])


def main():
    options = testing.arguments("program", "corpus")
    recordings = sorted((options.corpus / "nsys_sqlite").glob("*_nsysai_mfu_h100x2_nccl_*.sqlite"))
    kineto = [options.corpus / f"kineto/hta_sampled_rank-{rank}.json.gz" for rank in (0, 1)]
    if len(recordings) != 2 or not all(path.is_file() for path in kineto):
        testing.skip(f"no recordings of several ranks in {options.corpus}")
    with testing.scratch() as scratch:
        for recording in recordings:
            out = scratch / recording.stem
            run(options.program, "analyze", recording, "--out", out)
            fleet = json.loads(run(options.program, "merge", out, "--json"))
            assert fleet["ranks"]["present"] == 2 and fleet["ranks"]["expected"] == 2, fleet["ranks"]
            found = check(fleet, nsys_ranks(recording))
            assert "streams" in found["communicators_by"][0], found
            print(recording.name, {k: found[k] for k in ("num", "total_ns", "transfer_ns", "waiting_ns")},
                  [(row["rank"], row["last"], row["blamed_ns"]) for row in fleet["rank_table"]])
            check_files_of_nsys(options.program, recording, scratch)
        check_files_of_kineto(options.program, kineto)
        for name in ("hta_nccl_data", "tracelens_b200_eager"):
            check_groups(options.program, options.corpus / f"kineto/{name}.json.gz", scratch)
        ranks = {}
        for path in kineto:
            run(options.program, "analyze", path, "--out", scratch / path.name)
            one, world_size = kineto_ranks(path)
            ranks.update(one)
        # Two of 128 ranks came: told, and by the exit code too.
        fleet = json.loads(run(options.program, "merge", *(scratch / path.name for path in kineto), "--json", codes=(7,)))
        assert fleet["ranks"]["expected"] == world_size == 128 and fleet["ranks"]["missing"] == ["2-127"], fleet["ranks"]
        # The recordings are samples: the n-th collective of one rank is not the n-th of the other, so none is matched and nobody is late.
        assert all(len(rank) > 0 for rank in ranks.values()), "the files have collectives"
        assert fleet["collectives"]["num"] == 0, fleet["collectives"]
        assert all(row["last"] == 0 and row["blamed_ns"] == 0 for row in fleet["rank_table"]), fleet["rank_table"]
    return 0


if __name__ == "__main__":
    sys.exit(main())

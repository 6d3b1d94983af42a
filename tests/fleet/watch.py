#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gpuwhy watch` over a folder of recordings: each is summarised once, also when the sweeper is killed at a random moment, and nothing
that was not summarised is ever removed."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
RANKS = 6


def run(*words, codes=(0,)):
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120)
    assert result.returncode in codes, (words, result.returncode, result.stdout, result.stderr)
    return result


def age(path, seconds=3600):
    """As if it had been written long ago: it is complete."""
    when = time.time() - seconds
    os.utime(path, (when, when))


def drop(recording, folder, ranks=RANKS):
    folder.mkdir(parents=True)
    for rank in range(ranks):
        shutil.copy(recording, folder / f"rank-{rank}.sqlite")
        age(folder / f"rank-{rank}.sqlite", 3600 - rank)


def sources(out):
    return sorted(path.read_text().splitlines()[0] for path in (out / "summaries").glob("*/source"))


def status(program, out):
    return json.loads(run(program, "fleet", "status", "--to", out / "summaries", "--json").stdout)


def check_sweeps(program, recording, scratch):
    folder, out, metrics = scratch / "drop", scratch / "watch", scratch / "gpuwhy.prom"
    drop(recording, folder / "job-1")
    (folder / "job-1" / "broken.sqlite").write_bytes(b"SQLite format 3\0 and no more")
    age(folder / "job-1" / "broken.sqlite")
    shutil.copy(recording, folder / "job-1" / "rank-9.sqlite")  # just written
    command = [program, "watch", folder, "--out", out, "--once", "--metrics", metrics, "--label", "cluster=a", "--label", "engine_version=7"]
    first = run(*command, codes=(7,))
    assert first.stderr.count("summarised") == RANKS and "cannot read" in first.stderr, first.stderr
    assert len(sources(out)) == RANKS and len(list((out / "failed").iterdir())) == 1
    known = status(program, out)["runs"]
    assert [(r["run_id"], r["ranks"], r["labels"], r["engine_version"]) for r in known] == [("job-1", RANKS, ["cluster=a"], "7")], known
    assert known[0]["day"], known
    # Nothing is done twice, a failure is not tried again, and what has settled meanwhile is taken.
    assert run(*command).stderr == ""
    age(folder / "job-1" / "rank-9.sqlite")
    assert run(*command).stderr.count("summarised") == 1
    # A file that was replaced is another recording of the same rank, not a second rank.
    age(folder / "job-1" / "rank-9.sqlite", 600)
    assert run(*command).stderr.count("summarised") == 1
    assert len(sources(out)) == RANKS + 1 and status(program, out)["notes"] == []
    text = metrics.read_text()
    assert text.endswith("# EOF\n") and f'gpuwhy_run_ranks{{run="job-1"}} {RANKS + 1}\n' in text, text
    assert re.search(r"^gpuwhy_recordings_total 1$", text, re.M) and re.search(r"^gpuwhy_failed_recordings_total 0$", text, re.M), text
    for line in text.splitlines():
        assert re.fullmatch(r'# (TYPE|HELP) \w+ .+|# EOF|\w+(\{run="[^"]*"\})? [0-9.]+', line), line
    assert len(list(folder.rglob("*.sqlite"))) == RANKS + 2  # by default nothing is removed


def check_lock(program, recording, scratch):
    folder, out = scratch / "locked", scratch / "locked-out"
    drop(recording, folder / "job", 1)
    watcher = subprocess.Popen([program, "watch", folder, "--out", out, "--interval", "1"], stderr=subprocess.PIPE, text=True)
    try:
        assert "summarised" in watcher.stderr.readline()
        second = run(program, "watch", folder, "--out", out, "--once", codes=(2,))
        assert "another gpuwhy watches" in second.stderr, second.stderr
    finally:
        watcher.send_signal(signal.SIGTERM)
        watcher.wait(10)
    run(program, "watch", folder, "--out", out, "--once")


def check_kills(program, recording, scratch):
    """Killed at random moments, it goes on from there: every recording once."""
    folder, out = scratch / "killed", scratch / "killed-out"
    for job in range(3):
        drop(recording, folder / f"job-{job}")
    chance = random.Random(7)
    for _ in range(12):
        watcher = subprocess.Popen([program, "watch", folder, "--out", out, "--once"], stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.02, 0.3))
        watcher.kill()
        watcher.wait()
    run(program, "watch", folder, "--out", out, "--once")
    assert sources(out) == sorted(str(path) for path in folder.rglob("*.sqlite"))
    assert [(r["ranks"]) for r in status(program, out)["runs"]] == [RANKS] * 3
    for summary in (out / "summaries").glob("*"):
        assert (summary / "source").is_file() and list(summary.glob("summary*.gpuwhy")), summary


def check_space(program, recording, scratch):
    """Recordings of ranks like the others go, one stays; a budget takes the oldest; what was not read stays."""
    folder, out = scratch / "space", scratch / "space-out"
    drop(recording, folder / "job-1")
    (folder / "job-1" / "broken.sqlite").write_bytes(b"nothing")
    age(folder / "job-1" / "broken.sqlite")
    run(program, "watch", folder, "--out", out, "--once", "--keep-raw", "outliers", codes=(7,))
    left = sorted(path.name for path in folder.rglob("*.sqlite"))
    assert len(left) == 2 and "broken.sqlite" in left, left
    drop(recording, folder / "job-2", 3)
    size = recording.stat().st_size
    result = run(program, "watch", folder, "--out", out, "--once", "--disk-budget", 2 * size)
    assert "removed 2 recordings" in result.stderr, result.stderr
    left = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.sqlite"))
    assert left == ["job-1/broken.sqlite", "job-2/rank-1.sqlite", "job-2/rank-2.sqlite"], left
    assert [r["ranks"] for r in status(program, out)["runs"]] == [RANKS, 3]  # summaries stay


def check_push(program, recording, scratch):
    """--to: each summary is sent once, also when the server could not take it at first."""
    from hostile import Server, done  # as much of ClickHouse as a push needs
    folder, out = scratch / "pushed", scratch / "pushed-out"
    drop(recording, folder / "job-1", 3)
    has_tables = []
    server = Server(lambda h, q, b: done(h, b"Code: 60. DB::Exception: no table", status=404) if q and not has_tables else False)

    def sweep():
        return subprocess.run([program, "watch", folder, "--out", out, "--once", "--to", server.url], capture_output=True, text=True,
                              timeout=120, env={**os.environ, "NO_PROXY": "127.0.0.1"})

    away = sweep()
    assert "not sent" in away.stderr and "Code: 60" in away.stderr and not server.inserts, away.stderr
    assert len(sources(out)) == 3  # summarised all the same
    has_tables.append(True)
    sweep()
    tables = [table for table, _ in server.inserts]
    assert tables.count("gpuwhy.ranks") == 1 and tables[-1] == "gpuwhy.ranks", tables
    sweep()
    assert [table for table, _ in server.inserts] == tables  # nothing is sent twice
    drop(recording, folder / "job-2", 1)
    sweep()
    assert [table for table, _ in server.inserts].count("gpuwhy.ranks") == 2
    server.server_close()


def main():
    options = testing.arguments("program", "make-trace")
    with testing.scratch() as scratch:
        recording = scratch / "recording.sqlite"
        run(options.make_trace, recording, 2000, "--processes", 1)
        for check in (check_sweeps, check_lock, check_kills, check_space, check_push):
            check(options.program, recording, scratch)
            print(f"{check.__name__}: ok", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

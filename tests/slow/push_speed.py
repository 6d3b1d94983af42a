#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `llmprof fleet push` costs beside a bare insert of the same rows, on one ClickHouse server of this machine.

The bare insert sends the bytes of the spool's own batches with curl, as they are: no reading of summaries, no hashing, no spool, no
seals. Both go to empty tables; the order changes each round. Prints CPU time of the client and wall time."""
import argparse
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fleet"))
import cluster  # noqa: E402

SKIP = 77


def timed(command, **options):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, **options)
    wall = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return result, wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def sections(batch):
    data = batch.read_bytes()
    end = data.index(b"\n") + 1
    for section in json.loads(data[:end])["sections"]:
        yield section["table"], section["columns"], data[end:end + section["bytes"]]
        end += section["bytes"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--make-history", required=True)
    parser.add_argument("--size", default="4,100,500", help="runs, ranks and kernels")
    options, _ = parser.parse_known_args()
    if cluster.missing() or not shutil.which("curl"):
        print(f"skipped: needs {cluster.missing() or 'curl'} (tools/install-deps.sh fleet)")
        return SKIP
    environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
    with tempfile.TemporaryDirectory() as folder, cluster.Cluster(pathlib.Path(folder) / "nodes") as nodes:
        folder, url = pathlib.Path(folder), nodes.url(1)
        made = subprocess.run([options.make_history, folder / "data", *options.size.split(",")], check=True, capture_output=True, text=True)
        truth = json.loads(made.stdout)
        timed([options.program, "fleet", "push", folder / "data", "--to", "http://127.0.0.1:1", "--wait", "1", "--spool", folder / "waiting"],
              env=environment)
        bare = []
        for batch in sorted((folder / "waiting").glob("*.batch")):
            for number, (table, columns, rows) in enumerate(sections(batch)):
                path = folder / f"{batch.stem}-{number}.rows"
                path.write_bytes(rows)
                bare.append((table, columns, path))
        ratios = []
        for number in range(3):
            figures = {}
            for way in ("push", "bare") if number % 2 else ("bare", "push"):
                database = f"{way}_{number}"
                subprocess.run([options.program, "fleet", "init", "--to", url, "--database", database], check=True, capture_output=True, env=environment)
                if way == "push":
                    result, wall, cpu = timed([options.program, "fleet", "push", folder / "data", "--to", url, "--database", database, "--spool",
                                               folder / database], env=environment)
                    assert result.returncode == 0, result.stderr
                else:
                    wall = cpu = 0
                    for table, columns, path in bare:
                        query = urllib.parse.quote(f"INSERT INTO {database}.{table} ({columns}) FORMAT RowBinary")
                        result, one, more = timed(["curl", "-sS", "--fail", "--noproxy", "*", "--data-binary", f"@{path}", f"{url}/?query={query}"])
                        assert result.returncode == 0, result.stderr
                        wall, cpu = wall + one, cpu + more
                rows, total = nodes.query(1, f"SELECT count(), sum(total_ns) FROM {database}.kernels").split()
                assert (int(rows), total) == (truth["rows"], truth["total_ns"]), (rows, total)
                figures[way] = (wall, cpu)
                print(f"{way}: {wall:.2f} s wall, {cpu:.2f} s CPU of the client, {truth['rows'] / wall / 1000:.0f} k rows/s", flush=True)
            ratios.append(figures["bare"][0] / figures["push"][0])
        print(f"{truth['rows']} kernel rows; throughput of push / bare insert: {', '.join(f'{ratio:.2f}' for ratio in ratios)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

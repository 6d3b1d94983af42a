#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `gpuwhy fleet push` costs beside a bare insert of the same rows, on one ClickHouse server of this machine.

The bare inserts send the bytes of the spool's own batches, one insert per table, with clickhouse-client and with curl: no reading of
summaries, no hashing, no spool, no seals. All go to empty tables; the order changes each round. Prints wall time and CPU time, of the client and of
the server. Push must have half of the throughput of clickhouse-client, by the median of the rounds."""
import json
import os
import pathlib
import resource
import statistics
import shutil
import subprocess
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fleet"))
import cluster  # noqa: E402

ROUNDS = 5
LEAST = 0.5  # of the throughput of clickhouse-client


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


def server_seconds(nodes):
    """Processor time of the server so far, of all its threads."""
    fields = pathlib.Path(f"/proc/{nodes.running['n1'].pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bare_insert(way, nodes, database, table, columns, path):
    statement = f"INSERT INTO {database}.{table} ({columns}) FORMAT RowBinary"
    if way == "curl":
        return timed(["curl", "-sS", "--fail", "--noproxy", "*", "--data-binary", f"@{path}", f"{nodes.url(1)}/?query={urllib.parse.quote(statement)}"])
    with open(path, "rb") as rows:
        return timed(["clickhouse-client", "--host", "127.0.0.1", "--port", nodes.tcp[1], "--query", statement], stdin=rows)


def measure(way, options, nodes, folder, bare, database, environment):
    """Seconds of wall time, of the client and of the server."""
    before = server_seconds(nodes)
    if way == "push":
        result, wall, cpu = timed([options.program, "fleet", "push", folder / "data", "--to", nodes.url(1), "--database", database, "--spool",
                                   folder / database], env=environment)
        assert result.returncode == 0, result.stderr
        return wall, cpu, server_seconds(nodes) - before
    wall = cpu = 0
    for table, (columns, path) in bare.items():
        result, one, more = bare_insert(way, nodes, database, table, columns, path)
        assert result.returncode == 0, result.stderr
        wall, cpu = wall + one, cpu + more
    return wall, cpu, server_seconds(nodes) - before


def main():
    options = testing.arguments("program", "make-history", size="4,250,500")  # size: runs, ranks and kernels
    needed = [tool for tool in ("curl", "clickhouse-client") if not shutil.which(tool)]
    if cluster.missing() or needed:
        testing.skip(f"needs {cluster.missing() or ', '.join(needed)} (tools/install-deps.sh fleet)")
    environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
    ways = ["clickhouse-client", "push", "curl"]
    with testing.scratch() as folder:
        nodes = cluster.Cluster(folder / "nodes")
        try:
            nodes.start(1)
            nodes.wait_up(1)
            made = subprocess.run([options.make_history, folder / "data", *options.size.split(",")], check=True, capture_output=True, text=True)
            truth = json.loads(made.stdout)
            timed([options.program, "fleet", "push", folder / "data", "--to", "http://127.0.0.1:1", "--wait", "1", "--spool", folder / "waiting"],
                  env=environment)
            bare = {}
            for batch in sorted((folder / "waiting").glob("*.batch")):
                for table, columns, rows in sections(batch):
                    bare[table] = columns, folder / f"{table}.rows"
                    with open(bare[table][1], "ab") as file:
                        file.write(rows)
            ratios = {way: [] for way in ways}
            for number in range(ROUNDS):
                figures = {}
                for way in ways[number % 3:] + ways[:number % 3]:
                    database = f"{way.replace('-', '_')}_{number}"
                    subprocess.run([options.program, "fleet", "init", "--to", nodes.url(1), "--database", database], check=True,
                                   capture_output=True, env=environment)
                    figures[way] = wall, client, server = measure(way, options, nodes, folder, bare, database, environment)
                    rows, total = nodes.query(1, f"SELECT count(), sum(total_ns) FROM {database}.kernels").split()
                    assert (int(rows), total) == (truth["rows"], truth["total_ns"]), (rows, total)
                    nodes.query(1, f"DROP DATABASE {database}")
                    print(f"{way}: {wall:.2f} s wall, {client:.2f} CPU s of the client, {server:.2f} of the server, "
                          f"{truth['rows'] / wall / 1000:.0f} k rows/s", flush=True)
                for way in ways:
                    ratios[way].append(figures[way][0] / figures["push"][0])
        finally:
            nodes.stop()
    print(f"{truth['rows']} kernel rows; throughput of push: " + "; ".join(
        f"{', '.join(f'{ratio:.2f}' for ratio in ratios[way])} of {way}'s, median {statistics.median(ratios[way]):.2f}" for way in ways if way != "push"))
    assert statistics.median(ratios["clickhouse-client"]) >= LEAST, ratios
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A history on a real ClickHouse cluster, two shards with two replicas and ZooKeeper, while its nodes are killed.

Several pushes at once send the same runs in different batches through different nodes. Afterwards counts, sums and
histograms must be the generator's on every replica, and every question must be answered as on the folder of summaries,
and as by a recent ClickHouse (libchdb), if there is one. With --large two million rows: tests/slow/fleet_history_large.py."""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "fleet")]
from busy import slowness  # noqa: E402
import chdb_bridge  # noqa: E402
import cluster  # noqa: E402

QUESTIONS = {
    "status": ["status"],
    "top": ["top", "--top", "all"],
    "top of a stage": ["top", "--stage", "decode"],
    "stragglers": ["stragglers", "--run", "run-001"],
    "regressions": ["regressions", "--base", "v1", "--candidate", "v2"],
    "regressions of runs": ["regressions", "--base", "run-000", "--candidate", "run-007", "--top", "all"],
    "trend": ["trend"],
    "layers": ["layers", "--top", "all"],
}


class Test:
    def __init__(self, arguments, folder):
        self.program = arguments.program
        self.make_history = arguments.make_history
        self.folder = pathlib.Path(folder)
        self.size = ["8", "250", "500"] if arguments.large else ["8", "24", "100"]
        self.peace_s = 2 if arguments.large else 0.3  # between a node's return and the next one's death
        self.data = self.folder / "history"

    def gpuwhy(self, *words, code=0, **options):
        result = subprocess.run([self.program, "fleet", *map(str, words)], capture_output=True, text=True, timeout=500,
                                env={**os.environ, "NO_PROXY": "127.0.0.1"}, **options)
        assert code is None or result.returncode == code, (words, result.returncode, result.stdout, result.stderr)
        return result

    def push(self, nodes, spool, batch_rows, *files, wait=400, code=0):
        return self.gpuwhy("push", *files, "--to", nodes, "--spool", self.folder / spool, "--batch-rows", batch_rows,
                            "--wait", wait, code=code)

    def answers(self, where):
        return {name: json.loads(self.gpuwhy(*words, "--to", where, "--json").stdout) for name, words in QUESTIONS.items()}


def step(text):
    print(f"[{time.monotonic() - STARTED:5.1f} s] {text}", flush=True)


def generate(test):
    made = subprocess.run([test.make_history, test.data, *test.size], check=True, capture_output=True, text=True)
    truth = json.loads(made.stdout)
    step(f"{truth['rows']} kernel rows of {test.size[0]} runs x {test.size[1]} ranks")
    return truth


def push_under_fire(test, nodes):
    """Three pushes at once: runs 0..5 in two halves, and some of them again, cut otherwise and through other nodes. Nodes
    of both shards die in turn; never both replicas of a shard."""
    runs = sorted(test.data.iterdir())
    jobs = [(nodes.urls(1, 3, 2, 4), "a", "50000", runs[0:3]), (nodes.urls(2, 4, 1, 3), "b", "7001", runs[3:6]),
            (nodes.urls(4, 1, 3, 2), "c", "1777" if test.size[1] == "24" else "90000", runs[1:5])]
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        pushes = [pool.submit(test.push, urls, spool, rows, *files) for urls, spool, rows, files in jobs]
        kills = 0
        while not all(push.done() for push in pushes) or kills < 3:
            n = (1, 4, 2, 3)[kills % 4]
            nodes.kill(f"n{n}")
            kills += 1
            time.sleep(0.7)
            nodes.start(n)
            nodes.wait_up(n)
            time.sleep(test.peace_s)
        for push in pushes:
            print("   ", push.result().stdout.strip())
    sent = sum(len(list(r.iterdir())) for _, _, _, files in jobs for r in files) * int(test.size[2]) * 2
    seconds = time.monotonic() - started
    step(f"{sent} rows sent by three pushes in {seconds:.1f} s ({sent / seconds:.0f} rows/s), {kills} nodes killed meanwhile")


def push_without_zookeeper(test, nodes):
    """Nothing can be stored, nothing is lost, and all of it arrives when ZooKeeper is back."""
    runs = sorted(test.data.iterdir())[6:]
    nodes.kill("zookeeper")
    result = test.push(nodes.urls(), "z", "200000", *runs, wait=3, code=5)
    assert "wait in" in result.stderr and list((test.folder / "z").glob("*.batch")), result.stderr
    step("without ZooKeeper: " + result.stderr.splitlines()[0][:110])
    nodes.start_zookeeper()
    result = test.push(nodes.urls(), "z", "200000", wait=120)
    assert not list((test.folder / "z").glob("*.batch"))
    step("ZooKeeper is back: " + result.stdout.strip())


def sync(nodes, database):
    for n in cluster.NODES:
        for table in ("names", "kernels", "stages", "parts", "ranks", "kernel_runs", "seals"):
            nodes.synced(n, f"{database}.{table}_local")


def check_replicas(test, nodes, truth):
    """Each replica by itself, with no help of gpuwhy: the rows that count, summed by the test's own query."""
    sync(nodes, "gpuwhy")
    for pair in ((1, 3), (2, 4)):
        rows, calls, total_ns, stored, histogram = 0, 0, 0, 0, {}
        for n in pair:
            answer = nodes.query(n, "SELECT count(), sum(calls), sum(total_ns) FROM gpuwhy.kernels_local FINAL")
            more = [int(x) for x in answer.split("\t")]
            rows, calls, total_ns = rows + more[0], calls + more[1], total_ns + more[2]
            stored += int(nodes.query(n, "SELECT count() FROM gpuwhy.kernels_local"))
            for line in nodes.query(n, "SELECT step, sum(launches) FROM gpuwhy.kernels_local FINAL ARRAY JOIN hist_steps AS step, "
                                       "hist_counts AS launches GROUP BY step").splitlines():
                key, count = line.split("\t")
                histogram[key] = histogram.get(key, 0) + int(count)
        assert (rows, calls, str(total_ns)) == (truth["rows"], truth["calls"], truth["total_ns"]), (pair, rows, calls, total_ns, truth)
        assert histogram == truth["histogram"], pair
        step(f"nodes {pair}: {rows} rows, {calls} calls, {total_ns} ns, {len(histogram)} histogram steps = the generator's"
             f" ({stored - rows} repeated rows not merged yet)")


def check_planted(test, nodes, truth, answers):
    slow = answers["stragglers"]["stragglers"]
    assert {one["rank"] for one in slow} == {truth["slow_rank"]} and len(slow) == 2, slow
    assert all(0.13 < one["slower_fraction"] < 0.17 for one in slow), slow
    slower = answers["regressions"]["kernels"]
    assert {one["kernel"] for one in slower} == {truth["slow_kernel"]} and len(slower) == 2, slower
    assert all(0.28 < one["slower_fraction"] < 0.32 for one in slower), slower
    assert answers["top"]["total_ns"] == int(truth["total_ns"])
    assert {part["part"]: part["total_ns"] for part in answers["layers"]["parts"]} == truth["part_ns"]
    assert sum(kernel["calls"] for kernel in answers["top"]["kernels"]) == truth["calls"]
    for name in ("stragglers", "regressions", "top", "trend"):
        times, busy = [], slowness()
        for _ in range(7):
            started = time.monotonic()
            test.gpuwhy(*QUESTIONS[name], "--to", nodes.urls())
            times.append(time.monotonic() - started)
        step(f"{name}: {min(times) * 1000:.0f} ms, the whole command, best of 7")
        # A busy machine must not fail the test; a full table scan must.
        limit_s = 0.2 * max(busy, slowness())
        assert min(times) < limit_s or name in ("top", "trend"), times


def check_incomplete(test, nodes):
    """A run of which a rank is missing says so, on a server and in a folder, and is sealed when the rank has come."""
    made = test.folder / "incomplete"
    subprocess.run([test.make_history, made, "1", "4", "5"], check=True, capture_output=True)
    ranks = sorted((made / "run-000").iterdir())
    part = test.folder / "part"
    part.mkdir()
    for rank in ranks[:3]:
        (part / rank.name).write_bytes(rank.read_bytes())
    other = ["--database", "other"]
    spool = ["--spool", test.folder / "i"]
    assert "0 runs sealed" in test.gpuwhy("push", part, "--to", nodes.url(1), *other, *spool).stdout
    sync(nodes, "other")
    for where in (["--to", part], ["--to", nodes.url(1), *other]):
        assert "run run-000: 3 of 4 ranks" in test.gpuwhy("top", *where).stderr
        assert "3 of 4  no " in " ".join(test.gpuwhy("status", *where).stdout.split("\n")[1:]).replace("   ", "  ")
    test.gpuwhy("push", ranks[3], "--to", nodes.url(2), *other, *spool)
    sync(nodes, "other")
    test.gpuwhy("push", "--to", nodes.url(2), *other, *spool)  # seals what lag may have hidden from the last one
    sync(nodes, "other")
    run = json.loads(test.gpuwhy("status", "--to", nodes.url(1), *other, "--json").stdout)["runs"][0]
    assert run["ranks"] == 4 and run["is_sealed"], run


def check_credentials(test, nodes):
    guarded = {**os.environ, "GPUWHY_CLICKHOUSE_USER": "guarded", "GPUWHY_CLICKHOUSE_PASSWORD": cluster.SECRET}
    for password, code in ((cluster.SECRET, 0), ("wrong", 5)):
        result = subprocess.run([test.program, "fleet", "status", "--to", nodes.url(1)], capture_output=True, text=True,
                                env={**guarded, "GPUWHY_CLICKHOUSE_PASSWORD": password})
        assert result.returncode == code, result
        assert cluster.SECRET not in result.stderr
    refused = test.gpuwhy("sql", "DROP TABLE gpuwhy.kernels", "--to", nodes.url(1), code=5)
    assert "readonly" in refused.stderr
    assert test.gpuwhy("sql", "SELECT 'a\\tb'", "--to", nodes.url(1)).stdout == "a\\tb\n"


def modern_answers(test):
    """The same history on a recent ClickHouse; None if there is none."""
    if not chdb_bridge.find_library():
        print("not tested: no libchdb; tools/install-deps.sh chdb fetches it")
        return None
    folder = test.folder / "chdb"
    folder.mkdir()
    bridge = subprocess.Popen([sys.executable, chdb_bridge.__file__, folder], stdout=subprocess.PIPE, text=True,
                              preexec_fn=cluster.die_with_parent)
    try:
        url = bridge.stdout.readline().strip()
        ready = test.gpuwhy("init", "--to", url, "--keep-days", "36500").stdout
        started = time.monotonic()
        pushed = test.push(url, "m", "150000", test.data)
        step(f"{ready.strip()}: {pushed.stdout.strip()} in {time.monotonic() - started:.1f} s")
        step("two runs again, cut otherwise: " + test.push(url, "m", "4000", "--again", *sorted(test.data.iterdir())[:2]).stdout.strip())
        for table, words in (("kernels", ["CODEC(T64, ZSTD(1))", "TTL day", "non_replicated_deduplication_window"]),
                             ("ranks", ["LowCardinality(String)"])):
            statement = test.gpuwhy("sql", f"SHOW CREATE TABLE gpuwhy.{table}", "--to", url).stdout
            assert all(word in statement for word in words), statement
        return test.answers(url)
    finally:
        bridge.kill()
        bridge.wait()


def compare(test, sources):
    names = list(sources)
    print(f"  {'question':<20} " + " ".join(f"{name:>18}" for name in names))
    for question in QUESTIONS:
        texts = [json.dumps(sources[name][question], sort_keys=True) for name in names]
        digests = [f"{hash(text) & 0xffffffff:08x} {len(text):>7} B" for text in texts]
        print(f"  {question:<20} " + " ".join(f"{digest:>18}" for digest in digests))
        assert len(set(texts)) == 1, question


def main():
    arguments = testing.arguments("program", "make-history", large=False)
    if cluster.missing():
        testing.skip(f"needs {cluster.missing()} (tools/install-deps.sh fleet)")
    with tempfile.TemporaryDirectory() as folder:
        test = Test(arguments, folder)
        with cluster.Cluster(pathlib.Path(folder) / "cluster") as nodes:
            step("ZooKeeper and four servers are up")
            truth = generate(test)
            step(test.gpuwhy("init", "--to", nodes.url(1), "--cluster", "fleet").stdout.strip())
            test.gpuwhy("init", "--to", nodes.url(3), "--cluster", "fleet")
            # All tables are made while all nodes are well: 18.16's queue of statements for a cluster does not always go on after
            # ZooKeeper was killed, and a node then makes its tables much later or never.
            test.gpuwhy("init", "--to", nodes.url(1), "--cluster", "fleet", "--database", "other")
            push_under_fire(test, nodes)
            push_without_zookeeper(test, nodes)
            check_replicas(test, nodes, truth)
            step("sealed afterwards: " + test.push(nodes.urls(), "seal", "1000").stdout.strip())
            sync(nodes, "gpuwhy")
            answers = test.answers(nodes.urls())
            check_planted(test, nodes, truth, answers)
            check_incomplete(test, nodes)
            check_credentials(test, nodes)
            sources = {"folder": test.answers(test.data), "18.16, 2 x 2": answers}
            step("the folder has answered")
        modern = modern_answers(test)
        if modern:
            sources["26.5 (chDB)"] = modern
        compare(test, sources)
    step("done")
    return 0


STARTED = time.monotonic()
if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole way of a job: 128 ranks on 16 nodes of a real Slurm, their summaries by push and by watch, a ClickHouse cluster of two shards
with two replicas, and questions to it, to the folder, and to Parquet files by DuckDB: equal to the integer.

Servers, pushes and the watcher are killed with SIGKILL all the while. Three jobs: one under `gpuwhy run` with nsys on four ranks; one
whose ranks drop recordings with GPU work into a folder that `gpuwhy watch` sweeps; and generated ranks with known sums."""
import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "fleet"), str(TESTS / "python")]
import cluster as servers  # noqa: E402
import slurm  # noqa: E402
from job_tables import QUESTIONS, of_clickhouse, of_parquet  # noqa: E402
from prefix import tools_python  # noqa: E402
from runs import guarded  # noqa: E402

RANKS = slurm.NODES * slurm.PER_NODE
MADE_RUNS, MADE_KERNELS = 2, 60
TABLES = ("names", "kernels", "stages", "parts", "ranks", "kernel_runs", "seals")
STARTED = time.monotonic()


def step(text):
    print(f"[{time.monotonic() - STARTED:5.1f} s] {text}", flush=True)


class Chain:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.all = scratch / "all"  # every summary, at some depth
        self.drop, self.watched, self.made, self.spools = scratch / "drop", self.all / "watch", self.all / "made", scratch / "spools"
        for folder in (self.drop, self.made, self.spools):
            folder.mkdir(parents=True)
        self.environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
        self.chance = random.Random(options.seed)
        self.killed = {"servers": 0, "pushes": 0, "watchers": 0}

    def gpuwhy(self, *words, codes=(0,)):
        result = subprocess.run([self.options.program, "fleet", *map(str, words)], capture_output=True, text=True, timeout=400, env=self.environment)
        assert result.returncode in codes, (words, result.returncode, result.stdout, result.stderr)
        return result.stdout


def kill_servers(chain, nodes, work):
    """Servers die in turn and come back, until the work is done; never both replicas of a shard. In the main thread: a server dies with the
    thread that started it."""
    for n in itertools.cycle((1, 4, 2, 3)):
        if work.done():
            return
        nodes.kill(f"n{n}")
        chain.killed["servers"] += 1
        time.sleep(0.7)
        nodes.start(n)
        nodes.wait_up(n)
        time.sleep(1.5)


def pushes_of(chain):
    """Ids of the pushes of this test: their spools are in its folder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if b"push" in words and any(word.startswith(str(chain.spools).encode()) for word in words) and words[0] == chain.options.program.encode():
            found.append(int(entry.name))
    return found


def captured_job(chain, job):
    name = slurm.captured(job, "captured", "srun", f"-N{slurm.NODES}", f"-n{RANKS}", f"--ntasks-per-node={slurm.PER_NODE}",
                          *job.command("ranks.capture=every:32"))
    for folder in job.out.iterdir():  # of runs in which nsys lost its agent
        if folder.name != name:
            shutil.rmtree(folder)
    step(f"{RANKS} ranks under gpuwhy run, 4 of them under nsys: run {name}")
    return job.out / name


def push_by_nodes(chain, job, nodes, run):
    """One push per node, for its eight ranks of each run. They are started until all have come to their end."""
    made = sorted(chain.made.glob("run-*"))
    script = "\n".join([
        "#!/bin/sh", "n=$SLURM_NODEID", "files=",
        f"for i in $(seq $((n * {slurm.PER_NODE})) $((n * {slurm.PER_NODE} + {slurm.PER_NODE - 1}))); do",
        f"  files=\"$files $(printf '{run}/rank-%06d' $i)" + "".join(f" $(printf '{folder}/rank-%04d.gpuwhy' $i)" for folder in made) + "\"",
        "done",
        f"exec {chain.options.program} fleet push $files --to {nodes.urls()} --spool {chain.spools}/$n --batch-rows 600 --wait 120", ""])
    path = chain.scratch / "push.sh"
    path.write_text(script)
    path.chmod(0o755)
    for attempt in range(12):
        tasks = subprocess.Popen(["srun", f"-N{slurm.NODES}", f"-n{slurm.NODES}", "--ntasks-per-node=1", str(path)], env={
            **job.cluster.environment, "NO_PROXY": "127.0.0.1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while tasks.poll() is None and attempt < 6:
            time.sleep(chain.chance.uniform(0.2, 0.9))
            running = pushes_of(chain)
            for pid in chain.chance.sample(running, k=min(2, len(running))):
                try:
                    os.kill(pid, signal.SIGKILL)
                    chain.killed["pushes"] += 1
                except ProcessLookupError:
                    pass
        words = tasks.communicate(timeout=400)[0]
        if tasks.returncode == 0:
            step(f"16 pushes through Slurm, started {attempt + 1} times")
            return
    raise AssertionError("the pushes never came to their end: " + words[-2000:])


def drop_recordings(chain, job):
    """Each rank of a Slurm job leaves a recording, first under another name, as a careful writer does."""
    folder = chain.drop / "dropped"
    folder.mkdir()
    script = chain.scratch / "drop.sh"
    script.write_text("\n".join([
        "#!/bin/sh", "set -e", "r=$SLURM_PROCID",
        f"{chain.options.make_trace} {folder}/rank-$r.part $((600 + 7 * r)) --processes 1 --layers 4 >/dev/null",
        f"mv {folder}/rank-$r.part {folder}/rank-$r.sqlite", ""]))
    script.chmod(0o755)
    job.cluster.run("srun", f"-N{slurm.NODES}", f"-n{RANKS}", f"--ntasks-per-node={slurm.PER_NODE}", str(script))
    return folder


def watch(chain, nodes, stopped):
    """One watcher at a time; killed at random moments, and at last let alone until everything is sent."""
    words = [chain.options.program, "watch", str(chain.drop), "--out", str(chain.watched), "--to", nodes.urls(), "--settle", "1", "--interval", "1"]
    log = open(chain.scratch / "watch.log", "ab")
    while not stopped.is_set():
        watcher = subprocess.Popen(words, env=chain.environment, stdout=log, stderr=log, preexec_fn=servers.die_with_parent)
        stopped.wait(chain.chance.uniform(1, 5))
        watcher.kill()
        watcher.wait()
        chain.killed["watchers"] += 1
    log.close()


def finish_watch(chain, nodes):
    """`watch --once` until it has nothing to do: a server may be away in any sweep."""
    deadline = time.monotonic() + 240
    while True:
        result = subprocess.run([chain.options.program, "watch", str(chain.drop), "--out", str(chain.watched), "--to", nodes.urls(), "--once",
                                 "--settle", "1"], env=chain.environment, capture_output=True, text=True, timeout=300)
        known = json.loads(chain.gpuwhy("status", "--to", chain.watched / "summaries", "--json"))["runs"]
        if result.returncode == 0 and "not sent" not in result.stderr and known and known[0]["ranks"] == RANKS:
            return
        assert time.monotonic() < deadline, (result.returncode, result.stderr[-2000:], known)
        time.sleep(1)


def send_all(chain, job, nodes, run):
    stopped = threading.Event()
    watcher = threading.Thread(target=watch, args=(chain, nodes, stopped))
    watcher.start()
    try:
        folder = drop_recordings(chain, job)
        step(f"{len(list(folder.glob('*.sqlite')))} recordings dropped through Slurm")
        push_by_nodes(chain, job, nodes, run)
    finally:
        stopped.set()
        watcher.join()
    finish_watch(chain, nodes)


def settle(nodes):
    """Until both replicas of each shard have the same rows. An empty queue is not enough: 18.16 may find out later that parts are missing
    which it had when it was killed, and fetches them then."""
    for n in servers.NODES:
        for table in TABLES:
            nodes.synced(n, f"gpuwhy.{table}_local")
    deadline = time.monotonic() + 120
    for table in TABLES:
        for pair in ((1, 2), (3, 4)):
            while True:
                counts = {nodes.query(n, f"SELECT count() FROM gpuwhy.{table}_local FINAL").strip() for n in pair}
                if len(counts) == 1:
                    break
                assert time.monotonic() < deadline, (table, pair, counts)
                time.sleep(0.5)


def seal(chain, nodes):
    """After the last replica has caught up, a push without files seals what lag had hidden."""
    settle(nodes)
    step("afterwards: " + chain.gpuwhy("push", "--to", nodes.urls(), "--spool", chain.spools / "seal").strip())
    settle(nodes)


def check_equal(chain, nodes, truth):
    questions = [*QUESTIONS, ["stragglers", "--run", truth["slow_run"], "--top", "all"], ["regressions", "--base", "v1", "--candidate", "v2"]]
    for words in questions:
        of_folder, of_cluster = (chain.gpuwhy(*words, "--to", where, "--json") for where in (chain.all, nodes.urls()))
        assert of_folder == of_cluster, (words, of_folder[:3000], of_cluster[:3000])
    parquet, clickhouse = of_parquet(chain.options.program, chain.all, chain.scratch / "parquet"), of_clickhouse(chain.options.program, nodes.url(2))
    assert parquet == clickhouse, (parquet, clickhouse)
    top = json.loads(chain.gpuwhy("top", "--top", "all", "--to", nodes.urls(), "--json"))
    assert sorted([k["kernel"], k["calls"], k["total_ns"]] for k in top["kernels"]) == [[k, calls, total] for k, _, calls, total, _ in parquet["kernels"]]
    layers = json.loads(chain.gpuwhy("layers", "--top", "all", "--to", nodes.urls(), "--json"))["parts"]
    assert sum(part["total_ns"] for part in layers) == sum(row[4] for row in parquet["parts"]), layers
    known = json.loads(chain.gpuwhy("status", "--to", nodes.urls(), "--json"))["runs"]
    assert len(known) == 2 + MADE_RUNS and all(run["ranks"] == RANKS for run in known), known
    assert sum(run["is_sealed"] for run in known) >= 1 + MADE_RUNS, known  # what was dropped does not say how many ranks there are
    made = json.loads(chain.gpuwhy("top", "--top", "all", "--to", chain.made, "--json"))
    assert made["total_ns"] == int(truth["total_ns"]), made["total_ns"]
    slow = json.loads(chain.gpuwhy("stragglers", "--run", truth["slow_run"], "--to", nodes.urls(), "--json"))["stragglers"]
    assert {one["rank"] for one in slow} == {truth["slow_rank"]}, slow
    return len(questions), sum(map(len, parquet.values()))


def run_chain(options, scratch):
    chain = Chain(options, scratch)
    truth = json.loads(subprocess.run([options.make_history, chain.made, str(MADE_RUNS), str(RANKS), str(MADE_KERNELS)], check=True,
                                      capture_output=True, text=True).stdout)
    (scratch / "slurm").mkdir()
    nodes_of_slurm = slurm.Cluster(scratch / "slurm")
    try:
        with servers.Cluster(scratch / "servers") as nodes:
            nodes_of_slurm.start()
            job = slurm.Job(nodes_of_slurm, options.program, options.workload)
            job.out = chain.all / "runs"
            step("Slurm with 16 nodes, ZooKeeper and four servers are up")
            chain.gpuwhy("init", "--to", nodes.url(1), "--cluster", "fleet")
            run = captured_job(chain, job)
            with concurrent.futures.ThreadPoolExecutor() as pool:
                work = pool.submit(send_all, chain, job, nodes, run)
                kill_servers(chain, nodes, work)
                work.result()
            step("killed with SIGKILL: " + ", ".join(f"{number} {what}" for what, number in chain.killed.items()))
            assert all(chain.killed.values()), chain.killed
            seal(chain, nodes)
            questions, rows = check_equal(chain, nodes, truth)
            step(f"{questions} questions to the folder and to the cluster, {rows} sums of DuckDB and of SQL: equal")
    finally:
        nodes_of_slurm.stop()


def main():
    options = testing.arguments("program", "workload", "make-history", "make-trace", seed=random.randrange(1 << 30))
    missing = [tool for tool in ("slurmctld", "slurmd", "srun", "nsys") if not shutil.which(tool)]
    if missing or servers.missing() or os.geteuid() != 0:
        testing.skip("needs " + (", ".join(missing) or servers.missing() or "root") + " (tools/install-deps.sh fleet nsight)")
    tools_python()
    print(f"seed {options.seed}", flush=True)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="gpuwhy-chain-"))
    try:
        run_chain(options, scratch)
    except BaseException:
        errors = sorted((scratch / "servers").glob("n?/error.log"))
        for log in (scratch / "watch.log", *sorted((scratch / "servers").glob("n?.out")), *errors):
            print(f"--- {log}: {log.read_text(errors='replace')[-1500:] if log.exists() else 'none'}")
        # ClickHouse 18.16 may crash when it connects to ZooKeeper.
        if any("Received signal Segmentation fault" in log.read_text(errors="replace") for log in errors):
            print("not exercised: real.job_chain: all of it: ClickHouse crashed")
            return 77
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0


if __name__ == "__main__":
    guarded(main)

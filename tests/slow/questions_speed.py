#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Questions to a history of 100 million rows of kernels, on one ClickHouse server of this machine: each within a second, warm.

The server makes the rows itself (100 runs of 1,000 ranks with 500 kernels in two stages), in the tables of `gpuwhy fleet init`; gpuwhy
seals them. Beside each question: the time of one statement that an expert would type for it. Then `top` with one run that is not sealed.
About 3 GB of disk and some minutes of two cores; --rows N for less.

   questions_speed.py --program gpuwhy [--rows 100000000] [--chdb]"""
import hashlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fleet"))
import chdb_bridge  # noqa: E402
import cluster  # noqa: E402

MOST_S = 1.0
RANKS, KERNELS, STAGES = 1000, 500, ("prefill", "decode")
ROWS_PER_RUN = RANKS * KERNELS * len(STAGES)
SLOW_RANK, SLOW_KERNEL = 548, 42
FIRST_DAY = 20454  # 2026-01-01
QUESTIONS = {
    "stragglers": ["stragglers"],
    "regressions": ["regressions", "--base", "v1", "--candidate", "v2"],
    "top": ["top"],
    "trend": ["trend"],
    "layers": ["layers"],
    "status": ["status"],
}


def key_of(text):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def array(numbers):
    return "[" + ",".join(f"toUInt64({number})" for number in numbers) + "]"


class Server:
    """Debian's ClickHouse, or a recent one as a library."""

    def __init__(self, folder, uses_chdb):
        self.nodes = self.bridge = None
        if uses_chdb:
            (folder / "chdb").mkdir()
            self.bridge = subprocess.Popen([sys.executable, chdb_bridge.__file__, folder / "chdb"], stdout=subprocess.PIPE, text=True,
                                           preexec_fn=cluster.die_with_parent)
            self.url = self.bridge.stdout.readline().strip()
        else:
            self.nodes = cluster.Cluster(folder / "nodes")
            self.nodes.start(1)
            self.nodes.wait_up(1)
            self.url = self.nodes.url(1)

    def execute(self, sql):
        try:
            return urllib.request.urlopen(urllib.request.Request(self.url + "/", data=sql.encode(), method="POST"), timeout=1200).read().decode()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{sql[:500]}: {error.read().decode()[:500]}") from error

    def stop(self):
        if self.nodes:
            self.nodes.stop()
        if self.bridge:
            self.bridge.kill()
            self.bridge.wait()


def fill(server, num_runs):
    """Rows as the real ones are: a rank's noise, sums that do not repeat, histograms of three bins."""
    kernels = [f"void gemm_{number}<float, {7 * number}>(Params)" for number in range(KERNELS)]
    names = [*kernels, *STAGES, "gemm", "elementwise", "forward", "layer", "qkv", "attention", "down"]
    server.execute("INSERT INTO gpuwhy.names (name_key, name) VALUES " + ",".join(f"({key_of(name)}, '{name}')" for name in names))
    kernel_keys, stage_keys = array(map(key_of, kernels)), array(map(key_of, STAGES))
    part_keys = array(map(key_of, ("qkv", "attention", "down")))
    for run in range(num_runs):
        run_key, day = key_of(f"run-{run:03}"), FIRST_DAY + run
        place = f"toUInt64({run_key}) AS run_key, toUInt32(rank) AS rank_, sipHash64({run}, rank) AS content, toDate({day}) AS day"
        grown = f"if(kernel = {SLOW_KERNEL}, 1.3, 1)" if run >= num_runs // 2 else "1"
        server.execute(f"""INSERT INTO gpuwhy.kernels (run_key, rank, content, day, stage_key, kernel_key, family_key, calls, total_ns, min_ns,
            max_ns, hist_steps, hist_counts)
          SELECT {place}, {stage_keys}[stage + 1], {kernel_keys}[kernel + 1],
            toUInt64(if(kernel % 2 = 0, {key_of("gemm")}, {key_of("elementwise")})), calls, toUInt64(calls * mean_ns), toUInt64(mean_ns * 0.98),
            toUInt64(mean_ns * 1.02), [toUInt16(step), toUInt16(step + 1), toUInt16(step + 2)],
            [toUInt64(calls - 2), toUInt64(1), toUInt64(1)]
          FROM (SELECT rank, stage, kernel, noise, toUInt64(20 + noise % 17) AS calls,
              (3000 + 500000 / (kernel + 3) + 20000 * stage) * {grown} * (0.99 + (noise % 1000) / 50000) AS mean_ns,
              toUInt16(8 * log2(mean_ns)) AS step
            FROM (SELECT intDiv(number, {KERNELS * 2}) AS rank, intDiv(number, {KERNELS}) % 2 AS stage, number % {KERNELS} AS kernel,
                sipHash64({run}, number) AS noise FROM numbers({ROWS_PER_RUN})))""")
        slow = f"if(rank = {SLOW_RANK}, 1.15, 1)" if run == num_runs - 1 else "1"
        server.execute(f"""INSERT INTO gpuwhy.stages (run_key, rank, content, day, stage_key, instances, total_ns, min_ns, max_ns, tokens,
            kernel_ns, window_ns, buckets_ns, model_flops, peak_flops, model_bytes, peak_bytes)
          SELECT {place}, {stage_keys}[stage + 1], 10, 2000000000, 200000000, 200000000, 5120, compute_ns, 2000000000,
            [compute_ns, toUInt64(2000000000 - compute_ns)], 659000000000000000, 1978000000000000000, 0, 0
          FROM (SELECT rank, stage, toUInt64(1e9 * {slow} + sipHash64({run}, rank, stage) % 10000000) AS compute_ns
            FROM (SELECT intDiv(number, 2) AS rank, number % 2 AS stage FROM numbers({2 * RANKS})))""")
        server.execute(f"""INSERT INTO gpuwhy.parts (run_key, rank, content, day, pass_key, block_key, part_key, passes, launches, total_ns)
          SELECT {place}, toUInt64({key_of("forward")}), toUInt64({key_of("layer")}), {part_keys}[part + 1], 10, 320,
            1000000 + sipHash64({run}, rank, part) % 1000000
          FROM (SELECT intDiv(number, 3) AS rank, number % 3 AS part FROM numbers({3 * RANKS}))""")
        server.execute(f"""INSERT INTO gpuwhy.ranks (run_key, rank, attempt, content, day, ver, run_id, num_ranks, node, gpu, model, engine,
            engine_version, driver_version, gpuwhy_version, started_unix_s, kernel_rows, stage_rows, labels, part_rows)
          SELECT toUInt64({run_key}), toUInt32(number), 0, sipHash64({run}, number), toDate({day}), 1, 'run-{run:03}', {RANKS},
            concat('node-', toString(intDiv(number, 8))), 'NVIDIA H100 80GB HBM3', 'llama_3_1_8b', 'generated',
            'v{1 if run < num_runs // 2 else 2}', '', '', {day * 86400}, {KERNELS * 2}, 2, '', 3 FROM numbers({RANKS})""")


class Asker:
    def __init__(self, program, url):
        self.program, self.url = program, url

    def run(self, *words):
        result = subprocess.run([self.program, "fleet", *words, "--to", self.url], capture_output=True, text=True, timeout=3000,
                                env={**os.environ, "NO_PROXY": "127.0.0.1"})
        assert result.returncode == 0, (words, result.returncode, result.stdout, result.stderr)
        return result.stdout

    def ask(self, *words):
        return json.loads(self.run(*words, "--json"))

    def timed(self, name, rounds=5):
        """Best and median seconds of the whole command, processor seconds of the client, and the answer."""
        times, answer = [], None
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        for _ in range(rounds):
            started = time.monotonic()
            answer = self.ask(*QUESTIONS[name])
            times.append(time.monotonic() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / rounds
        return min(times), sorted(times)[rounds // 2], cpu, answer


# What an expert would type, one statement for each question, without names and without any check.
BARE = {
    "stragglers": "SELECT stage_key, rank, buckets_ns[1] FROM gpuwhy.stages WHERE run_key = {last} ORDER BY buckets_ns[1] DESC LIMIT 20",
    "regressions": "SELECT stage_key, kernel_key, sumIf(total_ns, day < toDate({middle})) / sumIf(calls, day < toDate({middle})) AS before, "
                   "sumIf(total_ns, day >= toDate({middle})) / sumIf(calls, day >= toDate({middle})) AS after FROM gpuwhy.{table} "
                   "GROUP BY stage_key, kernel_key ORDER BY after / before DESC LIMIT 20",
    "top": "SELECT kernel_key, sum(total_ns) AS s, sum(calls), max(max_ns), sumMap(hist_steps, hist_counts) FROM gpuwhy.{table} GROUP BY kernel_key "
           "ORDER BY s DESC LIMIT 20",
    "trend": "SELECT day, stage_key, sum(total_ns), sum(tokens), sum(toFloat64(model_flops)) / sum(toFloat64(peak_flops)) FROM gpuwhy.stages "
             "GROUP BY day, stage_key",
    "layers": "SELECT part_key, sum(total_ns), sum(launches) FROM gpuwhy.parts GROUP BY part_key",
    "status": "SELECT run_id, count(), max(num_ranks) FROM gpuwhy.ranks FINAL GROUP BY run_id",
}


def bare_seconds(server, sql, rounds=5):
    times = []
    for _ in range(rounds):
        started = time.monotonic()
        server.execute(sql)
        times.append(time.monotonic() - started)
    return min(times)


def check_answers(answers, server, num_runs):
    rows, total = server.execute("SELECT count(), sum(total_ns) FROM gpuwhy.kernels").split()
    assert int(rows) == num_runs * ROWS_PER_RUN, rows
    assert answers["top"]["total_ns"] == int(total) and answers["top"]["runs"] == num_runs, answers["top"]["total_ns"]
    slow = answers["stragglers"]["stragglers"]
    assert {one["rank"] for one in slow} == {SLOW_RANK} and len(slow) == 2, slow
    slower = answers["regressions"]["kernels"]
    assert len(slower) == 2 and all(f"gemm_{SLOW_KERNEL}<" in one["kernel"] and 0.29 < one["slower_fraction"] < 0.31 for one in slower), slower
    assert all(not answer["notes"] for answer in answers.values()), {name: answer["notes"] for name, answer in answers.items()}


def main():
    options = testing.arguments("program", rows=100_000_000, chdb=False)  # chdb: a recent ClickHouse instead of Debian's
    if options.chdb and not chdb_bridge.find_library() or not options.chdb and cluster.missing():
        testing.skip("needs " + ("libchdb (tools/install-deps.sh chdb)" if options.chdb else f"{cluster.missing()} (tools/install-deps.sh fleet)"))
    num_runs = max(options.rows // ROWS_PER_RUN, 2)
    with testing.scratch(prefix="gpuwhy-questions-") as folder:
        server = Server(folder, options.chdb)
        try:
            asker = Asker(options.program, server.url)
            asker.run("init")
            started = time.monotonic()
            fill(server, num_runs)
            print(f"{num_runs * ROWS_PER_RUN} rows of kernels in {num_runs} runs: {time.monotonic() - started:.0f} s", flush=True)
            started = time.monotonic()
            words = asker.run("push", "--spool", str(folder / "spool"))
            print(f"{words.strip()}: {time.monotonic() - started:.1f} s", flush=True)
            assert f"{num_runs} runs sealed" in words, words
            size = server.execute("SELECT sum(bytes) FROM system.parts WHERE active AND table = 'kernels'").strip()
            print(f"on disk {int(size) / num_runs / ROWS_PER_RUN:.1f} B per row of kernels", flush=True)
            facts = {"last": key_of(f"run-{num_runs - 1:03}"), "middle": FIRST_DAY + num_runs // 2}
            answers, slowest = {}, 0
            for name in QUESTIONS:
                best, median, cpu, answers[name] = asker.timed(name)
                bare = bare_seconds(server, BARE[name].format(table="kernel_runs", **facts))
                rows = bare_seconds(server, BARE[name].format(table="kernels", **facts), 2) if "{table}" in BARE[name] else None
                print(f"{name}: best {best:.3f} s, median {median:.3f} s, client {cpu:.3f} CPU s; bare statement {bare:.3f} s ({best / bare:.1f} x)"
                      + (f"; the same over all rows {rows:.2f} s" if rows else ""), flush=True)
                slowest = max(slowest, best if name in ("stragglers", "regressions", "top") else 0)
            check_answers(answers, server, num_runs)
            # The last run as if nobody had sealed it: its million rows are read one by one.
            server.execute(f"ALTER TABLE gpuwhy.seals DELETE WHERE run_key = {facts['last']}")
            while server.execute(f"SELECT count() FROM gpuwhy.seals WHERE run_key = {facts['last']}").strip() != "0":
                time.sleep(0.1)
            best, median, _, answer = asker.timed("top")
            print(f"top with one run that is not sealed: best {best:.3f} s, median {median:.3f} s", flush=True)
            assert answer == answers["top"], answer
            slowest = max(slowest, best)
        finally:
            server.stop()
    # A busy machine must not fail the test; a scan of all rows must.
    assert slowest < MOST_S * max(1, os.getloadavg()[0] / os.cpu_count()), slowest
    return 0


if __name__ == "__main__":
    sys.exit(main())

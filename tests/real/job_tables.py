#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job of a real Slurm as a folder of summaries, on ClickHouse (libchdb), and as Parquet: the same questions have the same answers,
to the integer. DuckDB asks the Parquet files, and SQL of this test asks ClickHouse.

Besides the ranks of Slurm, which have no GPU, the same is asked of generated ones with kernels and layers."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "fleet"), str(TESTS / "python")]
import chdb_bridge  # noqa: E402
import cluster as servers  # noqa: E402
import slurm  # noqa: E402
from prefix import tools_python  # noqa: E402
from runs import guarded  # noqa: E402

RANKS = 16
QUESTIONS = (["status"], ["top", "--top", "all"], ["layers", "--top", "all"], ["stragglers", "--over", "1%", "--top", "all"], ["trend"])

# One statement for both: {0} is the table with its rows that count.
SUMS = {
    "stages": "SELECT stage, count(*), sum(instances), sum(total_ns), max(max_ns), sum(tokens) FROM {} GROUP BY stage ORDER BY stage",
    "kernels": "SELECT kernel, count(*), sum(calls), sum(total_ns), max(max_ns) FROM {} GROUP BY kernel ORDER BY kernel",
    "parts": "SELECT part, count(*), sum(passes), sum(launches), sum(total_ns) FROM {} GROUP BY part ORDER BY part",
}
DUCK = """
import json, sys, duckdb
folder, sums = sys.argv[1], json.loads(sys.argv[2])
rows = {name: duckdb.sql(sql.format(f"read_parquet('{folder}/{name}/*.parquet')")).fetchall() for name, sql in sums.items()}
print(json.dumps({name: [[row[0], *map(int, row[1:])] for row in found] for name, found in rows.items()}))
"""


def gpuwhy(program, *words, **options):
    result = subprocess.run([program, "fleet", *map(str, words)], capture_output=True, text=True, timeout=300,
                            env={**os.environ, "NO_PROXY": "127.0.0.1"}, **options)
    assert result.returncode == 0, (words, result.returncode, result.stdout, result.stderr)
    return result.stdout


def answers(program, where):
    return {words[0]: json.loads(gpuwhy(program, *words, "--to", where, "--json")) for words in QUESTIONS}


def of_parquet(program, folder, scratch):
    gpuwhy(program, "export", folder, "--out", scratch)
    found = subprocess.run([tools_python(), "-c", DUCK, scratch, json.dumps(SUMS)], check=True, capture_output=True, text=True)
    return json.loads(found.stdout)


def of_clickhouse(program, url):
    """Names instead of their keys, and only rows of summaries that count. GLOBAL: of all servers of a cluster. count(): ClickHouse
    18.16 does not know count(*)."""
    found = {}
    for table, sql in SUMS.items():
        name = table[:-1]
        rows = (f"(SELECT * FROM (SELECT *, {name}_key AS name_key FROM gpuwhy.{table} FINAL WHERE content GLOBAL IN "
                f"(SELECT content FROM gpuwhy.ranks FINAL)) AS t GLOBAL ANY LEFT JOIN (SELECT name_key, name AS {name} FROM gpuwhy.names) AS n "
                f"USING (name_key)) AS of_names")
        data = json.loads(gpuwhy(program, "sql", sql.format(rows).replace("count(*)", "count()"), "--to", url, "--json"))["data"]
        found[table] = [[list(row.values())[0], *(int(value) for value in list(row.values())[1:])] for row in data]
    return found


def check(program, folder, scratch, what):
    """The folder, a new server, and Parquet."""
    scratch.mkdir()
    data = scratch / "chdb"
    data.mkdir()
    bridge = subprocess.Popen([sys.executable, chdb_bridge.__file__, data], stdout=subprocess.PIPE, text=True,
                              preexec_fn=servers.die_with_parent)
    try:
        url = bridge.stdout.readline().strip()
        gpuwhy(program, "init", "--to", url)
        print("  " + gpuwhy(program, "push", folder, "--to", url, "--spool", scratch / "spool").strip())
        of_folder, of_server = answers(program, folder), answers(program, url)
        assert of_folder == of_server, [(name, of_folder[name], of_server[name]) for name in of_folder if of_folder[name] != of_server[name]]
        parquet, clickhouse = of_parquet(program, folder, scratch / "parquet"), of_clickhouse(program, url)
    finally:
        bridge.kill()
        bridge.wait()
    assert parquet == clickhouse, (parquet, clickhouse)
    top = sorted([kernel["kernel"], kernel["calls"], kernel["total_ns"]] for kernel in of_folder["top"]["kernels"])
    assert top == [[kernel, calls, total] for kernel, _, calls, total, _ in parquet["kernels"]], (top, parquet["kernels"])
    layers = sorted([part["part"], part["launches"], part["total_ns"]] for part in of_folder["layers"]["parts"])
    assert layers == [[part, launches, total] for part, _, _, launches, total in parquet["parts"]], (layers, parquet["parts"])
    assert parquet["stages"], parquet
    print(f"{what}: folder, ClickHouse and Parquet agree on {sum(map(len, parquet.values()))} rows of sums")
    return of_folder


def slurm_job(options, scratch):
    """Real ranks, as `gpuwhy run` left them."""
    nodes = slurm.Cluster(scratch)
    try:
        nodes.start()
        job = slurm.Job(nodes, options.program, options.workload)
        name = slurm.captured(job, "tables", "srun", "-N4", f"-n{RANKS}", f"--ntasks-per-node={RANKS // 4}", *job.command("ranks.capture=every:8"))
    finally:
        nodes.stop()
    return job.out / name


def main():
    options = testing.arguments("program", "workload", "make-history")
    options.program, options.workload = (str(pathlib.Path(path).resolve()) for path in (options.program, options.workload))
    missing = [tool for tool in ("slurmctld", "slurmd", "srun", "nsys") if not shutil.which(tool)]
    if missing or os.geteuid() != 0 or not chdb_bridge.find_library():
        testing.skip("needs " + (", ".join(missing) or "root and libchdb") + " (tools/install-deps.sh fleet nsight chdb)")
    tools_python()
    with testing.scratch(prefix="gpuwhy-tables-") as scratch:
        made = scratch / "made"
        subprocess.run([options.make_history, made, "3", "8", "20"], check=True, stdout=subprocess.DEVNULL)
        check(options.program, made, scratch / "a", "generated ranks")
        (scratch / "slurm").mkdir()
        found = check(options.program, slurm_job(options, scratch / "slurm"), scratch / "b", f"{RANKS} ranks of Slurm")
        assert [(run["ranks"], run["num_ranks"]) for run in found["status"]["runs"]] == [(RANKS, RANKS)], found["status"]
    return 0


if __name__ == "__main__":
    guarded(main)

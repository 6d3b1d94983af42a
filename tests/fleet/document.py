#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/fleet.md from top to bottom: every command and statement of its blocks, on a recent ClickHouse (libchdb) as the single server and on
Debian's, two shards with two replicas and ZooKeeper, as the cluster. Then a replica dies for good and is replaced as the page says.

Only addresses, folders and credentials are replaced, and the age limit where the old server has none. A line that this test does not know
how to run fails it, so the page cannot grow past it. Skipped without the servers (tools/install-deps.sh fleet chdb python)."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "fleet"), str(TESTS / "python")]
import chdb_bridge  # noqa: E402
import cluster  # noqa: E402
from prefix import tools_python  # noqa: E402

TABLES = ("names", "kernels", "stages", "parts", "ranks", "kernel_runs", "seals", "schema_versions")


def blocks(document):
    """Commands with their continuation lines joined, and statements as they are."""
    for block in re.findall(r"^```text\n(.*?)^```$", document, re.M | re.S):
        if block.startswith("SELECT "):
            yield "statement", block
            continue
        for line in block.replace("\\\n", " ").splitlines():
            yield line.split()[0], line.split("  #")[0]


class Page:
    def __init__(self, options, folder, nodes, url):
        self.program, self.folder, self.nodes, self.url = options.program, folder, nodes, url
        self.environment = {**os.environ, "NO_PROXY": "127.0.0.1", "HOME": str(folder)}
        # The longer names first: "history" is the start of "history-1".
        self.replaced = {"https://history-1:8443": nodes.url(1), "https://history-2:8443": nodes.url(3), "https://history:8443": url,
                         "/shared/": f"{folder}/shared/", "/var/lib/node_exporter/": f"{folder}/", "=me ": "=guarded ", "=...": f"={cluster.SECRET}"}
        self.ran = []

    def run(self, *words, code=0):
        result = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, cwd=self.folder, env=self.environment)
        assert result.returncode == code, (words, result.returncode, result.stdout, result.stderr)
        return result

    def words(self, line):
        for old, new in self.replaced.items():
            line = line.replace(old, new)
        return shlex.split(line)

    def export(self, line):
        for pair in self.words(line)[1:]:
            self.environment.update([pair.split("=", 1)])

    def duckdb(self, line):
        sql = self.words(line)[2]
        return json.loads(self.run(tools_python(), "-c", "import duckdb, json, sys; print(json.dumps(duckdb.sql(sys.argv[1]).fetchall()))", sql).stdout)

    def gpuwhy(self, line):
        words = self.words(line)[1:]
        if words[0] == "watch":
            words.append("--once")
        if "--cluster" in words and "--keep-days" in words:  # Debian's ClickHouse cannot drop rows by age, and says so
            refused = self.run(self.program, *words, code=2)
            assert "cannot drop rows by age" in refused.stderr, refused.stderr
            at = words.index("--keep-days")
            words[at:at + 2] = []
        self.ran.append(" ".join(words[:2]))
        return self.run(self.program, *words).stdout


def prepare(options, folder):
    """What the page takes for granted: a run's folder, a folder of summaries, bundles, and traces that something dropped."""
    made = {}

    def make(name, *words):
        made[name] = json.loads(subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout)

    make("ranks", options.make_ranks, folder / "gpuwhy-runs/RUN_ID", 16, "--kernels", 20, "--steps", 10, "--run", "RUN_ID")
    make("run", options.make_ranks, folder / "shared/summaries/late", 16, "--kernels", 20, "--steps", 10, "--run", "20261115-101500")
    make("history", options.make_history, folder / "shared/summaries/history", 4, 6, 20)
    make("bundles", options.make_history, folder / "bundles", 4, 6, 20)
    traces = folder / "shared/traces/job-7"
    traces.mkdir(parents=True)
    for rank in range(3):
        path = traces / f"rank-{rank}.sqlite"
        make("trace", options.make_trace, path, 2000, "--processes", 1)
        os.utime(path, (time.time() - 3600,) * 2)
    return made


def check_costs(document):
    """The table of costs follows from the measured figures in the sentence before it."""
    section = document[document.index("### What it costs"):document.index("**Replacing a dead replica")]
    plain = " ".join(section.split())
    client_ms, server_ms, wire_kb = (float(re.search(pattern, plain)[1]) for pattern in (
        r"([\d.]+) CPU ms to push", r"([\d.]+) CPU ms on the server", r"([\d.]+) KB on the wire"))
    small_kb, large_kb = (float(value) for value in re.search(r"([\d.]+) KB \(26.5, codecs\) to ([\d.]+) KB", plain).groups())
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if re.match(r"\| [\d,]+ \|", line)]
    assert len(lines) == 4 and {line[0] for line in lines} == {"100", "2,000", "100,000"}, lines

    def numbers(cell):
        return [float(number) for number in re.findall(r"[\d.]+(?:e\d)?", cell.replace(",", ""))]

    for gpus, policy, *cells in lines:
        samples = numbers(gpus)[0] * (24 if "hourly" in policy else 1) / (8 if "eighth" in policy else 1)
        expected = [samples, samples * 1000, samples * client_ms / 1e3, samples * server_ms / 1e3, samples * wire_kb / 1e6,
                    samples * small_kb / 1e6, samples * large_kb / 1e6, samples * small_kb * 90 / 1e6, samples * large_kb * 90 / 1e6]
        found = [number for cell in cells for number in numbers(cell)]
        assert len(found) == len(expected), (gpus, found, expected)
        for value, wanted in zip(found, expected):
            assert abs(value - wanted) <= max(0.05 * wanted, 0.2 if wanted > 1 else 0.005), (gpus, policy, value, wanted)


def check_answers(page, made, answers):
    """That the commands ran is not enough: what was planted is in the answers."""
    text = "\n".join(answers["gpuwhy"])
    assert (page.folder / "report.html").is_file() and (page.folder / "run.gpuwhy").is_file()
    assert re.search(rf"^\s*{made['run']['slow_rank']}\s.*prefill", text, re.M), text
    assert made["history"]["slow_kernel"][:20] in text, text
    assert "job-7" in answers["status"], answers["status"]
    assert "sent 24 ranks" in text and "4 runs sealed" in text, text
    kernels = answers["duckdb"][0]
    assert len(kernels) == 10 and all(seconds > 0 for _, seconds in kernels), kernels
    prom = (page.folder / "gpuwhy.prom").read_text()
    assert 'gpuwhy_run_ranks{run="job-7"} 3' in prom, prom
    for where, (tops, shares) in answers["statements"].items():
        assert len(tops) == 10 and {"prefill", "decode"} <= {row["stage"] for row in shares}, (where, tops, shares)
    of_cluster = answers["statements"]["cluster"][0]
    top = json.loads(page.run(page.program, "fleet", "top", "--to", page.nodes.url(1), "--top", "10", "--json").stdout)["kernels"]
    assert [(row["name"], round(float(row["seconds"]) * 1e9)) for row in of_cluster] == [(k["kernel"], k["total_ns"]) for k in top], of_cluster


def replace_replica(page, made):
    """Node 4 loses its disk. Its successor has the same name and nothing else."""
    nodes = page.nodes
    nodes.kill("n4")
    shutil.rmtree(nodes.folder / "n4/data")
    (nodes.folder / "n4/data").mkdir()
    nodes.start(4)
    nodes.wait_up(4)
    refused = page.run(page.program, "fleet", "init", "--to", nodes.url(1), "--cluster", "fleet", code=5)
    assert "Code: 253" in refused.stderr and "ZooKeeper" in refused.stderr, refused.stderr
    shard, replica = cluster.NODES[4]
    paths = [f"/clickhouse/tables/{shard}/gpuwhy/{table}/replicas/{replica}" for table in TABLES]
    client = ["java", "-cp", f"/etc/zookeeper/conf:{cluster.ZOOKEEPER_JAR}", "-Dzookeeper.root.logger=ERROR,CONSOLE",
              "org.apache.zookeeper.ZooKeeperMain", "-server", f"127.0.0.1:{nodes.zookeeper_port}"]
    commands = "".join(f"deleteall {path}\n" for path in paths) + "quit\n"
    subprocess.run(client, input=commands, text=True, check=True, capture_output=True, timeout=120)
    page.run(page.program, "fleet", "init", "--to", nodes.url(1), "--cluster", "fleet")
    for table in TABLES:
        nodes.synced(4, f"gpuwhy.{table}_local")
    sums = [0, 0]
    for n in (1, 4):  # one replica of each shard
        for i, value in enumerate(nodes.query(n, "SELECT sum(calls), sum(total_ns) FROM gpuwhy.kernels_local FINAL").split()):
            sums[i] += int(value)
    assert sums == [made["bundles"]["calls"], int(made["bundles"]["total_ns"])], (sums, made["bundles"])
    print("a dead replica was replaced, and its successor has all rows")


def main():
    options = testing.arguments("program", "make-history", "make-ranks", "make-trace", "source")
    if cluster.missing() or not chdb_bridge.find_library():
        testing.skip(f"needs {cluster.missing() or 'libchdb'} (tools/install-deps.sh fleet chdb)")
    tools_python()
    document = (pathlib.Path(options.source) / "docs/fleet.md").read_text()
    check_costs(document)
    with testing.scratch(prefix="gpuwhy-document-") as folder:
        made = prepare(options, folder)
        (folder / "chdb").mkdir()
        bridge = subprocess.Popen([sys.executable, chdb_bridge.__file__, folder / "chdb"], stdout=subprocess.PIPE, text=True,
                                  preexec_fn=cluster.die_with_parent)
        try:
            with cluster.Cluster(folder / "nodes") as nodes:
                page = Page(options, folder, nodes, bridge.stdout.readline().strip())
                answers = {"gpuwhy": [], "duckdb": [], "statements": {"server": [], "cluster": []}}
                # A drop folder comes before the server that it pushes to.
                lines = sorted(blocks(document), key=lambda item: item[1].startswith("gpuwhy watch") + 2 * (item[0] == "statement"))
                for kind, line in lines:
                    if kind == "statement":
                        for where, url in (("server", page.url), ("cluster", nodes.url(1))):
                            found = page.run(options.program, "fleet", "sql", line, "--to", url, "--json").stdout
                            answers["statements"][where].append(json.loads(found)["data"])
                    elif kind == "export":
                        page.export(line)
                    elif kind == "duckdb":
                        answers["duckdb"].append(page.duckdb(line))
                    elif kind == "gpuwhy":
                        answers["gpuwhy"].append(page.gpuwhy(line))
                        if line.startswith("gpuwhy fleet push"):
                            for n in cluster.NODES:
                                for table in TABLES:
                                    nodes.synced(n, f"gpuwhy.{table}_local")
                            # The statements below are asked of both servers.
                            page.run(options.program, "fleet", "push", "bundles", "--to", page.url)
                    else:
                        raise AssertionError(f"docs/fleet.md has a line that this test cannot run: {line}")
                answers["status"] = page.run(options.program, "fleet", "status", "--to", page.url).stdout
                check_answers(page, made, answers)
                print(f"docs/fleet.md: {len(page.ran)} commands ran: {', '.join(page.ran)}")
                replace_replica(page, made)
        finally:
            bridge.kill()
            bridge.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())

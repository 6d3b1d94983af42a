#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The history on a recent ClickHouse (libchdb): tables of the version before and of the version to come, another age limit, and every
statement that is written down for users: docs/fleet.md, the dashboard and the alerts of packaging/grafana.

Skipped without libchdb (tools/install-deps.sh chdb)."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

import chdb_bridge
import cluster


class History:
    def __init__(self, arguments, folder):
        self.program = arguments.program
        self.source = pathlib.Path(arguments.source)
        self.folder = pathlib.Path(folder)
        self.data = self.folder / "history"
        made = subprocess.run([arguments.make_history, self.data, "4", "6", "20"], check=True, capture_output=True, text=True)
        self.truth = json.loads(made.stdout)
        (self.folder / "chdb").mkdir()
        self.bridge = subprocess.Popen([sys.executable, chdb_bridge.__file__, self.folder / "chdb"], stdout=subprocess.PIPE, text=True,
                                       preexec_fn=cluster.die_with_parent)
        self.url = self.bridge.stdout.readline().strip()

    def gpuwhy(self, *words, code=0, to=None):
        result = subprocess.run([self.program, "fleet", *map(str, words), *(["--to", to or self.url] if words[0] != "export" else [])],
                                capture_output=True, text=True, timeout=120, env={**os.environ, "NO_PROXY": "127.0.0.1"})
        assert result.returncode == code, (words, result.returncode, result.stdout, result.stderr)
        return result

    def change(self, statement):
        """What an administrator does, past gpuwhy, which only reads."""
        import urllib.request
        urllib.request.urlopen(urllib.request.Request(self.url + "/", data=statement.encode(), method="POST"), timeout=60).read()

    def rows(self, sql):
        return json.loads(self.gpuwhy("sql", sql, "--json").stdout)["data"]

    def push(self, *words, spool="spool", code=0):
        return self.gpuwhy("push", *words, "--spool", self.folder / spool, "--wait", "1", code=code)


def check_migration(history):
    """Tables of version 1: a push waits and says what to do, init adds the columns and the table, nothing is lost."""
    history.gpuwhy("init")
    history.change("ALTER TABLE gpuwhy.ranks DROP COLUMN labels, DROP COLUMN part_rows")
    history.change("DROP TABLE gpuwhy.parts")
    history.change("DROP TABLE gpuwhy.schema_versions")
    runs = sorted(history.data.iterdir())
    waits = history.push(runs[0], code=5)
    assert "gpuwhy fleet init" in waits.stderr and "wait in" in waits.stderr, waits.stderr
    assert "ADD COLUMN labels" in history.gpuwhy("init", "--dry-run").stdout
    assert "version 3 of the tables, 2 changes" in history.gpuwhy("init").stdout
    assert "change" not in history.gpuwhy("init").stdout
    assert "sent 6 ranks" in history.push().stdout
    # A column that a newer gpuwhy added does not hurt this one.
    history.change("ALTER TABLE gpuwhy.kernels ADD COLUMN of_the_future UInt64 DEFAULT 7")
    assert "sent 18 ranks" in history.push(*runs[1:]).stdout
    history.change("INSERT INTO gpuwhy.schema_versions (version) VALUES (99)")
    refused = history.gpuwhy("init", code=5)
    assert "a newer gpuwhy made these tables" in refused.stderr, refused.stderr
    history.change("ALTER TABLE gpuwhy.schema_versions DELETE WHERE version = 99 SETTINGS mutations_sync = 1")
    parts = history.rows("SELECT toString(sum(total_ns)) AS total_ns FROM gpuwhy.parts FINAL")[0]
    assert int(parts["total_ns"]) == sum(history.truth["part_ns"].values()), parts
    counted = history.rows("SELECT count() AS rows, sum(calls) AS calls, toString(sum(total_ns)) AS total_ns FROM gpuwhy.kernels FINAL")[0]
    assert [int(counted[key]) for key in ("rows", "calls", "total_ns")] == \
        [history.truth["rows"], history.truth["calls"], int(history.truth["total_ns"])], counted


def check_statements(history):
    """Every statement for users runs, and says what gpuwhy says."""
    document = (history.source / "docs/fleet.md").read_text()
    statements = re.findall(r"```text\n(SELECT .*?)```", document, re.S)
    assert len(statements) == 2, statements
    top = json.loads(history.gpuwhy("top", "--json", "--top", "10").stdout)["kernels"]
    found = history.rows(statements[0])
    assert [(row["name"], round(float(row["seconds"]) * 1e9)) for row in found] == [(k["kernel"], k["total_ns"]) for k in top], found
    trend = json.loads(history.gpuwhy("trend", "--json").stdout)["stages"]
    mfu = {row["stage"]: float(row["mfu"]) for row in history.rows(statements[1])}
    for stage, value in mfu.items():
        # Every run has the same time, so the mean of the runs is the whole.
        expected = [row["mfu_fraction"] for row in trend if row["stage"] == stage]
        assert abs(value - sum(expected) / len(expected)) < 1e-6, (stage, value, expected)
    assert set(mfu) == {"prefill", "decode"}, mfu
    board = json.loads((history.source / "packaging/grafana/gpuwhy-fleet.json").read_text())
    answers = {panel["title"]: history.rows(panel["targets"][0]["rawSql"]) for panel in board["panels"]}
    assert all(answers.values()), {title: len(rows) for title, rows in answers.items()}
    slow = answers["Ranks that compute longer than the median of their run"]
    assert [(row["run_id"], int(row["rank"])) for row in slow] == [(history.truth["slow_run"], history.truth["slow_rank"])], slow
    kernels = answers["Kernels by time"]
    assert sum(int(row["launches"]) for row in kernels) == history.truth["calls"], kernels
    assert len(answers["Runs: ranks present of expected"]) == 4
    alerts = (history.source / "packaging/grafana/alerts.sql").read_text()
    queries = dict(re.findall(r"^-- (\w+): [^\n]*\n(SELECT .*?);", alerts, re.S | re.M))
    assert set(queries) == {"incomplete_runs", "slow_ranks", "low_mfu"}, queries.keys()
    assert history.rows(queries["incomplete_runs"]) == []
    assert [int(row["rank"]) for row in history.rows(queries["slow_ranks"])] == [history.truth["slow_rank"]]
    assert history.rows(queries["low_mfu"]) == []  # nothing is of the last day
    print(f"{len(statements)} statements of docs/fleet.md, {len(answers)} panels and {len(queries)} alerts answered")


def check_parquet(history):
    """The same folder as Parquet, read by ClickHouse itself."""
    tables = history.folder / "tables"
    history.gpuwhy("export", history.data, "--out", tables)
    found = history.rows(f"SELECT count() AS rows, sum(calls) AS calls, toString(sum(total_ns)) AS total_ns "
                         f"FROM file('{tables}/kernels/*.parquet', 'Parquet')")[0]
    assert [int(found[key]) for key in ("rows", "calls", "total_ns")] == \
        [history.truth["rows"], history.truth["calls"], int(history.truth["total_ns"])], found


def check_age_limit(history):
    """`init --keep-days` changes existing tables. The generator's runs are of January 2026: they must not vanish in silence."""
    kept = "SELECT create_table_query AS q FROM system.tables WHERE database = 'aged' AND name = 'kernels'"
    other = ["--database", "aged"]
    history.gpuwhy("init", "--keep-days", "30", *other)
    assert "toIntervalDay(30)" in history.rows(kept)[0]["q"]
    assert "2 changes" in history.gpuwhy("init", "--keep-days", "7", *other).stdout  # kernels and parts
    assert "toIntervalDay(7)" in history.rows(kept)[0]["q"]
    history.change("DROP TABLE aged.parts")
    history.gpuwhy("init", *other)
    assert "toIntervalDay(7)" in history.rows(kept)[0]["q"]
    assert "toIntervalDay(7)" in history.rows(kept.replace("'kernels'", "'parts'"))[0]["q"]  # new, and like the others
    refused = history.push(history.data, *other, spool="aged", code=7)
    assert refused.stderr.count("drops rows from before") == 10 and "14 files" in refused.stderr, refused.stderr
    assert "sent 0 ranks" in refused.stdout
    history.gpuwhy("init", "--keep-days", "36500", *other)
    assert "sent 24 ranks" in history.push(history.data, *other, spool="aged").stdout
    top = json.loads(history.gpuwhy("top", "--json", *other).stdout)
    assert top["total_ns"] == int(history.truth["total_ns"]) and top["notes"] == [], top["notes"]


def main():
    arguments = testing.arguments("program", "make-history", "source")
    if not chdb_bridge.find_library():
        testing.skip("no libchdb; tools/install-deps.sh chdb fetches it")
    with tempfile.TemporaryDirectory() as folder:
        history = History(arguments, folder)
        try:
            for check in (check_migration, check_statements, check_parquet, check_age_limit):
                check(history)
                print(f"{check.__name__}: ok", flush=True)
        finally:
            history.bridge.kill()
            history.bridge.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())

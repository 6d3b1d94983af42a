#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A history as Parquet, asked by DuckDB: the same integers as `gpuwhy fleet` on the folder of summaries.

DuckDB is in a virtual environment ($GPUWHY_PYTHON_PREFIX, default ~/.cache/gpuwhy/python; tools/install-deps.sh python)."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(TESTS / "python"))
from prefix import tools_python

TABLES = ("ranks", "stages", "kernels", "collectives", "groups", "parts")


def run(*words):
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, (words, result.returncode, result.stderr)
    return result


def question(program, folder, *words):
    return json.loads(run(program, "fleet", *words, "--to", folder, "--json").stdout)


def view(tables, name):
    return f"read_parquet('{tables / name}/*.parquet')"


def check_top(duck, program, folder, tables, truth):
    top = question(program, folder, "top", "--top", "all")
    rows = duck.sql(f"SELECT kernel, sum(calls)::BIGINT, sum(total_ns)::BIGINT, max(max_ns) FROM {view(tables, 'kernels')} GROUP BY 1").fetchall()
    expected = {(k["kernel"], k["calls"], k["total_ns"], k["max_ns"]) for k in top["kernels"]}
    assert set(rows) == expected and len(rows) == len(expected), (rows, expected)
    assert sum(row[1] for row in rows) == truth["calls"] and sum(row[2] for row in rows) == int(truth["total_ns"])
    # Histograms, step by step.
    pairs = duck.sql(f"SELECT split_part(p, ':', 1), sum(split_part(p, ':', 2)::BIGINT)::BIGINT FROM (SELECT unnest(string_split(histogram, ' ')) "
                     f"AS p FROM {view(tables, 'kernels')}) GROUP BY 1").fetchall()
    assert {key: count for key, count in pairs} == truth["histogram"], pairs


def check_stragglers(duck, program, folder, tables, truth):
    found = question(program, folder, "stragglers", "--run", truth["slow_run"], "--top", "all", "--over", "1%")
    rows = duck.sql(f"""
      SELECT s.rank, s.stage, s.compute_ns, m.median_ns FROM {view(tables, 'stages')} s
      JOIN (SELECT run_id, stage, median(compute_ns) AS median_ns FROM {view(tables, 'stages')} WHERE window_ns > 0 GROUP BY 1, 2) m
      USING (run_id, stage) WHERE s.run_id = '{truth["slow_run"]}' AND s.compute_ns > m.median_ns * 1.01""").fetchall()
    expected = {(one["rank"], one["stage"], one["compute_ns"], one["median_ns"]) for one in found["stragglers"]}
    assert set(rows) == expected and expected, (rows, expected)
    assert truth["slow_rank"] in {rank for rank, *_ in rows}


def check_ranks(duck, program, folder, tables):
    status = question(program, folder, "status")
    rows = duck.sql(f"SELECT run_id, count(*), max(num_ranks), min(engine_version), min(labels) FROM {view(tables, 'ranks')} GROUP BY 1").fetchall()
    assert {tuple(row[:4]) for row in rows} == {(r["run_id"], r["ranks"], r["num_ranks"], r["engine_version"]) for r in status["runs"]}
    assert all(row[4] is None for row in rows)  # absent, not empty


def check_layers(duck, program, folder, tables, truth):
    found = question(program, folder, "layers", "--top", "all")
    rows = duck.sql(f"SELECT pass, block, part, count(*), sum(launches)::BIGINT, sum(total_ns)::BIGINT FROM {view(tables, 'parts')} GROUP BY 1, 2, 3").fetchall()
    assert set(rows) == {(p["pass"], p["block"], p["part"], p["ranks"], p["launches"], p["total_ns"]) for p in found["parts"]}, (rows, found)
    assert {row[2]: row[5] for row in rows} == truth["part_ns"], (rows, truth)


def check_columns(duck, tables, source):
    """docs/formats.md has every column of every table, and no other."""
    documented = re.findall(r"^\| `history/(\w+)` \| `(\w+)` \|", (source / "docs/formats.md").read_text(), re.M)
    found = [(name, column) for name in TABLES for column in duck.sql(f"SELECT * FROM {view(tables, name)} LIMIT 0").columns]
    assert documented == found, set(documented) ^ set(found)
    for name in TABLES:
        file = next((tables / name).glob("*.parquet"))
        pairs = dict(duck.sql(f"SELECT key::VARCHAR, value::VARCHAR FROM parquet_kv_metadata('{file}')").fetchall())
        assert pairs["gpuwhy.schema"] == f"gpuwhy.history.{name}" and pairs["gpuwhy.schema_version"] == "1", pairs


def check_again(program, folder, tables):
    """A second export changes nothing; a later attempt replaces its run; ranks that are gone are gone."""
    def state():
        return {path.relative_to(tables): path.read_bytes() for path in sorted(tables.rglob("*.parquet"))}
    before = state()
    run(program, "fleet", "export", folder, "--out", tables)
    assert state() == before
    part = folder.parent / "part"
    shutil.copytree(folder / "run-001", part / "run-001")
    sorted((part / "run-001").iterdir())[0].unlink()
    run(program, "fleet", "export", part, "--out", tables)
    after = state()
    assert after.keys() == before.keys() and sum(after[key] != before[key] for key in after) == 4  # ranks, stages, kernels and parts of one run


def inside(options):
    import duckdb
    with tempfile.TemporaryDirectory() as scratch:
        folder, tables = pathlib.Path(scratch) / "history", pathlib.Path(scratch) / "tables"
        truth = json.loads(run(options.make_history, folder, "4", "6", "20").stdout)
        run(options.program, "fleet", "export", folder, "--out", tables)
        duck = duckdb.connect()
        check_top(duck, options.program, folder, tables, truth)
        check_stragglers(duck, options.program, folder, tables, truth)
        check_layers(duck, options.program, folder, tables, truth)
        check_ranks(duck, options.program, folder, tables)
        check_columns(duck, tables, pathlib.Path(options.source))
        check_again(options.program, folder, tables)
        # Collectives of a merged job, and names that are not text.
        ranks, job = pathlib.Path(scratch) / "ranks", pathlib.Path(scratch) / "job"
        planted = json.loads(run(options.make_ranks, ranks, "16", "--kernels", "10", "--steps", "5").stdout)
        run(options.program, "fleet", "export", ranks, "--out", job)
        total = duck.sql(f"SELECT sum(duration_ns)::BIGINT FROM {view(job, 'collectives')}").fetchall()[0][0]
        assert total == planted["collective_ns"], (total, planted)
        hostile = pathlib.Path(scratch) / "hostile"
        run(options.make_history, hostile, "1", "2", "8", "hostile")
        run(options.program, "fleet", "export", hostile, "--out", pathlib.Path(scratch) / "hostile-tables")
        names = {row[0] for row in duck.sql(f"SELECT kernel FROM {view(pathlib.Path(scratch) / 'hostile-tables', 'kernels')}").fetchall()}
        assert "'; DROP TABLE gpuwhy.kernels; --" in names and "x" * 100_000 in names
    print("DuckDB and gpuwhy fleet agree")
    return 0


def main():
    options = testing.arguments("program", "make-history", "make-ranks", "source", inside=False)
    if options.inside:
        return inside(options)
    return subprocess.run([tools_python(), *sys.argv, "--inside"], env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}).returncode


if __name__ == "__main__":
    sys.exit(main())

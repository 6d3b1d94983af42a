#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parquet tables of recordings, read by pyarrow, DuckDB and polars and compared with plain SQL on the recordings.

Each reader must give the same values. Launches must be the rows of the recording with their API calls, the kernel table must be
the sums over launches, layers must be those of `gpuwhy table launches`, and docs/formats.md must list the columns.

The readers are in a virtual environment ($GPUWHY_PYTHON_PREFIX, default ~/.cache/gpuwhy/python; tools/install-deps.sh python).
"""
import collections
import csv
import io
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
import testing
sys.path.append(str(TESTS / "python"))
from prefix import tools_python
TABLES = ("kernels", "steps", "layers", "launches")
NOT_RECORDED = 0xFFFFFFFF


def expect(condition, what):
    if not condition:
        sys.exit(what)


def run(*words):
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    expect(result.returncode == 0, f"{words}: exit {result.returncode}: {result.stderr}")
    return result.stdout


def columns(rows, names):
    return [tuple(row[name] for name in names) for row in rows]


def read_with_each(file):
    """The rows as pyarrow reads them; the other readers must agree."""
    import duckdb
    import polars
    import pyarrow.parquet
    whole = pyarrow.parquet.read_table(file, page_checksum_verification=True)
    whole.validate(full=True)
    rows = whole.to_pylist()
    relation = duckdb.connect().read_parquet(str(file))
    found = [dict(zip(relation.columns, row)) for row in relation.fetchall()]
    expect(found == rows, f"{file}: DuckDB reads other values than pyarrow")
    expect(polars.read_parquet(file).to_dicts() == rows, f"{file}: polars reads other values than pyarrow")
    check_statistics(pyarrow.parquet.ParquetFile(file), whole, file)
    return rows, {key.decode(): value.decode() for key, value in (whole.schema.metadata or {}).items()}, whole.schema


def check_statistics(parquet, table, file):
    first = 0
    for g in range(parquet.metadata.num_row_groups):
        group = parquet.metadata.row_group(g)
        part = table.slice(first, group.num_rows)
        first += group.num_rows
        for c in range(group.num_columns):
            told = group.column(c).statistics
            values = [value for value in part.column(c).to_pylist() if value is not None]
            expect(told.null_count == group.num_rows - len(values), f"{file}: nulls of {part.column_names[c]}")
            if told.has_min_max:
                least, most = (min(values), max(values)) if values else (None, None)
                if values and isinstance(values[0], str):  # in the order of bytes
                    least, most = (f(values, key=lambda text: text.encode()) for f in (min, max))
                expect((told.min, told.max) == (least, most), f"{file}: statistics of {part.column_names[c]}")
    expect(first == table.num_rows, f"{file}: row groups lack rows")


def select(database, table, *wanted):
    """Rows of a table; a column that it lacks is None."""
    there = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
    words = [f'"{name}"' if name in there else "NULL" for name in wanted]
    return database.execute(f"SELECT {', '.join(words)} FROM {table}")


def texts_of(database):
    return {key: value.decode("utf-8", "replace") for key, value in
            database.execute("SELECT id, CAST(value AS BLOB) FROM StringIds")}


def check_launches(recording, rows):
    database = sqlite3.connect(f"file:{recording}?immutable=1", uri=True)
    tables = {name for name, in database.execute("SELECT name FROM sqlite_master")}
    texts = texts_of(database) if "StringIds" in tables else {}
    expected = collections.Counter()
    if "CUPTI_ACTIVITY_KIND_KERNEL" in tables:
        shape = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
        for start, end, name, stream, correlation, *shape in select(
                database, "CUPTI_ACTIVITY_KIND_KERNEL", "start", "end", "demangledName", "streamId", "correlationId", *shape):
            expected[("kernel", start, max(start, end) - start, texts.get(name) or None, stream or 0, correlation or None, *shape)] += 1
    if "CUPTI_ACTIVITY_KIND_GRAPH_TRACE" in tables:
        for start, end, stream, correlation in select(
                database, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "start", "end", "streamId", "correlationId"):
            expected[("graph", start, max(start, end) - start, None, stream or 0, correlation or None) + (None,) * 6] += 1
    names = ("kind", "start_ns", "duration_ns", "kernel_name", "stream", "correlation", "grid_x", "grid_y", "grid_z", "block_x",
             "block_y", "block_z")
    found = collections.Counter((*row[:5], row[5] or None, *row[6:]) for row in columns(rows, names))
    missing, more = list((expected - found).items())[:3], list((found - expected).items())[:3]
    expect(not missing and not more, f"{recording}: the recording also has {missing}, the table also {more}")
    expect([row["start_ns"] for row in rows] == sorted(row["start_ns"] for row in rows), f"{recording}: not in order of start")
    # The call of a launch is one of those with its number in the recording.
    calls = collections.defaultdict(set)
    for table in tables & {"CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"}:
        for start, end, correlation, name in database.execute(f"SELECT start, end, correlationId, nameId FROM {table}"):
            calls[correlation].add((start, end - start, re.sub(r"_v\d+.*$", "", texts.get(name, ""))))
    with_call = [row for row in rows if row["call_start_ns"] is not None]
    for row in with_call:
        call = (row["call_start_ns"], row["call_duration_ns"], row["call"] or "")
        expect(call in calls[row["correlation"]], f"{recording}: {row} was not launched by a call of the recording")
    return len(with_call)


def check_sums(recording, kernels, launches):
    sums = collections.defaultdict(list)
    for row in launches:
        if row["kind"] == "kernel":
            sums[(row["kernel_name"] or "", row["device"], row["stage"] or "outside")].append(row["duration_ns"])
    # The table marks graphs that were recorded as a whole with a name of their own.
    own = [row for row in kernels if (row["kernel_name"], row["device"], row["stage"]) in sums]
    expect(len(own) == len(sums), f"{recording}: {len(sums)} kernels by launch, {len(own)} in the table")
    for row in own:
        times = sums[(row["kernel_name"], row["device"], row["stage"])]
        expect((row["calls"], row["total_ns"], row["min_ns"], row["max_ns"]) == (len(times), sum(times), min(times), max(times)),
               f"{recording}: {row} is not the sum of its launches")


def check_layers(program, recording, layers, launches):
    """Layers by the CSV of `gpuwhy table launches`, which has one line per kernel."""
    text = run(program, "table", "launches", recording, "--format", "csv")
    lines = [line for line in csv.DictReader(io.StringIO(text)) if line["pass"]]
    sums = collections.Counter()
    for line in lines:
        sums[(line["device"], line["pass"], int(line["pass_number"]), line["layer"])] += int(line["duration_ns"])
    found = collections.Counter()
    for row in layers:
        layer = "" if row["layer"] is None else str(row["layer"])
        expect((layer == "") == (row["place"] != "layer"), f"{recording}: {row}")
        found[(row["device"], row["pass"], row["pass_number"], layer)] += row["kernel_ns"]
    expect(found == sums, f"{recording}: layers differ from those of gpuwhy table launches")
    in_passes = collections.Counter((row["start_ns"], row["layer"], row["part"] or "") for row in launches if row["pass"] is not None)
    expect(in_passes == collections.Counter((int(line["start_ns"]), int(line["layer"]) if line["layer"] else None, line["part"])
                                            for line in lines), f"{recording}: launches have other layers")


def check_steps(steps, launches, recording):
    known = {row["instance"] for row in steps}
    expect(len(known) == len(steps), f"{recording}: steps share an instance")
    stages = {row["instance"]: row["stage"] for row in steps}
    for row in launches:
        if row["instance"] in known:
            expect(stages[row["instance"]] == row["stage"], f"{recording}: {row} is in another stage than its step")


def documented():
    """Columns by table, as docs/formats.md lists them: | `launches` | `start_ns` | number | ... |"""
    text = (TESTS.parent / "docs" / "formats.md").read_text()
    found = collections.defaultdict(list)
    for table, column, kind in re.findall(r"^\| `(\w+)` \| `(\w+)` \| ([a-z, ]+) \|", text, re.M):
        found[table].append((column, kind))
    return found


def kind_of(field):
    return {"int64": "number", "string": "text", "bool": "flag"}[str(field.type)] + (", optional" if field.nullable else "")


def check_recording(program, recording, directory):
    out = pathlib.Path(directory) / "tables"
    run(program, "export", recording, "--format", "parquet", "--out", out)
    rows = {}
    for name in TABLES:
        rows[name], metadata, schema = read_with_each(out / f"{name}.parquet")
        expect(metadata["gpuwhy.schema"] == f"gpuwhy.tables.{name}" and metadata["gpuwhy.schema_version"] == "1", metadata)
        expect(documented()[name] == [(field.name, kind_of(field)) for field in schema], f"docs/formats.md: columns of {name}: {[(field.name, kind_of(field)) for field in schema]}")
    with_call = check_launches(recording, rows["launches"])
    check_sums(recording, rows["kernels"], rows["launches"])
    check_layers(program, recording, rows["layers"], rows["launches"])
    check_steps(rows["steps"], rows["launches"], recording)
    print(f"{pathlib.Path(recording).name}: " + ", ".join(f"{len(rows[name])} {name}" for name in TABLES) + f", {with_call} with calls")


def check_summary(program, directory):
    """A summary of kernels has no events: the table of kernels alone, and it is said."""
    file = TESTS / "golden" / "analyze-summary-ncu" / "kernels.csv"
    out = pathlib.Path(directory) / "summary"
    result = subprocess.run([program, "export", file, "--format", "parquet", "--out", out], capture_output=True, text=True)
    expect(result.returncode == 0 and "only kernels.parquet" in result.stderr, result)
    made = sorted(path.name for path in out.iterdir() if path.name != ".gpuwhy.files")
    expect(made == ["kernels.parquet"], made)
    rows, _, _ = read_with_each(out / "kernels.parquet")
    expect(rows and all(row["p99_ns"] is None for row in rows), rows)


def inside(arguments):
    import exported
    with tempfile.TemporaryDirectory(prefix="gpuwhy-tables-") as directory:
        recordings = [exported.make_golden(directory, case) for case in exported.GOLDEN] + [exported.make_hostile(directory)]
        large = pathlib.Path(directory) / "large.sqlite"
        run(arguments.make_trace, large, 150_000)  # more than one row group
        recordings.append(large)
        folder = arguments.corpus / "nsys_sqlite"
        recordings += [folder / f"{name}.sqlite" for name in exported.CORPUS] if folder.is_dir() else []
        for recording in recordings:
            check_recording(arguments.program, recording, directory)
        check_summary(arguments.program, directory)


def main():
    arguments = testing.arguments("program", "make-trace", "corpus", inside=False)  # inside: this Python has the readers
    if arguments.inside:
        return inside(arguments)
    return subprocess.run([tools_python(), __file__, *sys.argv[1:], "--inside"]).returncode


if __name__ == "__main__":
    sys.exit(main())

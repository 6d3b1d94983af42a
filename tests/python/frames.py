#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of tables in data frame libraries: polars, pandas, pyarrow and duckdb see what Python sees."""
import argparse
import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))


def check_frames(path, requests):
    import duckdb
    import gpuwhy
    import pandas
    import polars
    import pyarrow

    profile = gpuwhy.open(path, requests=requests)
    num_tables = 0
    for name in profile.tables:
        source = profile.table(name)
        try:
            expected = source.to_dict()
        except gpuwhy.Error as error:
            assert error.kind == "absent", (name, error)
            continue
        num_tables += 1
        num_rows = len(source)
        arrow = pyarrow.table(source)
        arrow.validate(full=True)
        assert arrow.num_rows == num_rows and arrow.column_names == list(expected), name
        batch = pyarrow.record_batch(source)
        batch.validate(full=True)
        assert pyarrow.schema(source) == arrow.schema == batch.schema, name
        frame = polars.DataFrame(source)
        for column, values in expected.items():
            seen = [tuple(value) if isinstance(value, list) else value for value in arrow[column].to_pylist()]
            assert seen == values, (name, column, seen[:3], values[:3])
            if arrow.schema.field(column).type.num_fields == 0:  # neither lists nor structs
                assert frame[column].to_list() == values, (name, column)
        assert frame.height == num_rows and frame.columns == list(expected), name
        assert len(arrow.to_pandas()) == num_rows
        if hasattr(pandas.DataFrame, "from_arrow"):
            assert len(pandas.DataFrame.from_arrow(source)) == num_rows
        assert duckdb.sql("select count(*) from source").fetchall() == [(num_rows,)], name
    assert num_tables >= 15, num_tables

    launches = profile.launches
    by_sql = duckdb.sql("select kernel_name::varchar, stage::varchar, device::varchar, sum(duration_ns)::bigint, count(*)"
                        " from launches group by all").fetchall()
    assert sorted(by_sql) == sorted((k.kernel_name, k.stage, k.device, k.total_ns, k.calls) for k in profile.kernels)
    # Whole columns, not row by row: names are numbers with a dictionary.
    assert polars.DataFrame(launches).schema["kernel_name"] == polars.Categorical
    total_ns = polars.DataFrame(launches)["duration_ns"].sum()
    assert total_ns == profile.metrics["capture"]["kernel_ns"]

    # Frames outlive what they were made of, without a copy of the times.
    arrow = pyarrow.table(launches)
    start_ns = launches.column("start_ns")
    addresses = {pyarrow.table(launches)["start_ns"].chunk(0).buffers()[1].address for _ in range(3)}
    assert len(addresses) == 1 and arrow["start_ns"].chunk(0).buffers()[1].address in addresses
    profile.close()
    del profile, launches
    assert arrow["start_ns"].to_pylist() == start_ns
    print(f"{num_tables} tables are alike in polars {polars.__version__}, pandas {pandas.__version__},"
          f" pyarrow {pyarrow.__version__} and duckdb {duckdb.__version__}")


def run_docs(text):
    """The Python of docs/python.md, as one program."""
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    assert len(blocks) >= 5
    names = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for block in blocks:
            exec(block, names)
    assert "absent: " in printed.getvalue() and "gemv_kernel" in printed.getvalue(), printed.getvalue()
    print(f"{len(blocks)} blocks of docs/python.md run")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--check", nargs=2)
    arguments = parser.parse_args()
    if arguments.check:
        check_frames(*arguments.check)
        run_docs((arguments.source / "docs/python.md").read_text())
        return
    from make_requests import Load, parser_of_loads, write_all
    from prefix import tools_python
    from recording import make_recording

    python = tools_python()
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(temporary)
        serving = directory / "serving"
        serving.mkdir()
        write_all(Load(parser_of_loads().parse_args(["--requests", "40", "--seed", "3"])), serving)
        for name in ("run", "before", "after"):
            make_recording(directory / f"{name}.sqlite")
        environment = {**os.environ, "GPUWHY_LIBRARY": arguments.library, "PYTHONPATH": str(arguments.source / "python")}
        command = [python, __file__, "--library", arguments.library, "--source", arguments.source, "--check",
                   serving / "run.sqlite", serving / "requests.jsonl"]
        sys.exit(subprocess.run(command, env=environment, cwd=directory, timeout=280).returncode)


if __name__ == "__main__":
    main()

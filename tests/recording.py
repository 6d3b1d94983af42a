# SPDX-License-Identifier: Apache-2.0
"""Builder of SQLite recordings from the SQL files of tests/golden. `recording.py FILE` makes the one of README.md."""
import pathlib
import re
import sqlite3
import sys

from make_engine_trace import engine_sql
from make_requests import serving_sql

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"


def sql_of(path):
    """Its text, with each line `-- include CASE/FILE` replaced by that file of tests/golden, and each line
    `-- engine OPTIONS` or `-- serving OPTIONS` by the recording that make_engine_trace.py or make_requests.py makes of
    them."""
    text = re.sub(r"^-- include (\S+)$", lambda line: sql_of(GOLDEN / line[1]), path.read_text(), flags=re.MULTILINE)
    text = re.sub(r"^-- serving (.*)$", lambda line: serving_sql(line[1]), text, flags=re.MULTILINE)
    return re.sub(r"^-- engine (.*)$", lambda line: engine_sql(line[1]), text, flags=re.MULTILINE)


def make_sqlite(sql, path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = OFF")  # else every row waits for the disk, minutes beside other work
    connection.executescript(sql_of(sql))
    connection.close()


def make_recording(path, case="analyze-model", name="run.sqlite.sql"):
    make_sqlite(GOLDEN / case / name, path)
    return pathlib.Path(path)


if __name__ == "__main__":
    make_recording(sys.argv[1])

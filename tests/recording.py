# SPDX-License-Identifier: Apache-2.0
"""A recording, made of the SQL it is kept as in tests/golden."""
import pathlib
import sqlite3

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"


def make_recording(path, case="analyze-model", name="run.sqlite.sql"):
    connection = sqlite3.connect(path)
    connection.executescript((GOLDEN / case / name).read_text())
    connection.close()
    return pathlib.Path(path)

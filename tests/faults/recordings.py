#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SQLite recordings made to waste a machine: each is refused with a sentence or analyzed, in time and memory that its size allows, and
what it says as program (views, computed columns, triggers) is never run. Some use the same bytes many times: a megabyte of them is
terabytes of rows."""
import multiprocessing
import os
import pathlib
import sqlite3
import subprocess
import sys
import time

import common
import pages

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
MOST_S = 15  # of a processor; without the limits each of them takes minutes or never ends
ENDLESS = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT x AS start, x + 1 AS \"end\", 0 AS deviceId, 1 AS shortName FROM r"


def columns_of(database, table):
    return [row[1] for row in database.execute(f"PRAGMA table_info({table})")]


def make_view(database):
    database.execute(f"DROP TABLE {KERNELS}")
    database.execute(f"CREATE VIEW {KERNELS} AS {ENDLESS}")


def make_view_of_names(database):
    database.execute("DROP TABLE StringIds")
    database.execute(f"CREATE VIEW StringIds AS SELECT start AS id, 'x' AS value FROM ({ENDLESS})")


def add_computed(database, table, column):
    """In the schema alone: SQLite would compute it for every row that is written."""
    (sql, ) = database.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table, )).fetchone()
    database.execute("PRAGMA writable_schema = ON")
    database.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?",
                     (sql.rstrip().removesuffix(")") + f", {column} TEXT GENERATED ALWAYS AS (hex(zeroblob(400000000))) VIRTUAL)", table))


def make_computed(database):
    add_computed(database, KERNELS, "more")


def make_computed_names(database):
    database.execute("DROP TABLE StringIds")
    database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY)")
    database.executemany("INSERT INTO StringIds (id) VALUES (?)", [(i, ) for i in range(100)])
    add_computed(database, "StringIds", "value")


def make_virtual(database):
    database.execute(f"DROP TABLE {KERNELS}")
    database.execute(f"CREATE VIRTUAL TABLE {KERNELS} USING fts5(start, \"end\")")


def many(column):
    """8,000 kernels, each with its own number in a column."""
    def make(database):
        columns = columns_of(database, KERNELS)
        row = dict(zip(columns, database.execute(f"SELECT * FROM {KERNELS} LIMIT 1").fetchone()))
        database.execute(f"DELETE FROM {KERNELS}")
        rows = [{**row, "start": row["start"] + 1000 * i, "end": row["start"] + 1000 * i + 500, column: i} for i in range(8000)]
        names = ", ".join(f'"{name}"' for name in columns)
        database.executemany(f"INSERT INTO {KERNELS} ({names}) VALUES ({', '.join('?' * len(columns))})",
                             [[one[name] for name in columns] for one in rows])
    return make


def make_long_name(database):
    name = "void kernel<" + "float, " * 3_000_000 + ">"
    database.execute(f"UPDATE StringIds SET value = ? WHERE id IN (SELECT shortName FROM {KERNELS} UNION SELECT demangledName FROM {KERNELS})",
                     (name, ))


def make_index(database):
    """An index that has more rows than its table: a count that asks it is wrong."""
    database.execute("CREATE TABLE big AS WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 50000) SELECT n FROM i")
    database.execute("CREATE INDEX of_big ON big (n)")
    database.execute(f"ALTER TABLE {KERNELS} ADD COLUMN graphNodeId INTEGER DEFAULT 0")
    database.execute(f"CREATE INDEX of_kernels ON {KERNELS} (gridX)")
    database.execute("PRAGMA writable_schema = ON")
    database.execute("UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'of_big') WHERE name = 'of_kernels'")


def kernel_cell(rowid):
    return pages.varint(22) + pages.varint(rowid) + bytes([4, 6, 6, 0]) + bytes(18)


def share_names(path):
    pages.share_texts(path, "StringIds", lambda i, size: [None, f"{i:08}" + "k" * size], num_rows=10_000, text_bytes=1_000_000)


def share_messages(path):
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER, severity INTEGER, text TEXT)")
    pages.share_texts(path, "DIAGNOSTIC_EVENT", lambda i, size: [i, 3, f"{i:08}" + "k" * size], num_rows=10_000, text_bytes=1_000_000)


def share_schema(path):
    pages.share_texts(path, "sqlite_master", lambda i, size: ["table", f"t{i:05}", f"t{i:05}", 2, f"CREATE TABLE t{i:05}(a" + " " * size + ")"],
                      num_rows=5_000, text_bytes=1_000_080)


def share_leaves(path):
    pages.share_leaves(path, KERNELS, [kernel_cell(1)], depth=12)


def share_leaves_of_defaults(path):
    """Read by SQLite, row by row, since a default must be filled in."""
    with sqlite3.connect(path) as database:
        database.execute(f"ALTER TABLE {KERNELS} ADD COLUMN graphNodeId INTEGER DEFAULT 0")
    share_leaves(path)


def share_records(path):
    pages.share_records(path, KERNELS, kernel_cell(1), num_pages=10_000)


def make_trigger(database):
    """For `scrub`, which writes: a change of a text would run it."""
    database.execute("INSERT INTO StringIds (id, value) VALUES (900001, ?)", (f"HF_TOKEN={common.SECRET}", ))
    database.execute("CREATE TABLE fired (x)")
    database.execute(f"CREATE TRIGGER t AFTER UPDATE ON StringIds BEGIN INSERT INTO fired SELECT count(*) FROM ({ENDLESS}); END")


def by_sql(change):
    def make(path):
        with sqlite3.connect(path) as database:
            change(database)
    return make


# name -> how it is made, the words of its refusal (None: it is analyzed)
RECORDINGS = {
    "a view without an end": (by_sql(make_view), "has a view under the name"),
    "names in a view without an end": (by_sql(make_view_of_names), "has a view under the name"),
    "a computed column": (by_sql(make_computed), "has a computed column"),
    "computed names": (by_sql(make_computed_names), "has a computed column"),
    "a virtual table": (by_sql(make_virtual), "has a virtual table under the name"),
    "8,000 GPUs": (by_sql(many("deviceId")), "more than 256 GPUs"),
    "8,000 streams": (by_sql(many("streamId")), None),
    "8,000 contexts": (by_sql(many("contextId")), None),
    "a name of 21 MB": (by_sql(make_long_name), None),
    "an index of another table": (by_sql(make_index), None),
    "names that share pages": (share_names, "is damaged"),
    "messages that share pages": (share_messages, "is damaged"),
    "a schema that shares pages": (share_schema, "is damaged inside its schema"),
    "trees that share leaves": (share_leaves, "is damaged"),
    "trees that share leaves, defaults": (share_leaves_of_defaults, "is damaged"),
    "pointers to one record": (share_records, "is damaged"),
}
COMMANDS = {"table kernels": ["table kernels"], "analyze": ["analyze"], "analyze --out": ["analyze", "--out", "{}"], "report html": ["report", "--format", "html"]}


def used_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(words, folder):
    start = time.monotonic()
    with (folder / "said").open("w+") as said:
        process = subprocess.Popen([str(word) for word in words], stdout=said, stderr=subprocess.STDOUT, cwd=folder)
        while True:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            # By its processor: a busy machine must not fail the test. One that only waits is ended by ctest.
            if used_s(process.pid) > MOST_S:
                process.kill()
                os.wait4(process.pid, 0)
                raise AssertionError(f"does not end within {MOST_S:.0f} s of a processor")
            time.sleep(0.02)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return process.returncode, said.read(), time.monotonic() - start, usage.ru_maxrss << 10


def judge(asked, words, place, recording, refusal):
    code, said, took_s, peak_bytes = measured(words, place)
    most_bytes = 64 * recording.stat().st_size + (256 << 20)
    assert peak_bytes <= most_bytes, f"{peak_bytes >> 20} MiB, and {most_bytes >> 20} were allowed"
    assert "internal error" not in said, said[-500:]
    if refusal and "--memory-need" not in words:
        assert code == 1 and refusal in said, (code, said[-500:])
    assert code in (0, 1), (code, said[-500:])
    print(f"{recording.parent.name:34} {words[1]:8} {'refused' if code else 'analyzed':9} {took_s:5.1f} s {peak_bytes >> 20:5} MiB")
    return "refused" if code else "analyzed"


def make_recording(path, make):
    common.make_recording(path)
    make(path)


def main(asked, scratch):
    outcomes = common.Outcomes()
    for name, (make, refusal) in RECORDINGS.items():
        place = scratch / name.replace(" ", "_")
        place.mkdir()
        recording = place / "run.sqlite"
        # By a process of its own: what it costs to make would count as the peak of all that start after it.
        maker = multiprocessing.Process(target=make_recording, args=(recording, make))
        maker.start()
        maker.join()
        assert maker.exitcode == 0, name
        for what, words in {"analyze --memory-need": ["analyze", "--memory-need"], **COMMANDS}.items():
            argv = [asked.program, *words[0].split(), recording, *[word.replace("{}", str(place / "out")) for word in words[1:]]]
            outcomes.add(what, name, lambda: judge(asked, argv, place, recording, refusal))
        assert len(list(place.rglob("*"))) < 100, "a file for each of them"
    place = scratch / "trigger"
    place.mkdir()
    recording = place / "run.sqlite"
    common.make_recording(recording)
    with sqlite3.connect(recording) as database:
        make_trigger(database)
    outcomes.add("scrub", "a trigger", lambda: judge(asked, [asked.program, "scrub", recording], place, recording, None))
    database = sqlite3.connect(recording)
    assert database.execute("SELECT count(*) FROM fired").fetchone() == (0, ), "the trigger was run"
    assert common.SECRET not in str(database.execute("SELECT value FROM StringIds").fetchall())
    recording = scratch / "names_that_share_pages/run.sqlite"
    outcomes.add("scrub", "names that share pages", lambda: judge(asked, [asked.program, "scrub", recording], place, recording, None))
    assert recording.stat().st_size < 100_000_000, "the disk is filled"
    sys.stdout.flush()
    return outcomes.finish(len(RECORDINGS) * (len(COMMANDS) + 1) + 2)


common.main(main)

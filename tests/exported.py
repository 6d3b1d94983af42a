# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the tests of exports: recordings to export, and their contents by plain SQL."""
import collections
import csv
import io
import pathlib
import sqlite3
import subprocess

from recording import make_recording

TESTS = pathlib.Path(__file__).resolve().parent
GOLDEN = ("analyze-llm", "analyze-graph", "analyze-sqlite-ncu", "analyze-nocuda", "table-layers")
CORPUS = ("v2024.6.2_cs336_lm2.7B_a100_nvtx", "v2026.2.1_nsysai_mfu_h100x2_nccl_before", "v2023.1.2_memfusion_rtx3090x4",
          "v2024.6.2_cs336_lm2.7B_a100_cudagraph", "v2020.3.4_beast_report2")
HOSTILE = {1: b'"quoted" \'both\' back\\slash', 2: b"nul\0inside\x1b[31m\n\r\t</script>{\"a\":1}",
           3: b"\xff\xfe invalid \xc3\x28 \xed\xa0\x80", 7: b"long " + b"x" * 60_000, 4: "bidi \u202e name \u2028".encode(),
           5: b"", 6: "emoji \U0001f600".encode()}
GPU_TABLES = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")


def make_golden(directory, case, name=None):
    return make_recording(pathlib.Path(directory) / f"{name or case}.sqlite", case)


def make_hostile(directory):
    """Hostile names; kernels of one stream that overlap, hold others or last no time; calls that cross."""
    path = make_golden(directory, "analyze-llm", "hostile")
    connection = sqlite3.connect(path)
    for number, name in HOSTILE.items():
        connection.execute("UPDATE StringIds SET value = CAST(? AS TEXT) WHERE id = ?", (name, number))
    connection.execute("UPDATE NVTX_EVENTS SET text = CAST(? AS TEXT) WHERE domainId = 0", (HOSTILE[2],))
    connection.execute("UPDATE TARGET_INFO_GPU SET name = CAST(? AS TEXT)", (HOSTILE[3],))
    kernel = "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, 7, 1, 16777216, 1, 1, 8, 1, 1, 128, 1, 1)"
    connection.executemany(kernel, [(310, 1200), (320, 330), (320, 320), (900, 900), (900, 950), (-50, 20), (1500, 1500)])
    call = "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 16777217, 50, 4)"
    connection.executemany(call, [(110, 120), (110, 160), (2500, 3300), (2500, 2500), (1900, 1950)])
    mark = "INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, 'm', 16777217, NULL, 0, NULL)"
    connection.executemany(mark, [(1500, None, 34), (500, 1500, 60), (700, 2500, 60), (4500, None, 59), (-70, -60, 59)])
    connection.commit()
    connection.close()
    return path


def recordings(arguments, directory, num_kernels=200_000):
    """name -> path; what the corpus does not have is left out, and said."""
    found = {case: make_golden(directory, case) for case in GOLDEN}
    found["hostile"] = make_hostile(directory)
    for name in CORPUS:
        path = pathlib.Path(arguments.corpus) / "nsys_sqlite" / f"{name}.sqlite"
        if path.exists():
            found[name] = path
    if len(found) == len(GOLDEN) + 1:
        print("no corpus: its recordings are left out")
    generated = pathlib.Path(directory) / "generated.sqlite"
    subprocess.run([arguments.make_trace, generated, str(num_kernels), "--processes", "2", "--shuffle", "1"], check=True,
                   capture_output=True)
    found["generated"] = generated
    return found


def export(program, *words, check=True):
    result = subprocess.run([program, "export", *map(str, words)], capture_output=True, text=True, timeout=250)
    assert not check or result.returncode == 0, (words, result.stderr)
    return result


def kernels_in_model(program, path):
    """Kernels in passes as `gpuwhy table launches` prints them; those without a part too."""
    printed = subprocess.run([program, "table", "launches", str(path), "--format", "csv"], capture_output=True, check=True).stdout
    csv.field_size_limit(1 << 30)
    return [row for row in csv.DictReader(io.StringIO(printed.decode(errors="replace"))) if row["pass"]]


class Recorded:
    """A recording as SQL tells it."""

    def __init__(self, path):
        self.connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
        self.tables = {name for name, in self.connection.execute("SELECT name FROM sqlite_master")}

    def columns(self, table):
        return {row[1] for row in self.connection.execute(f"PRAGMA table_info({table})")}

    def streams(self):
        """Sorted (stream, slices, nanoseconds), one a stream of a process, GPU and context."""
        sums = collections.Counter()
        counts = collections.Counter()
        for short in GPU_TABLES:
            table = f"CUPTI_ACTIVITY_KIND_{short}"
            if table not in self.tables:
                continue
            context, stream = (name if name in self.columns(table) else "0" for name in ("contextId", "streamId"))
            for *key, count, total in self.connection.execute(
                    f"""SELECT globalPid, deviceId, {context}, {stream}, count(*), sum(max("end", start) - start)
                        FROM {table} GROUP BY 1, 2, 3, 4"""):
                sums[tuple(key)] += total
                counts[tuple(key)] += count
        return sorted((key[3], counts[key], sums[key]) for key in counts)

    def calls(self):
        """Sorted (thread, calls, nanoseconds)."""
        if "CUPTI_ACTIVITY_KIND_RUNTIME" not in self.tables:
            return []
        return sorted((tid & 0xffffff, count, total) for tid, count, total in self.connection.execute(
            """SELECT globalTid, count(*), sum(max("end", start) - start) FROM CUPTI_ACTIVITY_KIND_RUNTIME GROUP BY 1"""))

    def ranges(self):
        """(marks, ranges that ended, their nanoseconds)."""
        if "NVTX_EVENTS" not in self.tables:
            return (0, 0, 0)
        end = None
        if "ANALYSIS_DETAILS" in self.tables:
            end, = self.connection.execute("SELECT max(duration) FROM ANALYSIS_DETAILS").fetchone()
        last = 1 << 62 if end is None else end  # nsys writes it as the end of ranges that had none
        marks = self.connection.execute("SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 34").fetchone()[0]
        closed, total = self.connection.execute(
            """SELECT count(*), coalesce(sum(max("end", start) - start), 0) FROM NVTX_EVENTS
               WHERE eventType IN (59, 60, 70, 71) AND "end" < ?""", (last,)).fetchone()
        return marks, closed, total

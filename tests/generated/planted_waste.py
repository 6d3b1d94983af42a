#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Waste that is planted into a recording is found, to the nanosecond.

A decode loop whose GPU is otherwise busy without a break gets one or several of: a host that launches late many times, a
host that waits, a copy and a collective with nothing beside them, work that was launched and waits. What each finding says it saves must be
what was planted; savings that do not overlap sum to the window at most; two runs print the same bytes.
"""
import json
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

SCHEMA = """
CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, "end" INTEGER, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER,
  gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER, "end" INTEGER, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, "end" INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
CREATE TABLE NVTX_EVENTS(start INTEGER, "end" INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER,
  domainId INTEGER, uint64Value INTEGER);
CREATE TABLE TARGET_INFO_GPU(id INTEGER, name TEXT, cuDevice INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA Test', 0);
INSERT INTO StringIds VALUES (1, 'large_gemm'), (2, 'ncclDevKernel_AllReduce'), (3, 'cudaLaunchKernel'),
  (4, 'cudaStreamSynchronize'), (5, 'cudaMemcpyAsync'), (8, 'LLM');
INSERT INTO NVTX_EVENTS VALUES (-5, NULL, 75, NULL, 16777217, 8, 1, NULL);
"""
FINDINGS = {"late": "launch_bound", "sync": "host_sync", "copy": "exposed_copy", "pageable": "exposed_copy",
            "comm": "exposed_comm", "queued": "queue_wait", "started": "started_late"}
LEAST = {"launch_bound": 0.05, "queue_wait": 0.10, "started_late": 0.10, "host_sync": 0.03, "exposed_copy": 0.01, "exposed_comm": 0.01}


FEW_GAPS = 20
LEAD = 1_000  # from the opening of the mark to the first kernel
LATE_GAPS = 25  # of one waste: a few would be no habit
LAUNCH = 50  # from the end of a wait to the next kernel


class Recording:
    """The GPU's clock moves on as work is added; the host launches well ahead unless a waste says otherwise."""

    def __init__(self, path):
        path.unlink(missing_ok=True)
        self.database = sqlite3.connect(path)
        self.database.executescript(SCHEMA)
        self.gpu = LEAD
        self.launched = 0
        self.correlation = 0

    def call(self, start, end, name):
        self.correlation += 1
        self.database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 16777217, ?, ?)",
                              (start, end, self.correlation, name))

    def launch(self, at, name=3, returns=None):
        self.launched = max(self.launched + 2, at)
        self.call(self.launched, max(self.launched + 1, returns or 0), name)

    def kernel(self, duration, name=1, launch_at=None, returns=None):
        self.launch(self.launched if launch_at is None else launch_at, returns=returns)
        self.database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, 7, ?, 16777216, ?, ?, 8, 1, 1, 128, 1, 1)",
                              (self.gpu, self.gpu + duration, self.correlation, name, name))
        self.gpu += duration

    def waste(self, kind, duration, work):
        opened = self.gpu
        if kind == "late":
            for _ in range(LATE_GAPS):
                self.gpu += duration
                self.kernel(work // LATE_GAPS, launch_at=self.gpu - duration + 1, returns=self.gpu)
        elif kind == "started":  # the launch returns at once, the work begins much later
            self.gpu += duration
            self.kernel(work, launch_at=opened + 1)
        elif kind == "sync":
            self.gpu += duration
            self.call(opened, self.gpu - LAUNCH, 4)
            self.launched = self.gpu - LAUNCH
            self.kernel(work, launch_at=self.gpu - LAUNCH + 2, returns=self.gpu)
        elif kind == "queued":
            self.gpu += duration
            self.kernel(work)
        elif kind == "comm":
            self.kernel(duration, name=2)
        else:
            self.launch(self.launched, 5)
            self.database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 0, 1, 7, ?, 16777216, 1, 1, ?, 2)",
                                  (opened, opened + duration, self.correlation, 0 if kind == "pageable" else 1))
            self.gpu += duration

    def end(self):
        self.database.execute("INSERT INTO NVTX_EVENTS VALUES (0, ?, 59, 'decode_all', 16777217, NULL, 1, NULL)", (self.gpu,))
        self.database.commit()
        self.database.close()
        return self.gpu


def check(program, directory, chance):
    path = directory / "run.sqlite"
    recording = Recording(path)
    recording.launched = 10
    recording.kernel(chance.randrange(5_000, 50_000), launch_at=20)
    for _ in range(3):  # three kernels or fewer are too few to say anything
        recording.kernel(1_000)
    planted = {"launch_bound": LEAD}  # the mark is open and the first kernel not launched
    late_gaps = 1
    for _ in range(chance.randrange(1, 12)):
        kind = chance.choice(list(FINDINGS))
        duration = chance.randrange(100, 40_000)
        # The host is far ahead before a waste that needs it to be, and has caught up after one that held it.
        if recording.launched >= recording.gpu:
            recording.kernel(1_000 + recording.launched - recording.gpu, launch_at=recording.launched)
        parts = {FINDINGS[kind]: duration}
        if kind == "late":
            duration //= LATE_GAPS
            parts = {"launch_bound": duration * LATE_GAPS}
            late_gaps += LATE_GAPS
        elif kind == "sync":
            parts = {"host_sync": duration - LAUNCH, "launch_bound": LAUNCH}
            late_gaps += 1
        if kind == "started":
            opened = recording.gpu
        recording.waste(kind, duration, chance.randrange(5_000, 50_000))
        if kind == "started":  # until the launch returned, and all of it up to 20 us, the host was late
            late = recording.launched + 1 - opened
            late_gaps += 1
            parts = {"launch_bound": late, "started_late": duration - late} if duration - late > 20_000 else {"launch_bound": duration}
        for name, part in parts.items():
            planted[name] = planted.get(name, 0) + part
    window = recording.end()

    command = [program, "analyze", path, "--json"]
    printed = subprocess.run(command, check=True, capture_output=True).stdout
    assert printed == subprocess.run(command, check=True, capture_output=True).stdout, "two runs differ"
    metrics = json.loads(printed)
    found = {f["id"]: f for f in metrics["findings"] if f["stage"] == "decode"}
    for name, time_ns in planted.items():
        if time_ns / window >= LEAST[name] and (name != "launch_bound" or late_gaps >= FEW_GAPS):
            assert name in found and found[name]["saving_ns"] == time_ns, (name, time_ns, window, found.get(name))
            assert found[name]["window_ns"] == window, (window, found[name])
        else:
            assert name not in found, (name, time_ns / window, found[name])
    total = sum(f["saving_ns"] for f in found.values() if not f["overlaps"])
    assert total <= window, (total, window)
    return {name for name in planted if name in found}


def main():
    arguments = testing.arguments("program", seed=20261115, cases=150)
    chance = random.Random(arguments.seed)
    seen = {}
    with tempfile.TemporaryDirectory() as directory:
        for case in range(arguments.cases):
            try:
                names = check(arguments.program, pathlib.Path(directory), chance)
            except AssertionError as error:
                raise AssertionError(f"case {case} of seed {arguments.seed}: {error}") from error
            for name in names:
                seen[name] = seen.get(name, 0) + 1
    assert set(seen) == set(LEAST), f"never found: {set(LEAST) - set(seen)}"
    print(f"{arguments.cases} recordings, findings equal to what was planted: {seen}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

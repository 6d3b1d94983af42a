#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A plan holds: the peak that `analyze --memory-need` names is at least what the analysis then takes, and at most twice that;
a limit that is accepted is kept, by the resident set and by no figure; one that is too small is refused. The same of several
files of a job, which are read at the same time only as far as that fits.
"""
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

KERNELS = 500_000  # a million events with their calls, copies and ranges
JOB_FILES = 8
MOST_OVER = 2.0    # planned / measured


def peak_of(words):
    """Peak resident set of one program, in bytes, and what it printed."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(write, 1)
        os.dup2(write, 2)
        os.close(read)
        os.execv(words[0], words)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        printed = pipe.read().decode()
    _, status, usage = os.wait4(pid, 0)
    return usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status), printed


def without_notice(path):
    metrics = json.loads(path.read_bytes())
    notices = [entry for entry in metrics["data_quality"] if entry["kind"] == "memory_limit"]
    metrics["data_quality"] = [entry for entry in metrics["data_quality"] if entry["kind"] != "memory_limit"]
    return json.dumps(metrics), notices


def check_job(program, make_trace, directory):
    """Wide rows: more of each file is in memory while it is read than is kept of it."""
    files = [directory / f"rank{i}.sqlite" for i in range(JOB_FILES)]
    subprocess.run([make_trace, files[0], "10000", "--processes", "1"], check=True, stdout=subprocess.DEVNULL)
    connection = sqlite3.connect(files[0])
    connection.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN padding TEXT")
    connection.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET padding = hex(zeroblob(1000))")
    connection.commit()
    connection.close()
    for file in files[1:]:
        shutil.copyfile(files[0], file)

    def analyze(*more):
        return peak_of([program, "analyze", *map(str, files), *map(str, more)])

    def plan_of(*more):
        _, code, printed = analyze("--memory-need", "--json", *more)
        assert code == 0, printed
        return json.loads(printed)

    at_once, one_by_one = plan_of("--threads", JOB_FILES), plan_of("--threads", 1)
    assert at_once["files"] == at_once["files_at_once"] == JOB_FILES and one_by_one["files_at_once"] == 1
    assert at_once["load_bytes"] > one_by_one["load_bytes"] + (JOB_FILES - 1) * 15e6
    measured, code, printed = analyze("--threads", JOB_FILES)
    assert code == 0 and measured <= at_once["peak_bytes"], (printed, measured, at_once)

    # The smallest limit: eight threads, one file at a time.
    limit = one_by_one["coarse_peak_bytes"]
    planned = plan_of("--threads", JOB_FILES, "--memory-limit", limit)
    assert planned["files_at_once"] == 1 and planned["peak_bytes"] <= limit, planned
    limited, code, printed = analyze("--threads", JOB_FILES, "--memory-limit", limit)
    assert code == 0 and limited <= limit, (printed, limited, limit)
    print(f"a job of {JOB_FILES} files: {measured / 1e6:.0f} of {at_once['peak_bytes'] / 1e6:.0f} MB at once, "
          f"{limited / 1e6:.0f} MB within a limit of {limit / 1e6:.0f} MB, {planned['files_at_once']} at a time")


def main():
    arguments = testing.arguments("program", "make-trace")
    version = subprocess.run([arguments.program, "--version"], capture_output=True, text=True, check=True).stdout
    if "Release" not in version or "sanitize" in version.lower():
        testing.skip("other builds take other memory")
    with testing.scratch() as directory:
        trace = directory / "trace.sqlite"
        subprocess.run([arguments.make_trace, trace, str(KERNELS)], check=True, stdout=subprocess.DEVNULL)

        def analyze(*more):
            return peak_of([arguments.program, "analyze", str(trace), *map(str, more)])

        def plan_of(*more):
            peak, code, printed = analyze("--memory-need", "--json", *more)
            assert code == 0, printed
            assert peak < 40e6, f"a plan took {peak} bytes itself"
            return json.loads(printed)

        for more in ([], ["--out", directory / "whole"]):
            plan = plan_of(*more)
            measured, code, printed = analyze(*more)
            assert code == 0, printed
            assert plan["events"]["kernels"] >= KERNELS, plan
            ratio = plan["peak_bytes"] / measured
            print(f"{plan['events']['total']} events: planned {plan['peak_bytes'] / 1e6:.0f} MB, took "
                  f"{measured / 1e6:.0f} MB, {ratio:.2f} x")
            assert 1 <= ratio <= MOST_OVER, (plan, measured)

        # The smallest limit that is accepted: a coarser picture, the same figures, and less memory than it says.
        limit = plan["coarse_peak_bytes"]
        assert limit < plan["peak_bytes"]
        measured, code, printed = analyze("--out", directory / "small", "--memory-limit", limit)
        assert code == 0, printed
        assert measured <= limit, (measured, limit)
        whole, no_notices = without_notice(directory / "whole/metrics.json")
        small, notices = without_notice(directory / "small/metrics.json")
        assert whole == small, "a limit on memory changes figures"
        assert len(notices) == 1 and not no_notices, (notices, no_notices)
        assert (directory / "small/report.html").stat().st_size < (directory / "whole/report.html").stat().st_size
        assert notices[0]["sentence"][:40] in (directory / "small/report.md").read_text()

        # One that changes nothing leaves no trace at all.
        measured, code, printed = analyze("--out", directory / "ample", "--memory-limit", plan["peak_bytes"])
        assert code == 0 and measured <= plan["peak_bytes"], printed
        assert (directory / "ample/metrics.json").read_bytes() == (directory / "whole/metrics.json").read_bytes()

        # One below is refused, before anything is read or written.
        measured, code, printed = analyze("--out", directory / "none", "--memory-limit", limit - 1)
        assert code == 5 and "are allowed" in printed and str(limit) in printed, (code, printed)
        assert measured < 40e6 and not (directory / "none").exists()
        _, code, printed = analyze("--memory-need", "--out", directory / "none", "--memory-limit", limit - 1)
        assert code == 5, printed

        # Of rows as wide as real exports have them the file is larger than what is kept: it must not count as memory.
        wide = directory / "wide.sqlite"
        connection = sqlite3.connect(trace)
        connection.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN padding TEXT")
        connection.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET padding = hex(zeroblob(150))")
        connection.commit()
        connection.execute("VACUUM INTO ?", (str(wide),))
        connection.close()
        before = peak_of([arguments.program, "analyze", str(trace)])[0]
        after = peak_of([arguments.program, "analyze", str(wide)])[0]
        assert after < before + 30e6, f"{wide.stat().st_size} bytes of file: {before} became {after}"
        print(f"a file of {wide.stat().st_size / 1e6:.0f} MB took {after / 1e6:.0f} MB, {before / 1e6:.0f} MB narrow")
        check_job(arguments.program, arguments.make_trace, directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())

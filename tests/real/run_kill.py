#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of a run that is killed in the middle of a pass: doctor names what is left and how to clean it up, and commands refuse the
bundle."""
import argparse
import functools
import os
import shutil
import signal
import subprocess
import sys

from runs import Runner, each, end, leftovers, processes_of, wait_until, wait_while


def remove_leftovers(runner):
    """What other tests left of an nsys that they killed: run leaves it alone, and doctor says how to remove it."""
    check = leftovers(runner)
    if check["status"] == "WARN" and "a killed nsys left" in check["finding"]:
        subprocess.run(["/bin/sh", "-c", check["remedy"]], check=True)


def check_pass(runner, name):
    """`name` is the pass that is running when the run is killed."""
    remove_leftovers(runner)
    process = runner.start("--passes", name, command=[runner.workload, "--hang"])
    try:
        bundle = wait_until(lambda: next((p for p in runner.directory.iterdir() if (p / "running.json").exists()), None))
        wait_while(process, lambda: any(comm == "gpuwhy_nvtx_wor" for _, comm in processes_of(bundle)))
        check = leftovers(runner)
        assert check["status"] == "OK" and str(bundle) in check["finding"], check
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        left = processes_of(bundle)
        assert left, "nothing to find: the test shows nothing"
        check = leftovers(runner)
        assert check["status"] == "WARN" and str(bundle) in check["finding"], check
        # The agents of nsys may end by themselves between the two looks; the workload does not.
        workload = [pid for pid, comm in left if comm == "gpuwhy_nvtx_wor"]
        assert all(str(pid) in check["finding"] and str(pid) in check["remedy"] for pid in workload), (left, check)
        listed = subprocess.run([runner.program, "view", "--files", bundle], capture_output=True, text=True)
        assert listed.returncode != 0 and "did not finish" in listed.stderr, listed
        # What it tells the user to type cleans up.
        assert subprocess.run(["/bin/sh", "-c", check["remedy"].replace("; ", " ; ")]).returncode in (0, 1)
        wait_until(lambda: not processes_of(bundle))
        remove_leftovers(runner)  # of agents that ended after the first look
        assert not bundle.exists() and leftovers(runner)["status"] == "OK", leftovers(runner)
    finally:
        end([process.pid, *[pid for p in runner.directory.iterdir() for pid, _ in processes_of(p)]])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--workload", required=True)
    arguments = parser.parse_known_args()[0]
    if not shutil.which("nsys"):
        print("skipped: nsys is not installed (tools/install-deps.sh nsight)")
        return 77
    runner = Runner(arguments.program, arguments.workload)
    try:
        return each({name: functools.partial(check_pass, runner, name) for name in ("baseline", "nsys")})
    finally:
        runner.close()


if __name__ == "__main__":
    sys.exit(main())

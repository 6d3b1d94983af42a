#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpuwhy run on 128 ranks of a real Slurm, 16 nodes, all on this machine; then merged.

Besides a job that goes well: a task that is killed, a rank that never comes, and a job that is requeued. Each must be
reported as what it is. Needs root (slurmd starts tasks as the user who asked), Debian's slurm-wlm and nsys.
"""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing
from leftovers import end_in, end_with_me  # noqa: E402
from runs import guarded  # noqa: E402

NODES = 16
PER_NODE = 8


class Cluster:
    """slurmctld and one slurmd per node, in the foreground, so that they end by their ids. slurmstepd, which each step has on each node,
    leaves its parent, and outlives it while a task runs."""

    def __init__(self, directory):
        self.directory = directory
        self.processes = []
        host = socket.gethostname().split(".")[0]
        ports = free_ports(NODES + 1)
        self.conf = directory / "slurm.conf"
        self.conf.write_text("\n".join([
            "ClusterName=test", f"SlurmctldHost={host}(127.0.0.1)", "SlurmUser=root", "SlurmdUser=root",
            "AuthType=auth/none", "CredType=cred/none", f"SlurmctldPort={ports[0]}",
            f"StateSaveLocation={directory}/state", f"SlurmdSpoolDir={directory}/spool-%n",
            f"SlurmctldPidFile={directory}/ctld.pid", f"SlurmdPidFile={directory}/slurmd-%n.pid",
            f"SlurmctldLogFile={directory}/ctld.log", f"SlurmdLogFile={directory}/slurmd-%n.log",
            "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "JobAcctGatherType=jobacct_gather/none",
            "AccountingStorageType=accounting_storage/none", "MpiDefault=none", "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core", "SchedulerType=sched/builtin", "ReturnToService=2", "KillWait=2",
            "SlurmdParameters=config_overrides", "MailProg=/bin/true", "SlurmdTimeout=300",
            *[f"NodeName=n{i + 1} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[i + 1]} CPUs=64 RealMemory=1000"
              for i in range(NODES)],
            f"PartitionName=p Nodes=n[1-{NODES}] Default=YES MaxTime=INFINITE State=UP", ""]))
        self.environment = {**{k: v for k, v in os.environ.items() if not k.startswith("SLURM_")},
                            "SLURM_CONF": str(self.conf)}
        (directory / "state").mkdir()
        end_with_me(directory)

    def start(self):
        self.spawn("slurmctld", "-D", "-c")
        for i in range(NODES):
            (self.directory / f"spool-n{i + 1}").mkdir()
            self.spawn("slurmd", "-D", "-N", f"n{i + 1}")
        deadline = time.time() + 300
        while time.time() < deadline:
            states = self.run("sinfo", "-h", "-o", "%D %t", check=False).stdout.split()
            if states == [str(NODES), "idle"]:
                return
            time.sleep(0.3)
        raise RuntimeError("the nodes do not come up: " + (self.directory / "ctld.log").read_text()[-2000:])

    def spawn(self, *argv):
        self.processes.append(subprocess.Popen(argv, env=self.environment, stdout=subprocess.DEVNULL,
                                               stderr=subprocess.DEVNULL))

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        assert end_in(self.directory), "steps of Slurm do not end"

    def run(self, *argv, check=True, timeout=800, **environment):
        result = subprocess.run(argv, env={**self.environment, **environment}, capture_output=True, text=True,
                                timeout=timeout, cwd=self.directory)
        if check and result.returncode != 0:
            raise RuntimeError(f"{argv}: exit {result.returncode}\n{result.stdout[-2000:]}\n{result.stderr[-3000:]}")
        return result


def free_ports(number):
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Job:
    """Runs of gpuwhy in one directory, and what merge says of each."""

    def __init__(self, cluster, program, workload):
        self.cluster, self.program, self.workload = cluster, program, workload
        self.out = cluster.directory / "runs"

    def command(self, *overrides, workload=()):
        return [self.program, "run", "--progress", "plain", "--passes", "nsys", f"artifacts.dir={self.out}",
                "run.min_free_bytes=0", *overrides, "--",
                *(workload or [self.workload, "--steps", "3", "--prefill-ms", "5", "--step-ms", "1"])]

    def merge(self, run_id):
        result = self.cluster.run(self.program, "merge", self.out / run_id, "--json", check=False)
        assert result.stdout, result.stderr
        return result.returncode, json.loads(result.stdout)

    def words(self, run_id):
        return self.cluster.run(self.program, "merge", self.out / run_id, check=False).stdout


def captured(job, name, *argv):
    """A run whose captures succeed. nsys loses its agent now and then on a busy machine; ranks do not try again by
    themselves, since the others would wait for them."""
    for run_id in (name, name + "-2", name + "-3", name + "-4"):
        result = job.cluster.run(*argv, check=False, GPUWHY_RUN_ID=run_id)
        if result.returncode == 0:
            return run_id
        assert "and wrote no report" in result.stderr, f"exit {result.returncode}: {result.stderr[-3000:]}"
    raise RuntimeError("nsys lost its agent four times")


def good_job(job):
    ranks = NODES * PER_NODE
    began = time.time()
    good = captured(job, "good", "srun", f"-N{NODES}", f"-n{ranks}", f"--ntasks-per-node={PER_NODE}",
                    *job.command("ranks.capture=every:32"))
    took_s = time.time() - began
    bundles = sorted((job.out / good).iterdir())
    assert [b.name for b in bundles] == [f"rank-{i:06}" for i in range(ranks)], [b.name for b in bundles]
    for bundle in bundles:
        assert (bundle / "manifest.json").is_file() and (bundle / "summary.gpuwhy").is_file(), bundle
    code, fleet = job.merge(good)
    assert code == 0 and fleet["ranks"]["present"] == ranks and fleet["ranks"]["expected"] == ranks, fleet["ranks"]
    assert fleet["ranks"]["recorded_by"] == {"bare": ranks - 4, "nsys": 4}, fleet["ranks"]["recorded_by"]
    assert len(fleet["nodes"]) == NODES and {n["ranks"] for n in fleet["nodes"]} == {PER_NODE}, fleet["nodes"]
    assert {s["stage"] for s in fleet["heat"]["stages"]} == {"prefill", "decode"}, fleet["heat"]
    # The same folder answers the questions of a history.
    status = json.loads(job.cluster.run(job.program, "fleet", "status", "--to", job.out / good, "--json").stdout)
    assert [(run["ranks"], run["num_ranks"]) for run in status["runs"]] == [(ranks, ranks)], status["runs"]
    print(f"{ranks} ranks on {NODES} nodes: {took_s:.1f} s")


def killed_task(job):
    """Its gpuwhy ends in the middle, as when a node runs out of memory."""
    script = 'if [ "$SLURM_PROCID" = 3 ]; then kill -9 $PPID; fi; exec "$@"'
    job.cluster.run("srun", "-N2", "-n8", "--ntasks-per-node=4",
                    *job.command("ranks.capture=7", workload=["sh", "-c", script, "sh", job.workload, "--steps", "2"]),
                    check=False, GPUWHY_RUN_ID="killed")
    code, fleet = job.merge("killed")
    ranks = fleet["ranks"]
    assert code == 7 and ranks["present"] == 7 and ranks["missing"] == ["3"], ranks
    assert ranks["unfinished"] == [{"attempt": 0, "ranks": ["3"]}], ranks
    words = job.words("killed")
    assert "7 of 8 ranks; missing 3" in words and "ranks 3 began attempt 0 and left no summary" in words, words


def failing_task(job):
    """The program fails, gpuwhy does not: the rank is there and says so."""
    script = 'if [ "$SLURM_PROCID" = 1 ]; then exec "$@" --exit 9; fi; exec "$@"'
    job.cluster.run("srun", "-N1", "-n4", *job.command("ranks.capture=3", workload=[
        "sh", "-c", script, "sh", job.workload, "--steps", "2"]), check=False, GPUWHY_RUN_ID="failing")
    _, fleet = job.merge("failing")
    assert fleet["ranks"]["present"] == 4, fleet["ranks"]
    assert fleet["ranks"]["failed"] == [{"rank": 1, "exit_code": 9}], fleet["ranks"]


def absent_rank(job):
    script = 'if [ "$SLURM_PROCID" = 5 ]; then exit 0; fi; exec "$@"'
    absent = captured(job, "absent", "srun", "-N2", "-n8", "--ntasks-per-node=4", "sh", "-c", script, "sh",
                      *job.command("ranks.capture=0"))
    code, fleet = job.merge(absent)
    assert code == 7 and fleet["ranks"]["missing"] == ["5"] and fleet["ranks"]["unfinished"] == [], fleet["ranks"]
    assert "7 of 8 ranks; missing 5" in job.words(absent)


def requeued_job(job):
    """The run's id is the job's own: nobody set one."""
    script = job.cluster.directory / "batch.sh"
    command = " ".join(f"'{word}'" for word in job.command("ranks.capture=0"))
    script.write_text(f"#!/bin/sh\nsrun -n4 {command}\n"
                      "if [ -z \"$SLURM_RESTART_COUNT\" ]; then scontrol requeue $SLURM_JOB_ID; sleep 100; fi\n")
    number = job.cluster.run("sbatch", "--parsable", "--requeue", "-N1", "-n4", "-o", "batch.log", script).stdout.strip()
    run = job.out / f"slurm-{number}.0"
    last = [run / f"rank-{rank:06}-attempt-1/manifest.json" for rank in range(4)]
    deadline = time.time() + 500
    requeued = None
    while not all(path.is_file() for path in last):
        state = job.cluster.run("scontrol", "show", "job", number).stdout
        if time.time() > deadline or "JobState=FAILED" in state:
            raise RuntimeError("not requeued: " + state + (job.cluster.directory / "batch.log").read_text()[-2000:] +
                               (job.cluster.directory / "ctld.log").read_text()[-2000:])
        # Slurm lets a requeued job wait two minutes; nobody else wants these nodes. Not at once: slurmd keeps the second in which it
        # killed the first attempt, and refuses a start in the same one ("Job credential revoked"), which ends the job for good.
        if "Restarts=1" in state:
            requeued = requeued or time.time()
            if time.time() - requeued > 3:
                job.cluster.run("scontrol", "update", f"JobId={number}", "StartTime=now", check=False)
        time.sleep(1)
    code, fleet = job.merge(run.name)
    assert code == 0 and fleet["attempt"] == 1 and fleet["ranks"]["present"] == 4, fleet["ranks"]
    assert fleet["ranks"]["earlier_attempts"] == [{"attempt": 0, "ranks": ["0-3"]}], fleet["ranks"]
    assert "the job was restarted: attempt 1 counts" in job.words(run.name)


def main():
    options = testing.arguments("program", "workload")
    missing = [tool for tool in ("slurmctld", "slurmd", "srun", "sbatch", "nsys") if not shutil.which(tool)]
    if missing or os.geteuid() != 0:
        testing.skip("needs " + (", ".join(missing) or "root") + " (tools/install-deps.sh fleet nsight)")
    directory = pathlib.Path(tempfile.mkdtemp(prefix="gpuwhy-slurm-"))
    cluster = Cluster(directory)
    try:
        cluster.start()
        job = Job(cluster, str(pathlib.Path(options.program).resolve()), str(pathlib.Path(options.workload).resolve()))
        for case in (good_job, killed_task, failing_task, absent_rank, requeued_job):
            began = time.time()
            case(job)
            print(f"{case.__name__}: ok, {time.time() - began:.1f} s", flush=True)
    finally:
        cluster.stop()
        shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    guarded(main)

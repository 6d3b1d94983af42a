#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test on recordings of simulated engines: steps, periods, windows, tokens and time per token must equal the simulation, to the
nanosecond. The same job in one file per rank gives the same numbers."""
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing
from laws import broken_laws
from make_engine_trace import Engine, parser_of_shapes, write_sqlite


def shapes():
    for depth, workers, replicas, mixed in itertools.product((0, 1, 2), (1, 2, 8), (1, 2), (0, 3)):
        options = ["--depth", depth, "--workers", workers, "--replicas", replicas, "--mixed-every", mixed]
        options += ["--after-marker"] if (depth + workers) % 2 else []
        options += ["--eager"] if depth == 2 else []
        options += ["--startup", "--tail"] if replicas == 2 else []
        yield [str(option) for option in options] + ["--engine", "sglang" if workers == 2 else "vllm"]


def lower_median(values):
    return sorted(values)[(len(values) - 1) // 2]


def check(metrics, replicas):
    groups = sorted((group["pids"], group["devices"], group["steps"]) for group in metrics["rank_groups"])
    assert groups == [(one["pids"], one["devices"], len(one["steps"])) for one in replicas], groups
    stages = {stage["stage"]: stage for stage in metrics["stages"]}
    rows = {row["stage"]: row for row in metrics["steps"]}
    every = sorted((step for one in replicas for step in one["steps"]), key=lambda step: step["host_start_ns"])
    assert set(stages) == {step["stage"] for step in every}, stages.keys()
    for name, stage in stages.items():
        steps = [step for step in every if step["stage"] == name]
        row = rows[name]
        assert stage["instances"] == row["n"] == len(steps), name
        assert stage["tokens"] == sum(step["tokens"] for step in steps), name
        assert stage["kernels"] == sum(step["kernels"] for step in steps), name
        assert row["durations_ns"] == [step["host_end_ns"] - step["host_start_ns"] for step in steps], name
        periods = [step["period_ns"] for step in steps if step["period_ns"]]
        assert row["periods_ns"] == periods, (name, row["periods_ns"], periods)
        for key, of_step in (("gpu_window_median_ns", "gpu_window_ns"), ("gpu_work_median_ns", "gpu_work_ns")):
            assert row[key] == lower_median([step[of_step] for step in steps]), (name, key)
    check_latencies(metrics["aggregates"], replicas)


def check_latencies(aggregates, replicas):
    """Of decode steps after warm-up that a decode step follows."""
    steady = [[step for step, following in zip(one["steps"], one["steps"][1:])
               if step["stage"] == following["stage"] == "decode" and not step["is_warm_up"]] for one in replicas]
    def total(steps, key):
        return sum(step[key] for step in steps)

    rate = sum(total(steps, "tokens") * 1e9 / total(steps, "period_ns") for steps in steady)
    periods = [step["period_ns"] for steps in steady for step in steps]
    assert (aggregates["tpot"]["n"], aggregates["tpot"]["p50_ns"]) == (len(periods), lower_median(periods)), aggregates
    assert abs(aggregates["decode_tokens_per_s"] - rate) < rate * 1e-6, (aggregates, rate)


def job_shapes():
    """Options of a job, and those of the clocks of its ranks."""
    for workers, replicas in itertools.product((1, 2, 4, 8), (1, 2)):
        job = ["--workers", workers, "--replicas", replicas, "--mixed-every", 3, "--engine", "sglang", "--startup",
               "--tail"]
        yield job, []
        if replicas == 1 and workers > 1:
            yield job, ["--clock-error-us", 30]
            # Hosts whose clocks differ, or say nothing: ranks that begin apart and end together are enough.
            yield [*job, "--steps", 24, "--jitter-us", 80, "--depth", 0], ["--clock-error-us", 30_000]
            yield [*job, "--steps", 24, "--jitter-us", 80, "--depth", 0], ["--no-utc"]


def comparable(metrics):
    """All but the zero of the clock and the names of files."""
    for key in ("start_ns", "recorded", "file", "files"):
        metrics["capture"].pop(key, None)
    return metrics


def check_job(program, directory, job, clock):
    def analyze(*files):
        command = [program, "analyze", *files, "--json", "--model", "llama_3_1_8b", "--context", "500"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=120).stdout)

    def write(name, options):
        engine = Engine(parser_of_shapes().parse_args([str(option) for option in options]))
        write_sqlite(engine, directory / name)
        return directory / name

    whole = analyze(write("whole.sqlite", job))
    num_ranks = job[1] * job[3]
    ranks = []
    for rank in range(num_ranks):
        error = [rank * value if isinstance(value, int) else value for value in clock]
        ranks.append(write(f"rank-{rank}.sqlite", [*job, "--rank", rank, "--session-us", 7 * rank, *error]))
    joined = analyze(*reversed(ranks))  # the order of files means nothing
    assert broken_laws(joined) == [], broken_laws(joined)
    if num_ranks > 1:
        assert [file["rank"] for file in joined["capture"]["files"]] == list(range(num_ranks))
    assert all(row["mfu"]["wall_fraction"] for row in joined["efficiency"]["stages"]), "MFU must be compared"
    assert comparable(joined) == comparable(whole), ("one file per rank differs", job, clock)


def main():
    arguments = testing.arguments("program")
    count = 0
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "engine.sqlite"
        for options in shapes():
            engine = Engine(parser_of_shapes().parse_args(options))
            write_sqlite(engine, path)
            metrics = json.loads(subprocess.run([arguments.program, "analyze", path, "--json"], check=True,
                                                capture_output=True, timeout=120).stdout)
            assert broken_laws(metrics) == [], (options, broken_laws(metrics))
            try:
                check(metrics, engine.replicas)
            except AssertionError:
                print("in the recording of make_engine_trace.py " + " ".join(options), file=sys.stderr)
                raise
            count += 1
        for job, clock in job_shapes():
            check_job(arguments.program, pathlib.Path(directory), job, clock)
            count += 1
    print(f"{count} engines are recognized")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of requests joined to steps, on serving loads whose truth is known.

Where steps name slots, every part of every time to first token must be exact to the nanosecond, and every late token
must name the step that made it. Where steps only count tokens, not one claim may be wrong. Offsets of clocks must be
found within the error that is stated.
"""
import csv
import json
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing
from laws import broken_laws  # noqa: E402
from make_requests import Load, PERF_COUNTER, parser_of_loads, write_all, write_lines  # noqa: E402

MS = 1_000_000
MOST_ERROR_NS = 2 * MS


def load_of(*options):
    return Load(parser_of_loads().parse_args([str(option) for option in options]))


class Analysis:
    def __init__(self, program, directory, requests, has_rows=True):
        command = [program, "analyze", directory / "run.sqlite", "--requests", directory / requests, "--json"]
        out = directory / "out"
        if has_rows:
            command += ["--out", out, "-q"]
        run = subprocess.run(command, check=True, capture_output=True, timeout=280)
        self.metrics = json.loads(run.stdout)
        self.requests = self.metrics["requests"]
        if has_rows:
            with (out / "requests.csv").open() as file:
                self.rows = {row["id"]: row for row in csv.DictReader(file)}
            with (out / "late_tokens.csv").open() as file:
                self.late = list(csv.DictReader(file))


def check_sums(requests):
    """The parts of every request that is shown sum to its TTFT; totals to those of all."""
    names = [part["part"] for part in requests["ttft_parts"]]
    for row in requests["rows"]:
        if row["told"] in ("named", "inferred"):
            assert sum(row[f"{name}_ns"] or 0 for name in names) == row["ttft_ns"], row
    shares = sum(part["share_fraction"] for part in requests["ttft_parts"])
    assert not names or abs(shares - 1) < 1e-9, shares


def check_exact(load, found):
    """Every request is named, and all its parts are true."""
    assert broken_laws(found.metrics) == [], broken_laws(found.metrics)
    check_sums(found.requests)
    requests = load.visible()
    assert found.requests["named"] == len(requests), (found.requests["named"], found.requests["not_told"])
    for request in requests:
        row = found.rows[request.id]
        truth = load.parts(request)
        claimed = {name: int(row[f"{name}_ns"]) for name in truth}
        assert claimed == truth, (request.id, claimed, truth)
        steps = int(row["first_step"]), int(row["last_step"]), int(row["prefill_steps"])
        assert steps == (request.prefill[0], request.prefill[-1], len(request.prefill)), (request.id, steps)
    return len(requests)


def check_late(load, found):
    """Late tokens name the step that made them, and what was planted is the cause."""
    by_id = {request.id: request for request in load.requests}
    causes = {}
    for late in found.late:
        request, token = by_id[late["id"]], int(late["token"])
        assert int(late["step"]) == request.made[token], late
        assert int(late["gap_ns"]) == request.arrivals[token] - request.arrivals[token - 1], late
        planted = request.planted.get(token)
        if planted == "missing" and late["cause"] == "mixed_step":
            planted = None  # it reads again in a step with prompts of others: both are true
        if planted and request.planted.get(token - 1) != "delivery":
            assert late["cause"] in (planted, "long_step", "gap"), (planted, late)
        if late["cause"] == "delivery":
            assert "delivery" in (request.planted.get(token), planted), late
        if late["cause"] == "mixed_step":
            assert load.steps[request.made[token]]["prompt"] > 0, late
        causes[late["cause"]] = causes.get(late["cause"], 0) + 1
    assert {"mixed_step", "gap", "missing", "delivery"} <= causes.keys(), causes
    return causes


def check_claims(load, found):
    """Whatever is claimed is true. Returns the share that is claimed."""
    check_sums(found.requests)
    told = 0
    for request in load.visible():
        row = found.rows[request.id]
        if row["told"] == "inferred":
            steps = int(row["first_step"]), int(row["last_step"]), int(row["prefill_steps"])
            assert steps == (request.prefill[0], request.prefill[-1], len(request.prefill)), (request.id, steps,
                                                                                              request.prefill)
            told += 1
        elif row["told"] == "last_step":
            assert int(row["last_step"]) == request.prefill[-1], (request.id, row)
    by_id = {request.id: request for request in load.requests}
    for late in found.late:
        if late["step"]:
            assert int(late["step"]) == by_id[late["id"]].made[int(late["token"])], late
    return told / len(load.visible())


def check_clock(found, offset, states):
    clock = found.requests["clock"]
    assert clock["state"] in states, clock
    assert abs(clock["offset_ns"] - offset) <= clock["error_ns"] + 1, (clock, offset)
    assert clock["error_ns"] <= MOST_ERROR_NS, clock
    return abs(clock["offset_ns"] - offset), clock["error_ns"]


def exact(program, directory, count):
    load = load_of("--requests", count)
    write_all(load, directory)
    found = Analysis(program, directory, "requests.jsonl")
    check_clock(found, 0, ("agrees",))
    print(f"slots: {check_exact(load, found)} requests exact, late tokens {check_late(load, found)}")
    ahead = load_of("--requests", 400, "--ahead", "--seed", 5, "--rate", 60)
    write_all(ahead, directory)
    check_exact(ahead, Analysis(program, directory, "requests.jsonl"))
    check_order_of_rows(program, directory)


def check_order_of_rows(program, directory):
    whole = Analysis(program, directory, "requests.jsonl", has_rows=False).metrics
    lines = (directory / "requests.jsonl").read_text().splitlines()
    random.Random(3).shuffle(lines)
    (directory / "shuffled.jsonl").write_text("\n".join(lines))
    other = Analysis(program, directory, "shuffled.jsonl", has_rows=False).metrics
    other["requests"]["file"] = whole["requests"]["file"]
    assert whole == other, "the order of records changes results"


def inferred(program, directory):
    for options, least in ((("--preempt", 0), 0.8), ((), 0.6), (("--rate", 60), 0.3), (("--cache", 0.3), 0),
                           (("--hidden", 0.2), 0), (("--cache", 0.2, "--hidden", 0.1, "--rate", 80), 0)):
        for seed in (1, 2):
            load = load_of("--requests", 600, "--engine", "vllm", "--seed", seed, *options)
            load.write_recording(directory / "run.sqlite")
            write_lines(directory / "requests.jsonl", load.own_records(has_slots=False, has_received=False))
            found = Analysis(program, directory, "requests.jsonl")
            share = check_claims(load, found)
            assert share >= least, (options, share, found.requests["not_told"], found.requests["clock"])
            print(f"order: {' '.join(map(str, options)) or 'default'}, seed {seed}: {share:.1%} told, none wrong")


def clocks(program, directory):
    worst = 0
    for engine in ("slots", "vllm"):
        for offset in (0, 300_000, -2 * MS, 7 * MS, -20 * MS, 50 * MS, -50 * MS):
            load = load_of("--requests", 300, "--engine", engine, "--offset-ns", offset, "--seed", 7)
            load.write_recording(directory / "run.sqlite")
            write_lines(directory / "requests.jsonl", load.own_records(engine == "slots", False))
            found = Analysis(program, directory, "requests.jsonl")
            error, stated = check_clock(found, offset, ("agrees", "corrected"))
            worst = max(worst, error)
            assert abs(offset) <= stated or found.requests["clock"]["state"] == "corrected"
            check_claims(load, found)
        (directory / "vllm.json").write_text(json.dumps(load.bench_result()))
        found = Analysis(program, directory, "vllm.json")
        error, _ = check_clock(found, -PERF_COUNTER, ("aligned",))
        worst = max(worst, error)
        assert found.requests["told_fraction"] > 0.5 or engine == "slots", found.requests
    print(f"clocks: offsets to 50 ms and a monotonic clock found, worst error {worst / 1000:.0f} us")
    load = load_of("--requests", 120, "--engine", "vllm", "--regular", "--rate", 200, "--stall", 0)
    load.write_recording(directory / "run.sqlite")
    (directory / "vllm.json").write_text(json.dumps(load.bench_result()))
    found = Analysis(program, directory, "vllm.json")
    if found.requests["clock"]["state"] != "refused":
        check_clock(found, -PERF_COUNTER, ("aligned",))
        check_claims(load, found)
    # The wall clock of the server's own machine is enough, however alike steps are.
    write_lines(directory / "requests.jsonl", load.own_records(False, False, is_local=True))
    found = Analysis(program, directory, "requests.jsonl")
    check_clock(found, 0, ("agrees",))
    check_claims(load, found)
    joined = found.requests["inferred"] + found.requests["last_step"]
    assert joined >= 0.9 * len(load.visible()), found.requests["not_told"]
    print(f"clocks: steps that are alike, and a client on the server's machine: {joined} of {len(load.visible())} joined, none wrong")


def formats(program, directory):
    load = load_of("--requests", 200, "--engine", "vllm")
    write_all(load, directory)
    for name in ("profile_export.jsonl", "vllm.json", "sglang.jsonl", "dynamo.jsonl", "tensorrt.json"):
        analysis = Analysis(program, directory, name)
        found = analysis.requests
        if name not in ("vllm.json", "sglang.jsonl"):  # which number requests, and do not name them
            check_claims(load, analysis)
        assert found["requests"] == len(load.visible()), (name, found["requests"])
        truth = sorted(request.arrivals[0] - request.sent for request in load.visible())
        if name in ("profile_export.jsonl", "vllm.json", "sglang.jsonl"):
            median = truth[(len(truth) + 1) // 2 - 1]
            assert abs(found["ttft"]["p50_ns"] - median) <= 2_000, (name, found["ttft"], median)
            assert found["itl"]["n"] == sum(request.output - 1 for request in load.visible()), name
        print(f"{name}: {found['format']}, {found['told_fraction']:.1%} told {found['reason'] or ''}")


def main():
    arguments = testing.arguments("program", requests=10000, only=None)
    for check in (exact, inferred, clocks, formats):
        if arguments.only in (None, check.__name__):
            with tempfile.TemporaryDirectory() as directory:
                extra = (arguments.requests,) if check is exact else ()
                check(arguments.program, pathlib.Path(directory), *extra)
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Conservation laws of metrics.json: what must sum to what, in every recording.

Golden cases and the checks of real recordings share them. metrics.json has no times of single stage windows, so the law
of stage windows is checked as far as sums tell: they reach beyond the capture where a mark does.
"""
import copy

# Shares of a whole. Other fractions may exceed 1: an overhead, a measured rate of a peak.
SHARES = {"saving_fraction", "kernel_fraction", "share_fraction", "covered_fraction", "busy_fraction"}


def shares(value, path=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            # Efficiency is measured work of a bound, which a wrong model exceeds.
            if key in SHARES and isinstance(inner, (int, float)):
                yield f"{path}.{key}", inner
            elif key != "efficiency":
                yield from shares(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from shares(inner, f"{path}[{index}]")


def broken_laws(metrics):
    """A sentence for each law that does not hold."""
    broken = []

    def equal(what, found, expected):
        if found != expected:
            broken.append(f"{what}: {found} is not {expected}")

    def at_least(what, found, least):
        if found < least:
            broken.append(f"{what}: {found} is less than {least}")

    requests = metrics.get("requests") or {"rows": [], "ttft_parts": []}
    for row in requests["rows"]:
        if row["told"] in ("named", "inferred"):
            parts = sum(row[f"{part['part']}_ns"] or 0 for part in requests["ttft_parts"])
            equal(f"the parts of request {row['id']}", parts, row["ttft_ns"])
    capture = metrics["capture"]
    for ledger in metrics["ledgers"]:
        name = f"{ledger['stage']} on {ledger['device']}"
        equal(f"buckets of {name}", sum(ledger["buckets_ns"].values()), ledger["window_ns"])
        at_least(f"smallest bucket of {name}", min(ledger["buckets_ns"].values()), 0)
        if ledger["stage"] == "capture":
            equal(f"window of {name}", ledger["window_ns"], capture["duration_ns"])

    outer = [stage for stage in metrics["stages"] if not stage["nested"]]
    if metrics["ledgers"]:  # a summary of kernels has no times, so neither stages nor ledgers
        staged_ns = sum(stage["kernel_ns"] for stage in outer)
        equal("kernel time of stages and outside", staged_ns + capture["unattributed_kernel_ns"], capture["kernel_ns"])
    for table in ("kernels", "families"):
        equal(f"total of {table}", sum(row["total_ns"] for row in metrics[table]), capture["kernel_ns"])

    for row in metrics["kernels"]:
        for key in ("calls", "total_ns") if row["by_shape"] else ():
            listed = sum(shape[key] for shape in row["by_shape"])
            if row["num_shapes"] == len(row["by_shape"]):
                equal(f"{key} by shape of {row['short_name']}", listed, row[key])
            else:
                at_least(f"{key} of {row['short_name']} for its shapes", row[key], listed)

    at_least("time outside of stages", capture["outside_stages_ns"], 0)
    at_least("overlap of stages", capture["stage_overlap_ns"], 0)
    if metrics["ledgers"] and not any(stage["open"] for stage in outer):
        names = {stage["stage"] for stage in outer}
        windows_ns = sum(ledger["window_ns"] for ledger in metrics["ledgers"] if ledger["stage"] in names)
        # Marks without GPU work have no window, and are not outside either.
        num_windows = {name: sum(ledger["instances"] for ledger in metrics["ledgers"] if ledger["stage"] == name) for name in names}
        windows_ns += sum(stage["host_total_ns"] for stage in outer if num_windows[stage["stage"]] < stage["instances"])
        at_least("stage windows and time outside, less overlap",
                 windows_ns + capture["outside_stages_ns"] - capture["stage_overlap_ns"], capture["duration_ns"])

    counted = {row["stage"]: row["n"] for row in metrics["steps"]}
    for stage in metrics["stages"]:
        equal(f"marks with an end of {stage['stage']}", counted.get(stage["stage"]), stage["instances"] - stage["open"])
    for row in metrics["steps"]:
        periods = row["periods_ns"] or []
        at_least(f"shortest period of {row['stage']}", min(periods, default=1), 1)
        at_least(f"marks of {row['stage']} for its periods", row["n"], len(periods))
    groups = metrics["rank_groups"] or []
    pids = [pid for group in groups for pid in group["pids"]]
    equal("processes of rank groups", len(set(pids)), len(pids))
    if groups:
        equal("steps of rank groups", sum(group["steps"] for group in groups),
              sum(stage["instances"] for stage in metrics["stages"]))

    for path, share in shares(metrics):
        if not 0 <= share <= 1:
            broken.append(f"share {path}: {share} is not within 0 and 1")
    return broken


def prove_each_can_break(metrics):
    """Changes one number of each law; a law that still holds checks nothing. `metrics` has stages and kernels."""
    def change(law, path, by):
        changed = copy.deepcopy(metrics)
        place = changed
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] += by
        assert any(sentence.startswith(law) for sentence in broken_laws(changed)), (law, path, broken_laws(changed))

    assert broken_laws(metrics) == [], broken_laws(metrics)
    bucket = next(iter(metrics["ledgers"][0]["buckets_ns"]))
    timed = next(place for place, row in enumerate(metrics["steps"]) if row["periods_ns"])
    change("buckets of", ("ledgers", 0, "buckets_ns", bucket), 1)
    change("smallest bucket of", ("ledgers", 0, "buckets_ns", bucket), -10**15)
    whole = next(row for row, ledger in enumerate(metrics["ledgers"]) if ledger["stage"] == "capture")
    change("window of", ("ledgers", whole, "window_ns"), 1)
    change("kernel time of stages", ("stages", 0, "kernel_ns"), 1)
    change("kernel time of stages", ("capture", "unattributed_kernel_ns"), 1)
    change("total of kernels", ("kernels", 0, "total_ns"), -1)
    shaped = next((place for place, row in enumerate(metrics["kernels"]) if row["by_shape"]), None)
    if shaped is not None:
        change("calls by shape", ("kernels", shaped, "by_shape", 0, "calls"), 1)
    change("total of families", ("families", 0, "total_ns"), -1)
    change("time outside", ("capture", "outside_stages_ns"), -10**15)
    change("overlap of stages", ("capture", "stage_overlap_ns"), -10**15)
    change("stage windows", ("capture", "stage_overlap_ns"), 10**15)
    change("marks with an end", ("stages", 0, "instances"), 1)
    change("shortest period", ("steps", timed, "periods_ns", 0), -10**15)
    change("marks of", ("steps", timed, "n"), -10**6)
    change("steps of rank groups", ("rank_groups", 0, "steps"), 1)
    change("processes of rank groups", ("rank_groups", 0, "pids"), metrics["rank_groups"][0]["pids"])
    change("share .kernels[0].kernel_fraction", ("kernels", 0, "kernel_fraction"), 1)

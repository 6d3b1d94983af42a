#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of the Python package against the program, on every recording.

Each recording of tests/golden, and of the corpus where it is there, is read by `gpuwhy analyze --json` and by gpuwhy.open().
Both give the same metrics, byte for byte, or refuse the file with the same sentence. Every table is compared with the metrics,
field by field; launches, which the metrics only sum up, are summed up here.
"""
import collections
import csv
import gc
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
import testing
from check_library import corpus_recordings, golden_recordings  # noqa: E402
from make_requests import Load, parser_of_loads, write_all  # noqa: E402
from recording import make_recording  # noqa: E402

# Tables that are lists of metrics.json, and where they are.
LISTS = {
    "findings": "findings", "silent_rules": "silent_rules", "stages": "stages", "ledger": "ledgers",
    "idle_causes": "idle_causes", "kernels": "kernels", "families": "families", "layers": "structure.parts",
    "passes": "structure.passes", "slow_layers": "structure.slow_layers", "slow_passes": "structure.slow_passes",
    "operators": "operators.rows", "devices": "devices", "copies": "copies", "compositions": "compositions",
    "gemm_rates": "gemm_rates", "collective_rates": "collective_rates", "ranges": "ranges", "host_phases": "host_phases",
    "counters": "counters.kernels", "data_quality": "data_quality",
}
MOST_DURATIONS = 4096


def plain(value):
    """A value of metrics.json as tables have it."""
    if isinstance(value, list):
        return tuple(plain(item) for item in value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def row_of_json(row):
    flat = {}
    for key, value in row.items():
        if key == "buckets_ns":
            flat.update({f"{bucket}_ns": time_ns for bucket, time_ns in value.items()})
        elif key == "histogram":
            flat[key] = tuple({"bin": step, "count": count} for step, count in value)
        else:
            flat[key] = plain(value)
    return flat


def list_at(metrics, path):
    for key in path.split("."):
        metrics = None if metrics is None else metrics.get(key)
    return metrics


def rows_of(table):
    columns = table.to_dict()
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def check_lists(gpuwhy, profile, path):
    """Number of rows that are equal to those of the metrics."""
    count = 0
    for name, key in LISTS.items():
        expected = list_at(profile.metrics, key)
        structure = profile.metrics.get("structure") or {}
        if expected is None or (key.startswith("structure.") and structure.get("reason")):
            try:
                len(profile.table(name))
            except gpuwhy.Error as error:
                assert error.kind == "absent" and error.message, (path, name, error.kind)
                continue
            sys.exit(f"{path}: {name} has rows, the metrics have none")
        rows = rows_of(profile.table(name))
        wanted = [row_of_json(row) for row in expected]
        if rows != wanted:
            for row, other in zip(rows, wanted):
                for field in other:
                    if row.get(field) != other[field]:
                        sys.exit(f"{path}: {name}.{field} is {row.get(field)!r}, {other[field]!r} in the metrics")
            sys.exit(f"{path}: {name} has {len(rows)} rows, the metrics have {len(wanted)}")
        count += len(rows)
    return count


def check_launches(gpuwhy, profile, path):
    try:
        launches = profile.launches.to_dict()
    except gpuwhy.Error as error:
        assert error.kind == "absent" and "summary" in error.message, error
        return 0
    totals = collections.defaultdict(lambda: [0, 0])
    for key in zip(launches["kernel_name"], launches["device"], launches["stage"], launches["family"],
                   launches["start_ns"], launches["end_ns"], launches["duration_ns"]):
        assert key[5] - key[4] == key[6], key
        total = totals[key[:4]]
        total[0] += key[6]
        total[1] += 1
    expected = {(k.kernel_name, k.device, k.stage, k.family): [k.total_ns, k.calls]
                for k in profile.kernels if k.family != "cuda_graph (opaque)"}
    assert dict(totals) == expected, f"{path}: launches do not sum to the kernels"
    structure = profile.metrics.get("structure") or {}
    if structure and not structure.get("reason"):
        in_passes = sum(number is not None for number in launches["pass_number"])
        assert in_passes == structure["kernels_in_passes"], (path, in_passes, structure["kernels_in_passes"])
        parts = collections.Counter(part for part in launches["part"] if part is not None)
        wanted = collections.Counter()
        for row in profile.layers:
            wanted[row.part] += row.launches
        assert all(parts[name] >= wanted[name] for name in wanted), (path, parts, wanted)
    graphs = profile.metrics.get("graph_names")
    assert sum(launches["in_graph"]) == (graphs["kernels"] if graphs else 0), path
    return len(launches["start_ns"])


def check_steps(profile, path):
    by_stage = collections.defaultdict(list)
    for step in profile.steps:
        if not step.is_open:
            by_stage[step.stage].append((step.start_ns, step.duration_ns))
    for row in profile.metrics["steps"]:
        mine = [duration for _, duration in sorted(by_stage.pop(row["stage"], []))]
        assert row["n"] == len(mine) and row["durations_ns"] == mine[:MOST_DURATIONS], (path, row["stage"])
    assert not by_stage, (path, list(by_stage))
    for row in profile.ledger:
        assert sum(row[row._fields.index("compute_ns"):]) == row.window_ns, (path, row)


def check_types(gpuwhy, profile):
    """The typed rows name exactly the columns."""
    for name, row_type in (("findings", gpuwhy.Finding), ("stages", gpuwhy.Stage), ("steps", gpuwhy.Step),
                           ("ledger", gpuwhy.Ledger), ("kernels", gpuwhy.Kernel), ("launches", gpuwhy.Launch),
                           ("layers", gpuwhy.LayerPart), ("requests", gpuwhy.Request)):
        try:
            columns = profile.table(name).columns
        except gpuwhy.Error:
            continue
        assert columns == [field.rstrip("_") for field in row_type._fields], (name, columns, row_type._fields)
        yield name


def test_all_recordings(gpuwhy, arguments, directory):
    num_equal = num_refused = num_rows = num_launches = 0
    typed = set()
    for path in [*golden_recordings(directory), *(corpus_recordings(arguments.corpus) if arguments.corpus.is_dir() else [])]:
        run = subprocess.run([arguments.program, "analyze", "--json", path], capture_output=True, text=True, timeout=300)
        try:
            profile = gpuwhy.open(path)
        except gpuwhy.Error as error:
            assert run.returncode != 0, f"{path}: refused by the package alone: {error}"
            assert error.message in run.stderr, (path, error.message, run.stderr)
            assert not error.hint or error.hint in run.stderr, (path, error.hint, run.stderr)
            num_refused += 1
            continue
        assert run.returncode == 0, f"{path}: refused by the program alone: {run.stderr}"
        if profile.metrics_json() != run.stdout:
            sys.exit(f"{path}: the package differs from the program")
        assert profile.verdict == profile.metrics["verdict"]
        num_rows += check_lists(gpuwhy, profile, path)
        num_launches += check_launches(gpuwhy, profile, path)
        if profile.metrics["steps"] or profile.metrics["ledgers"]:
            check_steps(profile, path)
        typed.update(check_types(gpuwhy, profile))
        num_equal += 1
    print(f"{num_equal} recordings with equal metrics, {num_refused} refused alike, {num_rows} rows and {num_launches} launches"
          f" checked{'' if arguments.corpus.is_dir() else '; without the corpus'}")
    assert num_equal >= 10 and num_rows > 100 and num_launches > 100
    assert typed >= {"findings", "stages", "steps", "ledger", "kernels", "launches", "layers"}, typed


def test_options(gpuwhy, arguments, directory):
    """Options mean what they mean on the command line."""
    path = make_recording(directory / "options.sqlite")
    for keywords, options in (({"model": "llama_3_1_8b"}, ["--model", "llama_3_1_8b"]),
                              ({"model": "llama_3_1_8b", "gpu": "H100-SXM5-80GB", "batch": 2},
                               ["--model", "llama_3_1_8b", "--gpu-name", "H100-SXM5-80GB", "--batch", "2"]),
                              ({"steps": "2..5"}, ["--steps", "2..5"]),
                              ({"start": "1ms", "end": "300ms"}, ["--from", "1ms", "--to", "300ms"]),
                              ({"trim": True, "threads": 1}, ["--trim", "--threads", "1"]),
                              ({"device": 0}, ["--gpu", "0"])):
        run = subprocess.run([arguments.program, "analyze", path, "--json", *options], capture_output=True, text=True, timeout=250)
        assert run.returncode == 0, run.stderr
        assert gpuwhy.open(path, **keywords).metrics_json() == run.stdout, keywords
    for keywords, words in (({"model": "lama_3_1_8b"}, "no model"), ({"gpu": "H100"}, "3 GPUs with different speeds"),
                            ({"gpu": "H100-SXM5-80GB"}, "names its GPU"),
                            ({"steps": "x"}, "steps takes"), ({"batch": 0}, "batch takes"), ({"slo": "ttft=1s"}, "--slo requires"),
                            ({"device": 7}, "not in the recording"), ({"memory_limit": "much"}, "memory_limit takes")):
        try:
            gpuwhy.open(path, **keywords)
        except gpuwhy.Error as error:
            assert error.kind == "usage" and words in error.message, (keywords, error.kind, error.message)
        else:
            sys.exit(f"{keywords} was taken")


def test_requests(gpuwhy, arguments, directory):
    folder = directory / "requests"
    folder.mkdir()
    load = Load(parser_of_loads().parse_args(["--requests", "40", "--seed", "3"]))
    write_all(load, folder)
    clients = folder / "requests.jsonl"
    profile = gpuwhy.open(folder / "run.sqlite", requests=clients)
    out = directory / "requests-out"
    run = subprocess.run([arguments.program, "analyze", folder / "run.sqlite", "--requests", clients, "--json", "-o", out,
                          "-q"], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0 and profile.metrics_json() == run.stdout, run.stderr
    with (out / "requests.csv").open() as file:
        expected = {row["id"]: row for row in csv.DictReader(file)}
    assert list(check_types(gpuwhy, profile))[-1] == "requests"
    assert len(profile.requests) == len(expected) > 10
    for row in profile.requests:
        line = expected[row.id]
        assert line["told"] == row.told
        for field in ("ttft_ns", "last_step", "queue_busy_ns", "prefill_gpu_ns", "delivery_ns"):
            value = getattr(row, field)
            assert line[field] == ("" if value is None else str(value)), (row.id, field, line[field], value)


def test_compare(gpuwhy, arguments, directory):
    base = make_recording(directory / "base.sqlite")
    candidate = make_recording(directory / "candidate.sqlite", "analyze-llm")
    run = subprocess.run([arguments.program, "compare", base, candidate, "--json"], capture_output=True, text=True, timeout=250)
    by_path = gpuwhy.compare(base, candidate)
    assert by_path.metrics == json.loads(run.stdout), "compare differs from the program"
    by_profile = gpuwhy.compare(gpuwhy.open(base), [gpuwhy.open(candidate)])
    assert by_profile.verdict == by_path.verdict and by_profile.metrics["kernels"] == by_path.metrics["kernels"]
    assert "<html" in by_path.html() and by_path._repr_html_().startswith("<iframe sandbox=")
    assert gpuwhy.compare(base, base).verdict != by_path.verdict or by_path.sentence


def test_objects(gpuwhy, arguments, directory):
    """Rows, slices, lifetimes, pages and errors."""
    path = make_recording(directory / "objects.sqlite")
    profile = gpuwhy.open(str(path))
    kernels = profile.kernels
    assert kernels[0] == list(kernels)[0] == kernels[:1][0] and kernels[-1] == kernels[len(kernels) - 1]
    assert kernels[0].total_ns == kernels.column("total_ns")[0] and kernels[::2] == list(kernels)[::2]
    assert "kernel_name" in repr(kernels) and profile.verdict in repr(profile)
    for wrong in (lambda: kernels[len(kernels)], lambda: kernels.column("no")):
        try:
            wrong()
        except LookupError:
            continue
        sys.exit("a row or column that is not there was given")
    page = profile._repr_html_()
    assert page.startswith("<iframe sandbox=\"allow-scripts\"") and profile.verdict.split(" of ")[0] in page
    # Only the frame's own quotes: no text of the page ends its attribute.
    assert page.count('"') == 6, page.count('"')
    launches = profile.launches
    first = launches[0]
    profile.close()
    assert launches[0] == first  # what was read stays
    for closed in (lambda: profile.verdict, lambda: profile.kernels.__arrow_c_stream__(), lambda: gpuwhy.compare(profile, path)):
        try:
            closed()
        except ValueError:
            continue
        sys.exit("a closed profile was used")
    for name, kind in (("no-such-file.sqlite", "input"), ("", "input")):
        try:
            gpuwhy.open(name)
        except gpuwhy.Error as error:
            assert error.message, kind
        else:
            sys.exit(f"{name!r} was opened")
    try:
        len(gpuwhy.open(path).table("nothing"))
    except gpuwhy.Error as error:
        assert error.kind == "usage" and "launches" in error.hint and error.hint in str(error)
    # Capsules that nobody takes release what they hold.
    with gpuwhy.open(path) as again:
        for _ in range(50):
            again.launches.__arrow_c_stream__()
            again.kernels.__arrow_c_array__()
            again.kernels.__arrow_c_schema__()
    gc.collect()


def test_hostile_names(gpuwhy, directory):
    """A kernel's name may hold anything; a column of texts holds UTF-8."""
    import sqlite3

    path = make_recording(directory / "hostile.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE StringIds SET value = CAST(X'6b65ff6e656cc3280a2200' AS TEXT) WHERE value LIKE 'gemv%'")
    changed = connection.total_changes
    connection.commit()
    connection.close()
    assert changed > 0
    profile = gpuwhy.open(path)
    names = set(profile.launches.column("kernel_name"))
    assert any("\ufffd" in name for name in names), names
    assert {kernel["kernel_name"] for kernel in profile.metrics["kernels"]} == set(profile.kernels.column("kernel_name"))


def test_header(source):
    """c.h is C, not only C++."""
    compiler = shutil.which("cc")
    if compiler is None:
        print("c.h is not compiled: no cc")
        return
    subprocess.run([compiler, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-x", "c",
                    source / "include/gpuwhy/c.h"], check=True)


def test_moved_column(directory):
    """Arrow lets a receiver keep one column and release the rest."""
    import ctypes

    from gpuwhy import _native

    path = make_recording(directory / "moved.sqlite")
    import gpuwhy

    profile = gpuwhy.open(path)
    with profile._handle as pointer:
        batch = _native.Batch(pointer, b"kernels")
    expected = batch.values(0, 0, len(batch))
    child, form = batch.array.children[0].contents, batch.schema.children[0].contents
    kept, kept_form = _native.ArrowArray(), _native.ArrowSchema()
    for target, moved in ((kept, child), (kept_form, form)):
        ctypes.memmove(ctypes.byref(target), ctypes.byref(moved), ctypes.sizeof(target))
        moved.release = type(moved.release)()
    del batch, child, form, moved
    profile.close()
    gc.collect()
    assert _native.values_of(kept_form, kept, 0, kept.length) == expected
    for held in (kept, kept_form):
        held.release(ctypes.byref(held))
        assert not held.release


def test_threads(gpuwhy, directory):
    """Python goes on while the library works, and threads do not disturb each other."""
    path = make_recording(directory / "threads.sqlite")
    expected = gpuwhy.open(path).metrics_json()
    results = []
    threads = [threading.Thread(target=lambda: results.append(gpuwhy.open(path).metrics_json())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 6

    # One thread closes what another one is using.
    def page_of(profile):
        try:
            results.append("<html" in profile.html())
        except ValueError:
            results.append(True)

    results.clear()
    for wait_s in (0, 0.001, 0.005, 0.02):
        profile = gpuwhy.open(path)
        thread = threading.Thread(target=page_of, args=(profile,))
        thread.start()
        time.sleep(wait_s)
        profile.close()
        del profile
        thread.join()
    assert results == [True] * 4


def test_marks(gpuwhy, arguments, directory):
    """Marks are ranges of domain LLM with their tokens; without a listener they are nothing."""
    assert "ctypes" not in subprocess.run(
        [sys.executable, "-c", "import gpuwhy, sys\nwith gpuwhy.mark('prefill', tokens=1): pass\nprint(*sys.modules)"],
        env={**os.environ, "NVTX_INJECTION64_PATH": ""}, capture_output=True, text=True, check=True).stdout.split()
    try:
        gpuwhy.mark("prefil")
    except ValueError as error:
        assert "decode_step" in str(error)
    else:
        sys.exit("a mark that is not there was made")
    library = pathlib.Path(os.environ["GPUWHY_LIBRARY"]).parent / "libgpuwhy_nvtx.so"
    if not arguments.read_ranges or not library.is_file():
        print("marks are not read back: no libgpuwhy_nvtx.so")
        return
    recorded = directory / "marks"
    recorded.mkdir()
    program = ("import gpuwhy\n"
               "with gpuwhy.mark('request'):\n"
               "    with gpuwhy.mark('prefill', tokens=512): pass\n"
               "    try:\n"
               "        with gpuwhy.mark('decode_step', tokens=4): raise KeyError\n"
               "    except KeyError: pass\n"
               "with gpuwhy.mark('warmup'): pass\n")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=250,
                   env={**os.environ, "NVTX_INJECTION64_PATH": str(library), "GPUWHY_NVTX_DIR": str(recorded)})
    run = subprocess.run([arguments.read_ranges, "ranges", recorded], capture_output=True, text=True, check=True)
    rows = list(csv.DictReader(run.stdout.splitlines()))
    found = {(row["domain"], row["name"]) for row in rows}
    assert found == {("LLM", name) for name in ("request", "prefill", "decode_step", "warmup")}, rows
    assert "512" in run.stdout, run.stdout


def test_import_time(limit_ms):
    """Processor time, of the quickest of several starts: the machine may be busy."""
    code = "import time; begin = time.process_time(); import gpuwhy; print((time.process_time() - begin) * 1e3)"
    starts = [subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True) for _ in range(9)]
    taken_ms = min(float(start.stdout) for start in starts)
    print(f"import gpuwhy takes {taken_ms:.1f} ms")
    assert taken_ms < limit_ms, taken_ms


def main():
    arguments = testing.arguments("program", "library", "source", "corpus", import_limit_ms=30.0)
    os.environ["GPUWHY_LIBRARY"] = arguments.library
    os.environ["PYTHONPATH"] = str(arguments.source / "python")
    sys.path.insert(0, str(arguments.source / "python"))
    import gpuwhy

    version = subprocess.run([arguments.program, "--version"], capture_output=True, text=True, check=True).stdout
    assert gpuwhy.__version__ == version.split()[1], (gpuwhy.__version__, version)
    with testing.scratch() as directory:
        test_objects(gpuwhy, arguments, directory)
        test_hostile_names(gpuwhy, directory)
        test_options(gpuwhy, arguments, directory)
        test_requests(gpuwhy, arguments, directory)
        test_compare(gpuwhy, arguments, directory)
        test_threads(gpuwhy, directory)
        test_header(arguments.source)
        test_moved_column(directory)
        test_marks(gpuwhy, arguments, directory)
        test_all_recordings(gpuwhy, arguments, directory)
    test_import_time(arguments.import_limit_ms)


if __name__ == "__main__":
    main()

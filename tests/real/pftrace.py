#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trace.pftrace, decoded by protoc against tests/data/perfetto.proto: every field known, begins and ends balanced, times in
order, every number of a text or track defined before it is used; and its sums against plain SQL, `gpuwhy table kernels` and
metrics.json. Skips where protoc is missing."""
import collections
import csv
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing
import exported

SCHEMA = exported.TESTS / "data/perfetto.proto"


def text_of(quoted):
    """A string as protoc prints it; bytes that are not UTF-8 fail."""
    return quoted[1:-1].encode("latin1").decode("unicode_escape").encode("latin1").decode("utf-8")


def packets_of(path):
    """Packets as protoc prints them: (key, value) pairs, a list for a message."""
    with open(path, "rb") as file:
        decoder = subprocess.Popen(["protoc", f"--proto_path={SCHEMA.parent}", "--decode=Trace", SCHEMA.name], stdin=file,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        stack = []
        for line in decoder.stdout:
            line = line.strip()
            if line.endswith(" {"):
                message = (line[:-2], [])
                if stack:
                    stack[-1][1].append(message)
                stack.append(message)
            elif line == "}":
                message = stack.pop()
                if not stack:
                    assert message[0] == "packet", message[0]
                    yield message[1]
            else:
                key, value = line.split(": ", 1)
                stack[-1][1].append((key, value))
        errors = decoder.stderr.read()
        assert decoder.wait() == 0 and not errors, errors


class Checked:
    """A trace read packet by packet and checked against the rules of the format."""

    def __init__(self, packets):
        self.tracks = {}     # uuid -> {name, parent, ...}
        self.slices = []     # (uuid, name, category, arguments, start, end), ended
        self.marks = 0
        self.counters = collections.defaultdict(list)  # uuid -> [(time, value)]
        self.last = {}       # sequence -> time
        self.texts = {}      # (sequence, kind, iid) -> text
        self.open = collections.defaultdict(list)
        self.num_packets = 0
        for packet in packets:
            self.num_packets += 1
            self.read(packet)
        assert not any(self.open.values()), "slices that never end"
        for track in self.tracks.values():
            assert track.get("parent_uuid", 0) == 0 or track["parent_uuid"] in self.tracks, track

    def read(self, packet):
        fields = dict(packet)
        assert all(not key[0].isdigit() for key, _ in packet), f"unknown field: {packet}"
        sequence = int(fields["trusted_packet_sequence_id"])
        flags = int(fields["sequence_flags"])
        assert (flags == 1) == (sequence not in self.last), "state is cleared at a sequence's start and only there"
        self.last.setdefault(sequence, 0)
        for kind, entries in [(key, value) for key, value in fields.get("interned_data", [])]:
            entry = dict(entries)
            key = (sequence, kind, int(entry["iid"]))
            assert key not in self.texts, f"{key} is defined twice"
            assert key[2] > 0
            self.texts[key] = text_of(entry["text"])
        if "track_descriptor" in fields:
            self.read_track(dict(fields["track_descriptor"]))
        if "track_event" in fields:
            time = int(fields["timestamp"])
            assert time >= self.last[sequence], f"time runs backwards in sequence {sequence}"
            self.last[sequence] = time
            self.read_event(sequence, time, fields["track_event"])

    def read_track(self, track):
        uuid = int(track["uuid"])
        assert uuid > 0
        known = {"name": text_of(track["name"]), "parent_uuid": int(track.get("parent_uuid", 0)),
                 "is_counter": "counter" in track, "rank": int(track["sibling_order_rank"])}
        if "thread" in track:
            known["tid"] = int(dict(track["thread"])["tid"])
        assert self.tracks.setdefault(uuid, known) == known, "a track was told in two ways"

    def read_event(self, sequence, time, pairs):
        assert all(not key[0].isdigit() for key, _ in pairs), f"unknown field: {pairs}"
        event = dict(pairs)
        uuid = int(event["track_uuid"])
        track = self.tracks[uuid]
        assert track["is_counter"] == (event["type"] == "TYPE_COUNTER")
        if event["type"] == "TYPE_COUNTER":
            self.counters[uuid].append((time, float(event["double_counter_value"])))
        elif event["type"] == "TYPE_SLICE_END":
            name, category, arguments, start = self.open[uuid].pop()
            self.slices.append((uuid, name, category, arguments, start, time))
        else:
            name = self.texts[sequence, "event_names", int(event["name_iid"])]
            category = self.texts[sequence, "event_categories", int(event["category_iids"])]
            arguments = {}
            for key, value in pairs:
                if key == "debug_annotations":
                    annotation = dict(value)
                    argument = self.texts[sequence, "debug_annotation_names", int(annotation.pop("name_iid"))]
                    assert argument not in arguments, f"{argument} twice"
                    arguments[argument] = self.value_of(sequence, annotation)
            if event["type"] == "TYPE_INSTANT":
                self.marks += 1
            else:
                assert event["type"] == "TYPE_SLICE_BEGIN", event
                self.open[uuid].append((name, category, arguments, time))

    def value_of(self, sequence, annotation):
        (kind, value), = annotation.items()
        if kind == "string_value_iid":
            return self.texts[sequence, "debug_annotation_string_values", int(value)]
        assert kind in ("int_value", "double_value"), annotation
        return int(value) if kind == "int_value" else float(value)

    def rows(self, pattern):
        """(number in the parent's or own name, slices, nanoseconds) of each row, its lanes taken together."""
        sums = collections.defaultdict(lambda: [0, 0])
        for uuid, _, _, _, start, end in self.slices:
            track = self.tracks[uuid]
            if re.match(pattern, track["name"]):
                row = sums[track["parent_uuid"], track["name"], track["rank"]]
                row[0] += 1
                row[1] += end - start
        return {key: tuple(value) for key, value in sums.items()}


def compare(path, trace, arguments, directory):
    recorded = exported.Recorded(path)
    streams = sorted((int(name.split()[1].rstrip(",")), *sums)
                     for (_, name, _), sums in trace.rows(r"stream \d+").items())
    assert streams == recorded.streams(), (streams, recorded.streams())
    calls = sorted((trace.tracks[parent]["tid"], *sums) for (parent, _, _), sums in trace.rows("CUDA API").items())
    assert calls == recorded.calls(), (calls, recorded.calls())
    closed = [end - start for uuid, _, category, given, start, end in trace.slices
              if category == "nvtx" and "open" not in given]
    assert (trace.marks, len(closed), sum(closed)) == recorded.ranges(), (trace.marks, len(closed), recorded.ranges())
    compare_kernels(path, trace, arguments)
    compare_model(path, trace, arguments)
    compare_ledger(path, trace, arguments, directory)


def compare_model(path, trace, arguments):
    """Passes, layers and parts cover the kernels that `gpuwhy table launches` names, and lie one after another."""
    kernels = exported.kernels_in_model(arguments.program, path)
    assert kernels or path.name != "table-layers.sqlite"
    slices = collections.defaultdict(list)
    for uuid, name, category, given, start, end in trace.slices:
        if category == "model":
            level = trace.tracks[uuid]["name"].split()[0]
            slices[level].append((uuid, start, end, name, given["kernels"]))
    for level, found in slices.items():
        found.sort()
        for (uuid, _, end, _, _), (other, start, _, _, _) in zip(found, found[1:]):
            assert uuid != other or start >= end, (level, start, end)
        expected = [kernel for kernel in kernels if level != "parts" or kernel["part"]]
        assert sum(count for _, _, _, _, count in found) == len(expected), level
    passes = {(kernel["pid"], kernel["device"], kernel["pass_number"]) for kernel in kernels}
    layers = {(kernel["pid"], kernel["device"], kernel["pass_number"], kernel["layer"]) for kernel in kernels if kernel["layer"]}
    assert len(slices["passes"]) == len(passes), (len(slices["passes"]), len(passes))
    assert sum(name.startswith("layer ") for _, _, _, name, _ in slices["layers"]) == len(layers)
    parts = collections.Counter(kernel["part"] for kernel in kernels if kernel["part"])
    found = collections.Counter()
    for _, _, _, name, count in slices["parts"]:
        found[name] += count
    assert found == parts, (found, parts)


def compare_kernels(path, trace, arguments):
    printed = subprocess.run([arguments.program, "table", "kernels", path, "--format", "csv"], check=True,
                             capture_output=True).stdout.decode(errors="replace")
    csv.field_size_limit(1 << 30)
    expected = collections.defaultdict(lambda: [0, 0])
    is_plain = path.name != "hostile.sqlite"  # its names are spelt in other ways in CSV
    for row in csv.DictReader(io.StringIO(printed)):
        total = expected[row["kernel_name"] if is_plain else "", row["stage"], row["family"]]
        total[0] += int(row["calls"])
        total[1] += int(row["total_ns"])
    found = collections.defaultdict(lambda: [0, 0])
    for uuid, name, category, given, start, end in trace.slices:
        if trace.tracks[uuid]["name"].startswith("stream ") and category != "memcpy":
            total = found[given.get("kernel", name) if is_plain else "", given["stage"], category]
            total[0] += 1
            total[1] += end - start
    assert found == expected, (dict(found), dict(expected))


def compare_ledger(path, trace, arguments, directory):
    subprocess.run([arguments.program, "analyze", path, "--out", directory / "out"], check=True, capture_output=True)
    metrics = json.loads((directory / "out/metrics.json").read_text())
    expected = {}
    for ledger in metrics["ledgers"]:
        if ledger["stage"] == "capture":
            for bucket, value in ledger["buckets_ns"].items():
                if value:
                    expected[ledger["device"], bucket] = value
    found = {}
    for uuid, points in trace.counters.items():
        track = trace.tracks[uuid]
        device = "cuda:" + re.match(r"GPU (\d+)", trace.tracks[track["parent_uuid"]]["name"]).group(1)
        area = sum(value / 100 * (later - time) for (time, value), (later, _) in zip(points, points[1:]))
        assert points[-1][1] == 0 and all(-1e-9 <= value <= 100 + 1e-9 for _, value in points)
        found[device, track["name"].removeprefix("ledger: ")] = area
    assert found.keys() == expected.keys(), (found.keys(), expected.keys())
    for key, area in found.items():
        assert abs(area - expected[key]) <= 1e-6 * expected[key] + 1, (key, area, expected[key])


def check_budget(path, arguments, directory):
    """What is left out is said, is left out in order, and the rest is a whole trace within the budget."""
    out = directory / "budget.pftrace"
    exported.export(arguments.program, path, "--out", out)
    size = out.stat().st_size
    num_work = sum(count for _, count, _ in exported.Recorded(path).streams())
    seen = []
    # One byte less than was written each time: the next thing has to go.
    for budget in (size, None, None, None, None, None, size // 20, 2000, 1):
        budget = budget or out.stat().st_size - 1
        said = exported.export(arguments.program, path, "--out", out, "--trace-budget", budget).stderr
        assert out.stat().st_size <= budget, (budget, out.stat().st_size)
        trace = Checked(packets_of(out))
        categories = collections.Counter(category for _, _, category, _, _, _ in trace.slices)
        work = [given for uuid, _, _, given, _, _ in trace.slices if trace.tracks[uuid]["name"].startswith("stream ")]
        missing = num_work - len(work)
        has_arguments = any("stage" in given for given in work)
        assert ("API calls of the host are left out" in said) == (categories["api"] == 0), said
        assert ("NVTX ranges and marks are left out" in said) == (categories["nvtx"] == 0), said
        assert ("arguments of GPU work" in said) == (not has_arguments), said
        assert (f"{missing} of {num_work} kernels, copies and graphs are left out" in said) == (missing > 0), said
        has_parts = any(trace.tracks[uuid]["name"].startswith("parts") for uuid, *_ in trace.slices)
        assert not has_parts or "parts of the model's layers are left out" not in said, said
        seen.append((categories["api"] > 0, has_parts, categories["nvtx"] > 0, has_arguments, missing == 0))
    if not seen[0][1]:
        seen.insert(2, (False, False, True, True, True))  # there is no model that could be left out
    has_model = seen[0][1]
    assert seen[:4] == [(True, has_model, True, True, True), (False, has_model, True, True, True), (False, False, True, True, True),
                        (False, False, False, True, True)], seen
    assert not seen[4][3] and seen[4][4] and seen[-1] == (False, False, False, False, False), seen


def check_counters(arguments, directory):
    """Kernels that counters of ncu stand for carry them, and no others."""
    case = exported.TESTS / "golden/analyze-sqlite-ncu"
    path = exported.make_golden(directory, case.name, "counters")
    counters, = [file for file in case.iterdir() if file.name.startswith("counters") or file.suffix == ".csv"]
    out = directory / "counters.pftrace"
    exported.export(arguments.program, path, "--ncu", counters, "--out", out)
    printed = subprocess.run([arguments.program, "analyze", path, "--ncu", counters, "--json"], check=True,
                             capture_output=True).stdout
    covered = json.loads(printed)["counters"]["coverage"][-1]["covered_ns"]
    found = [(given, end - start) for _, _, _, given, start, end in Checked(packets_of(out)).slices if "ncu.bound" in given]
    assert covered > 0 and sum(length for _, length in found) == covered, (found, covered)
    assert all(given["ncu.confidence"] in ("high", "medium", "low") for given, _ in found), found


def check_the_checks(path):
    """Each rule of Checked can fail."""
    packets = list(packets_of(path))

    def expect_failure(change):
        damaged = [list(packet) for packet in packets]
        change(damaged)
        try:
            Checked(damaged)
        except (AssertionError, KeyError, IndexError):
            return
        sys.exit(f"{change.__name__} went unnoticed")

    def index_of(kind):
        return next(i for i, packet in enumerate(packets) if dict(dict(packet).get("track_event", [])).get("type") == kind)

    def drop_end(damaged): del damaged[index_of("TYPE_SLICE_END")]
    def drop_begin(damaged): del damaged[index_of("TYPE_SLICE_BEGIN")]
    def drop_track(damaged): del damaged[next(i for i, p in enumerate(packets) if "track_descriptor" in dict(p))]
    def unknown_field(damaged): damaged[-1].append(("99", "1"))

    def late_begin(damaged):
        at = index_of("TYPE_SLICE_BEGIN")
        damaged[at] = [(key, "999999999999" if key == "timestamp" else value) for key, value in damaged[at]]

    def drop_text(damaged):
        at = index_of("TYPE_SLICE_BEGIN")
        damaged[at] = [(key, value) for key, value in damaged[at] if key != "interned_data"]

    Checked(packets)
    for change in (drop_end, drop_begin, drop_track, unknown_field, late_begin, drop_text):
        expect_failure(change)


def main():
    arguments = testing.arguments("program", "make-trace", "corpus")
    if not shutil.which("protoc"):
        testing.skip("protoc is not here (tools/install-deps.sh viewers)")
    with testing.scratch() as directory:
        found = exported.recordings(arguments, directory)
        for name, path in found.items():
            out = directory / f"{name}.pftrace"
            exported.export(arguments.program, path, "--out", out)
            trace = Checked(packets_of(out))
            compare(path, trace, arguments, directory)
            slices = len(trace.slices) + trace.marks
            print(f"{name}: {slices} slices, {trace.num_packets} packets, {out.stat().st_size} bytes, "
                  f"{out.stat().st_size / max(slices, 1):.1f} a slice")
        check_counters(arguments, directory)
        check_the_checks(directory / "analyze-llm.pftrace")
        check_budget(found.get(exported.CORPUS[0], found["hostile"]), arguments, directory)


main()

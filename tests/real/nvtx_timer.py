#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libgpuwhy_nvtx.so in real programs: what they marked is what is read, however they end."""
import collections
import csv
import ctypes
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

MS = 1_000_000


class Recorder:
    """Runs programs with the library in a directory of their own, and reads what they left."""

    def __init__(self, arguments, directory, library):
        self.arguments = arguments
        self.directory = directory
        self.environment = {**os.environ, "NVTX_INJECTION64_PATH": str(library), "GPUWHY_NVTX_DIR": str(directory)}

    def run(self, *options, program=None, **keywords):
        program = program or self.arguments.workload
        return subprocess.run([program, *map(str, options)], env=self.environment, capture_output=True, text=True,
                              timeout=120, **keywords)

    def read(self, what):
        result = subprocess.run([self.arguments.read_ranges, what, self.directory], capture_output=True, text=True,
                                timeout=120)
        assert result.returncode == 0 and not result.stderr, result.stderr
        return list(csv.DictReader(result.stdout.splitlines(keepends=True)))

    def processes(self):
        rows = self.read("processes")
        assert all(row["damaged"] == "0" and row["truncated"] == "0" for row in rows), rows
        return rows


def names(rows):
    return collections.Counter((row["domain"], row["name"]) for row in rows)


def request(steps):
    return collections.Counter({("LLM", "request"): 1, ("LLM", "prefill"): 1, ("LLM", "decode_all"): 1,
                                ("LLM", "decode_step"): steps})


def times(rows, name):
    return [(int(row["start_ns"]), int(row["end_ns"])) for row in rows if row["name"] == name]


def test_marks(recorder):
    begun = time.monotonic_ns()
    assert recorder.run("--steps", 7, "--prefill-ms", 20, "--step-ms", 3).returncode == 0
    ended = time.monotonic_ns()
    rows = recorder.read("ranges")
    assert names(rows) == request(7), names(rows)
    (start, end), (prefill, ), (decode, ) = times(rows, "request")[0], times(rows, "prefill"), times(rows, "decode_all")
    steps = times(rows, "decode_step")
    assert begun < start and end < ended, "the library's clock is Python's"
    assert start <= prefill[0] < prefill[1] <= decode[0] < decode[1] <= end
    assert decode[0] <= steps[0][0] and steps[-1][1] <= decode[1]
    assert all(before[1] <= after[0] for before, after in zip(steps, steps[1:]))
    # The workload works at least that long; how much longer is the machine's affair.
    assert 20 * MS <= prefill[1] - prefill[0]
    assert all(3 * MS <= after - before for before, after in steps)
    assert all(row["kind"] == "push_pop" and int(row["duration_ns"]) == int(row["end_ns"]) - int(row["start_ns"])
               for row in rows)
    assert {row["name"]: row["payload"] for row in rows} == {"request": "519", "prefill": "512", "decode_all": "7",
                                                             "decode_step": "1"}
    (process, ) = recorder.processes()
    assert process["command"] == pathlib.Path(recorder.arguments.workload).name[:15]
    assert {row["pid"] for row in rows} == {row["tid"] for row in rows} == {process["pid"]}
    assert int(process["parent_pid"]) == os.getpid()


def test_threads(recorder):
    recorder.run("--threads", 4, "--steps", 3, "--prefill-ms", 1, "--step-ms", 1)
    by_thread = collections.defaultdict(list)
    for row in recorder.read("ranges"):
        by_thread[row["tid"]].append(row)
    assert len(by_thread) == 4
    assert all(names(rows) == request(3) for rows in by_thread.values())


def test_kinds(recorder):
    recorder.run("--start-end", "--unregistered", "--steps", 3)
    rows = recorder.read("ranges")
    assert names(rows) == request(3) and {row["kind"] for row in rows} == {"start_end"}


def test_children(recorder):
    """A forked child leaves its own ranges and none of its parent's; so does a newly started program, or one started by exec."""
    recorder.run("--fork", "--spawn", "--exec", "--steps", 3)
    processes = recorder.processes()
    assert [row["ranges"] for row in processes] == ["6", "6", "23", "23"], processes
    parent, forked, spawned, executed = (row["pid"] for row in processes)
    assert parent == executed and len({parent, forked, spawned}) == 3
    assert processes[1]["parent_pid"] == processes[2]["parent_pid"] == parent
    rows = recorder.read("ranges")
    assert names(row for row in rows if row["pid"] == forked) == request(3)
    assert all(row["tid"] == row["pid"] for row in rows)


def test_ends(recorder):
    for options, code in ((["--_exit", "--exit", 3], 3), (["--segfault"], -signal.SIGSEGV), (["--exit", 4], 4)):
        assert recorder.run("--steps", 2, *options).returncode == code
    assert [row["ranges"] for row in recorder.processes()] == ["5"] * 3


def test_nothing_marked(recorder):
    assert recorder.run("--no-ranges").returncode == 0
    assert [row["ranges"] for row in recorder.processes()] == ["0"]


def test_kill(recorder):
    """SIGKILL in the middle: what was recorded is whole, and at most the range of the moment is open, by thread."""
    program = subprocess.Popen([recorder.arguments.workload, "--bench", "100000000", "--threads", "2"],
                               env=recorder.environment, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while sum(file.stat().st_size for file in recorder.directory.glob("*.nvtx")) < 10_000_000:
        assert time.monotonic() < deadline and program.poll() is None
        time.sleep(0.01)
    program.kill()
    assert program.wait() == -signal.SIGKILL
    rows = recorder.read("ranges")
    assert len(rows) > 200_000
    by_thread = collections.defaultdict(list)
    for row in rows:
        assert row["domain"] == "LLM" and row["name"] == "decode_step", row
        by_thread[row["tid"]].append(row)
    assert len(by_thread) == 2
    for thread in by_thread.values():
        # The payload counts: none is missing, none twice, and their order is that of time.
        assert [int(row["payload"]) for row in thread] == list(range(len(thread)))
        assert sum(row["end_ns"] == "" for row in thread) <= 1
        assert all(int(a["end_ns"]) <= int(b["start_ns"]) for a, b in zip(thread, thread[1:]))
    recorder.processes()


def test_none_lost(recorder):
    assert recorder.run("--bench", 1_000_000, "--threads", 4).returncode == 0
    (process, ) = recorder.processes()
    assert process["ranges"] == "4000000" and process["lost"] == "0", process


def test_file_limit(recorder):
    """A limit on file sizes would be answered with SIGXFSZ; the library stops before it."""
    limit = 1_000_000
    result = recorder.run("--bench", 100_000,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert result.returncode == 0, result
    (process, ) = recorder.processes()
    assert 0 < int(process["ranges"]) < 40_000 and int(process["ranges"]) + int(process["lost"]) == 100_000, process
    assert all(file.stat().st_size <= limit for file in recorder.directory.glob("*.nvtx"))


def test_own_limit(recorder):
    recorder.environment["GPUWHY_NVTX_MAX_BYTES"] = "500000"
    assert recorder.run("--bench", 100_000).returncode == 0
    (process, ) = recorder.processes()
    assert int(process["ranges"]) > 0 and int(process["ranges"]) + int(process["lost"]) == 100_000, process


def test_address_space_limit(recorder):
    """Less address space than the file may take: it takes what there is."""
    limit = 600 << 20
    result = recorder.run("--bench", 1000, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert result.returncode == 0, result
    assert [row["ranges"] for row in recorder.processes()] == ["1000"]


def test_full_disk(recorder):
    if os.geteuid() != 0:
        return "a disk of its own needs root"
    disk = recorder.directory / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], capture_output=True)
    if mounted.returncode != 0:
        return "a disk of its own cannot be mounted here"
    try:
        recorder.directory = disk
        recorder.environment["GPUWHY_NVTX_DIR"] = str(disk)
        assert recorder.run("--bench", 200_000, "--threads", 2).returncode == 0
        (process, ) = recorder.processes()
        assert 0 < int(process["ranges"]) < 40_000, process
        assert int(process["ranges"]) + int(process["lost"]) == 400_000, process
        # No room even for a header: no file, and the program does not notice.
        (disk / "filler").write_bytes(b"")
        with open(disk / "filler", "ab", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)):
                    pass
            except OSError:
                pass
        assert recorder.run("--bench", 1000).returncode == 0
        assert len(recorder.processes()) == 1
    finally:
        subprocess.run(["umount", disk], check=True)
    return None


def test_no_directory(recorder):
    """Nowhere to write: the program runs as if there were no library."""
    file = recorder.directory / "file"
    file.write_text("")
    for place in (recorder.directory / "absent", file, "", "/proc", None):
        recorder.environment["GPUWHY_NVTX_DIR"] = str(place)
        if place is None:
            del recorder.environment["GPUWHY_NVTX_DIR"]
        result = recorder.run("--bench", 1000, "--exit", 5)
        assert result.returncode == 5 and not result.stderr, (place, result)
    assert recorder.processes() == []


def test_relative_directory(recorder):
    recorder.environment["GPUWHY_NVTX_DIR"] = recorder.directory.name
    assert recorder.run("--steps", 2, cwd=recorder.directory.parent).returncode == 0
    assert [row["ranges"] for row in recorder.processes()] == ["5"]


def test_probe(recorder):
    """Every way of calling NVTX, and some that no program should try."""
    result = recorder.run(recorder.arguments.probe_library, program=recorder.arguments.probe)
    assert result.returncode == 0, result
    parent, child, *busy = recorder.processes()
    assert len(busy) == 50 and all(row["ranges"] == "10" and row["lost"] == "0" for row in busy), busy
    assert child["unmatched_pops"] == "1" and child["ranges"] == "1", child
    assert parent["unmatched_pops"] == "1", parent
    rows = [row for row in recorder.read("ranges") if row["name"] != "busy"]
    found = names(row for row in rows if row["pid"] == parent["pid"])
    assert all(found.pop(("", f"name {i:04}")) == 2 for i in range(2000))
    deep = found.pop(("", "deep"))
    assert 8_000 < deep < 70_000 and deep + int(parent["lost"]) == 70_000, (deep, parent)
    assert found == {("", "outer"): 1, ("", "wide é 😀"): 1, ("", "one"): 1, ("", "two"): 1, ("", "x" * 4000): 1,
                     ("", ""): 4, ("wide domain", "wide registered"): 1, ("", "payload"): 4,
                     ("probe a", "interleaved"): 1, ("probe b", "interleaved"): 1, ("probe", "second copy"): 1,
                     ("", "around the fork"): 1, ("", "started before the fork"): 1,
                     ("", "ended by another thread"): 1, ("", "short thread"): 3000, ("", "after the deep"): 1}, found
    assert names(row for row in rows if row["pid"] == child["pid"]) == {("", "in the child"): 1}
    assert all(row["end_ns"] for row in rows), "all were ended"
    assert [row["payload"] for row in rows if row["name"] == "payload"] == ["0.25", "-5", "1.8446744073709552e+19", ""]
    (a, ), (b, ) = (times([row for row in rows if row["domain"] == domain], "interleaved")
                    for domain in ("probe a", "probe b"))
    assert a[0] <= b[0] and b[1] - a[1] >= 2 * MS
    assert len({row["tid"] for row in rows if row["name"] == "short thread"}) > 1
    # Threads that end leave the rest of their chunk to the next.
    (file, ) = recorder.directory.glob(f"{parent['pid']}.*.nvtx")
    assert file.stat().st_size < 32 * len(rows) + 4_000_000


def test_python(recorder):
    """A Python program and NVTX 2 as a shared library, as PyTorch has used it."""
    script = """if True:
        import ctypes, sys
        nvtx = ctypes.CDLL(sys.argv[1])
        assert nvtx.nvtxRangePushA(b"prefill") == 0 and nvtx.nvtxRangePushA(b"layer 1") == 1
        assert nvtx.nvtxRangePop() == 1 and nvtx.nvtxRangePop() == 0
        """
    try:
        ctypes.CDLL("libnvToolsExt.so.1")
    except OSError:
        return "libnvToolsExt.so.1 is not installed"
    result = recorder.run("-c", script, "libnvToolsExt.so.1", program=sys.executable)
    assert result.returncode == 0, result
    assert names(recorder.read("ranges")) == {("", "prefill"): 1, ("", "layer 1"): 1}
    return None


def test_library(recorder):
    """It needs the C library alone, of 2013 or later, and shows one name."""
    if not shutil.which("readelf"):
        return "readelf is not installed"
    output = subprocess.run(["readelf", "-W", "-d", "--dyn-syms", recorder.environment["NVTX_INJECTION64_PATH"]],
                            capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"Shared library: \[(.*?)\]", output))
    assert needed <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, needed
    versions = {tuple(map(int, version.split("."))) for version in re.findall(r"@GLIBC_([\d.]+)", output)}
    assert max(versions) <= (2, 18), versions
    shown = re.findall(r" (?:GLOBAL|WEAK) +DEFAULT +\d+ (\S+)", output)
    assert shown == ["InitializeInjectionNvtx2"], shown
    return None


def main():
    arguments = testing.arguments()
    if "nvtx yes" not in subprocess.run([arguments.workload, "--no-ranges"], capture_output=True, text=True).stdout:
        testing.skip("built without NVTX's headers (tools/install-deps.sh nsight)")
    with tempfile.TemporaryDirectory() as temporary:
        library = subprocess.run([arguments.read_ranges, "library", temporary], capture_output=True, text=True,
                                 check=True).stdout.strip()
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                directory = pathlib.Path(temporary) / name
                directory.mkdir()
                start = time.monotonic()
                left_out = test(Recorder(arguments, directory, library))
                print(f"{name}: {'left out: ' + left_out if left_out else 'ok'}, {time.monotonic() - start:.1f} s", flush=True)
                shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that libgpuwhy_nvtx.so could harm, bare and under it: the same output, the same end, and not much more memory."""
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

MIB = 1 << 20
# Whole tables of the library, one chunk of the file, and what the loader takes.
MOST_RESIDENT_BYTES = 8 * MIB
BYTES_PER_RANGE = 64


class Programs:
    def __init__(self, program, library, read_ranges, folder):
        self.program, self.library, self.read_ranges, self.folder = program, library, read_ranges, folder
        self.ranges = folder

    def run(self, name, number, is_timed, address_space=None):
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("NVTX_", "GPUWHY_"))}
        if is_timed:
            self.ranges = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            self.ranges.chmod(0o777)  # setuid: the file was made before
            environment |= {"NVTX_INJECTION64_PATH": str(self.library), "GPUWHY_NVTX_DIR": str(self.ranges)}

        def limit():
            if address_space:
                resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
        return subprocess.run([self.program, name, str(number)], env=environment, capture_output=True, text=True, timeout=200,
                              preexec_fn=limit)

    def both(self, name, number=0, **options):
        """Runs a program bare and timed, and compares. Returns both results."""
        bare, timed = self.run(name, number, False, **options), self.run(name, number, True, **options)
        assert (timed.returncode, timed.stdout) == (bare.returncode, bare.stdout), (name, bare, timed)
        return bare, timed

    def recorded(self):
        """Ranges and lost ranges of the last timed program, over its processes; nothing where a file is no longer one."""
        result = subprocess.run([self.read_ranges, "processes", self.ranges], capture_output=True, text=True, timeout=120)
        lines = [line.split(",") for line in result.stdout.splitlines()]
        rows = [dict(zip(lines[0], line)) for line in lines[1:]] if lines else []
        return sum(int(row["ranges"]) for row in rows), sum(int(row["lost"]) for row in rows), result.stderr


def kib(result, name):
    return int(re.search(rf"{name}:\s+(\d+) kB", result.stderr).group(1)) << 10


def main():
    arguments = testing.arguments()
    if not arguments.harm:
        testing.skip("no NVTX here to build the programs with")
    with testing.scratch() as folder:
        folder.chmod(0o755)
        library = pathlib.Path(arguments.program).parent / "libgpuwhy_nvtx.so"
        programs = Programs(arguments.harm, library, arguments.read_ranges, folder)

        # A program that needs most of its address space gets it, down to little more than it needs.
        needed = kib(programs.run("ranges", 1, False), "VmPeak") + 40 * 32 * MIB
        for room in (needed * 9 // 8, 1_500_000 << 10, 2 << 30):
            bare, _ = programs.both("allocate", address_space=room)
            print(f"allocate, {room / MIB:.0f} MiB of address space: {bare.stdout.strip()}; recorded, lost: {programs.recorded()[:2]}")
        assert programs.recorded()[0] == 40_010, programs.recorded()

        # Killed for opening a file: a child needs one of its own, so it is recorded only where no filter was set before its first range.
        bare, _ = programs.both("filter")
        print(f"filter: {bare.stdout.strip()}, {programs.recorded()[0]} ranges")
        assert programs.recorded()[0] == 1000 + 20_010 + 8 * 20_000, programs.recorded()
        bare, _ = programs.both("sandbox")
        ranges, lost, _ = programs.recorded()
        print(f"sandbox: {bare.stdout.strip()}, {ranges} ranges, {lost} lost")
        assert ranges + lost == 100_010 and lost > 0, (ranges, lost)
        bare, _ = programs.both("few")
        print(f"few descriptors: {bare.stdout.strip()}")
        assert programs.recorded()[:2] == (100_000, 0), programs.recorded()

        for threads in (1000, 12_000, 100_000):
            bare, timed = programs.both("keys", threads)
            more = {name: kib(timed, name) - kib(bare, name) for name in ("VmPeak", "VmHWM")}
            print(f"keys, {threads} threads: {more['VmPeak'] / MIB:.1f} MiB more address space, {more['VmHWM'] / MIB:.1f} MiB more memory")
            assert more["VmHWM"] <= MOST_RESIDENT_BYTES + 2 * threads * BYTES_PER_RANGE, more
            assert more["VmPeak"] <= 128 * MIB, more
            ranges, lost, _ = programs.recorded()
            assert ranges >= threads and ranges + lost >= 2 * threads, (ranges, lost)

        programs.both("truncate")
        recorded = programs.recorded()
        assert recorded[0] < 1000, recorded  # and the file says that it is cut
        print("truncate: the program does not notice")
        for name in ("bus_error", "bus_signal", "close_all", "children", "setuid"):
            bare, _ = programs.both(name)
            print(f"{name}: exit {bare.returncode}, {bare.stdout.strip().splitlines()[-1]}")
            assert name != "children" or programs.recorded()[:2] == (10 + 20 * (1000 + 100) + 1000, 0), programs.recorded()
        assert programs.both("bus_signal")[0].returncode == -7

        ranges = 10_000_000
        bare, timed = programs.both("ranges", ranges)
        more = kib(timed, "VmHWM") - kib(bare, "VmHWM")
        print(f"{ranges} ranges: {more / MIB:.1f} MiB more memory, {more / ranges:.1f} bytes a range")
        assert more <= MOST_RESIDENT_BYTES + ranges * BYTES_PER_RANGE, more
        assert programs.recorded()[:2] == (ranges, 0), programs.recorded()

        # A static program would load a second C library with the timer: it runs without it.
        static = Programs(arguments.static_harm, library, arguments.read_ranges, folder)
        for name in ("ranges", "keys", "filter", "sandbox", "children", "setuid"):
            bare, _ = static.both(name, 1000)
            assert not any(static.ranges.iterdir())
            print(f"static, {name}: exit {bare.returncode}, {bare.stdout.strip().splitlines()[-1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

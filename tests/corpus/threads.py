#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same metrics with 1, 2, 3 and 8 threads, byte by byte: of every recording, of the golden ones and of generated ones with
several GPUs. --generated N makes as many as one has time for."""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing
from recording import GOLDEN, make_sqlite

THREADS = (1, 2, 3, 8)


def answers(program, path, threads):
    result = subprocess.run([program, "analyze", path, "--json", "--threads", str(threads)], capture_output=True, timeout=300)
    return result.returncode, result.stdout, result.stderr


def check(program, path):
    """Returns whether the recording could be read: an error must not depend on the number of threads either."""
    code, out, err = answers(program, path, THREADS[0])
    for threads in THREADS[1:]:
        assert answers(program, path, threads) == (code, out, err), f"{path}: {threads} threads give another answer"
    return code == 0


def main():
    arguments = testing.arguments("program", "corpus", generated=12)
    paths = sorted(path for path in arguments.corpus.rglob("*")
                   if path.suffix in (".sqlite", ".json", ".gz") and path.is_file() and path.stat().st_size < 60e6)
    num_read = sum(check(arguments.program, path) for path in paths)
    print(f"{num_read} of {len(paths)} files of the corpus are recordings: the same with {THREADS} threads")
    with testing.scratch() as directory:
        sources = sorted(GOLDEN.glob("analyze-*/*.sqlite.sql"))
        for number, source in enumerate(sources):
            path = directory / f"{number}.sqlite"
            make_sqlite(source, path)
            assert check(arguments.program, path) or "not-nsys" in str(source) or "empty" in str(source), source
        make_trace = pathlib.Path(arguments.program).parent / "gpuwhy_make_trace"
        for seed in range(arguments.generated if make_trace.exists() else 0):
            processes = 1 + seed % 3
            path = directory / "made.sqlite"
            subprocess.run([make_trace, path, str(500 + 137 * (seed % 20)), "--processes", str(processes), "--shuffle", str(seed)],
                           check=True, stdout=subprocess.DEVNULL)
            assert check(arguments.program, path)
            path.unlink()
        print(f"{len(sources)} golden and {arguments.generated} generated recordings: the same")
    return 0 if paths else 77


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library and the program agree, byte for byte, on every recording.

Each recording of tests/golden, and of the corpus where it is there, is read by `gpuwhy analyze --json` and by a
program linked against libgpuwhy. Both print the same metrics, or refuse the file with the same sentence.
"""
import pathlib
import subprocess
import sys
import tempfile

import testing
from recording import GOLDEN, make_recording

FORMATS = ("nsys_sqlite", "nsys_rep", "nsys_csv", "kineto")


def golden_recordings(directory):
    for sql in sorted(GOLDEN.glob("*/*.sqlite.sql")):
        path = directory / f"{sql.parent.name}-{sql.name.removesuffix('.sql')}"
        yield make_recording(path, sql.parent.name, sql.name)
    for pattern in ("*/*.json.gz", "*/trace.json", "*/*.csv"):
        yield from sorted(GOLDEN.glob(pattern))


def corpus_recordings(corpus):
    for folder in FORMATS:
        yield from sorted(path for path in (corpus / folder).rglob("*") if path.is_file())


def printed(command):
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return result.returncode == 0, result.stdout, result.stderr


def main():
    options = testing.arguments("program", "consumer", "corpus")
    num_equal = num_refused = 0
    with tempfile.TemporaryDirectory() as temporary:
        paths = list(golden_recordings(pathlib.Path(temporary)))
        has_corpus = options.corpus.is_dir()
        paths += corpus_recordings(options.corpus) if has_corpus else []
        for path in paths:
            is_read, program, message = printed([options.program, "analyze", "--json", str(path)])
            is_read_too, library, sentence = printed([options.consumer, str(path)])
            if is_read != is_read_too or program != library:
                sys.exit(f"{path}: the library differs from the program\n{message}{sentence}")
            if not is_read and sentence.splitlines()[0] not in message:
                sys.exit(f"{path}: refused as {message!r} by the program, as {sentence!r} by the library")
            num_equal += is_read
            num_refused += not is_read
    print(f"{num_equal} recordings with equal metrics, {num_refused} refused alike"
          f"{'' if has_corpus else '; without the corpus'}")
    if num_equal < 10:
        sys.exit("too few recordings were read to prove anything")


if __name__ == "__main__":
    main()

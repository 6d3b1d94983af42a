#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A build without a history server (GPUWHY_HISTORY=OFF): CMake finds and links no libcurl, `merge` and questions to a folder
work, and whatever needs a server says what is missing."""
import pathlib
import subprocess
import sys
import tempfile

import testing


def run(*argv, code=0):
    result = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=120)
    assert result.returncode == code, (argv, result.returncode, result.stdout[-2000:], result.stderr[-2000:])
    return result.stdout + result.stderr


def check_configuration(source, folder):
    run("cmake", "-S", source, "-B", folder, "-G", "Ninja", "-DGPUWHY_HISTORY=OFF", "-DBUILD_TESTING=OFF", "-DGPUWHY_WITH_LLAMA=OFF")
    rules = (folder / "build.ninja").read_text()
    assert "libcurl" not in rules and "http_none.cc" in rules and "net/http.cc" not in rules


def check_program(program, make_ranks, folder):
    assert "libcurl" not in run("ldd", program)
    run(make_ranks, folder, "4")
    run(program, "merge", folder)
    run(program, "fleet", "status", "--to", folder)
    server = ("--to", "http://127.0.0.1:9")
    for words in (("init",), ("push", folder), ("sql", "SELECT 1"), ("status",), ("top",)):
        said = run(program, "fleet", *words, *server, code=5)
        assert "this build of gpuwhy cannot talk to servers" in said, (words, said)


def main():
    arguments = testing.arguments("source", "program", "make-ranks")
    with tempfile.TemporaryDirectory() as temporary:
        check_configuration(arguments.source, pathlib.Path(temporary) / "build")
        check_program(arguments.program, arguments.make_ranks, pathlib.Path(temporary) / "ranks")
    return 0


if __name__ == "__main__":
    sys.exit(main())

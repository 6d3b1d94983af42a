#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipe for a new format (docs/adding.md), followed: the lines of its diff and contrib/toy/toy.cc are all that the
reader needs to know a format it did not know before. Builds a copy of the readers alone, in half a minute."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

ROOT = pathlib.Path(__file__).resolve().parents[2]


def recipe():
    """(file, line that is there, line to add behind it) of the diff in docs/adding.md."""
    diff = re.search(r"```diff\n(.*?)```", (ROOT / "docs/adding.md").read_text(), re.S)[1]
    steps = re.findall(r"^\+\+\+ (\S+)\n (.*)\n\+(.*)\n", diff, re.M)
    assert len(steps) == len(re.findall(r"^[+-](?![+-])", diff, re.M)) == 2, f"not two lines: {diff}"
    return steps


def follow(steps, copy):
    for path, known, added in steps:
        lines = (copy / path).read_text().split("\n")
        assert lines.count(known) == 1, f"{path} has {lines.count(known)} lines {known!r}"
        lines.insert(lines.index(known) + 1, added)
        (copy / path).write_text("\n".join(lines))


def run(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def main():
    if not shutil.which("cmake") or not shutil.which("ninja"):
        testing.skip("needs cmake and ninja")
    with tempfile.TemporaryDirectory() as temporary:
        copy = pathlib.Path(temporary) / "gpuwhy"
        shutil.copytree(ROOT, copy, ignore=lambda folder, names: {
            name for name in names if name in (".git", "build", "tmp", "tests", "docs", "bench", "__pycache__")})
        follow(recipe(), copy)
        with (copy / "CMakeLists.txt").open("a") as file:
            file.write("add_subdirectory(contrib/toy)\n")
        build = copy / "build"
        run("cmake", "-S", copy, "-B", build, "-G", "Ninja", "-DBUILD_TESTING=OFF", "-DGPUWHY_WITH_LLAMA=OFF",
            "-DGPUWHY_WERROR=ON", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DCMAKE_UNITY_BUILD=ON",
            "-DCMAKE_UNITY_BUILD_BATCH_SIZE=16")
        run("cmake", "--build", build, "--target", "gpuwhy_toy_reader")
        trace = pathlib.Path(temporary) / "run.toy"
        trace.write_text("toy trace 1\ngemm 100 200\nsoftmax 250 300\n")
        said = run(build / "contrib/toy/gpuwhy_toy_reader", trace).splitlines()
        assert said[0] == "text file of the toy profiler: 2 kernels", said
        assert said[1].endswith("trace of PyTorch's profiler, text file of the toy profiler"), said
    print("a format in one file and two lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())

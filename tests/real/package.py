#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of the installation and packages: the library used by another project, its exported names, and the Debian package. Where that
cannot be made, all else is checked and the test still counts as skipped, not as passed."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing
from recording import make_recording  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The library's interface. A name that goes, or whose arguments change, is a new major version (before 1.0: minor).
SYMBOLS = """gpuwhy::api::Error::~Error()
gpuwhy::api::decode_cost(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&, long, long)
gpuwhy::api::model_facts(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)
gpuwhy::api::prefill_cost(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&, long, long)
gpuwhy::api::read_recording(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)
gpuwhy::api::read_recording(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&, std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)
gpuwhy::api::version()
typeinfo for gpuwhy::api::Error
typeinfo name for gpuwhy::api::Error
vtable for gpuwhy::api::Error""".splitlines()


# What its headers are, and what they may want: the standard library, NVTX, and each other.
HEADERS = {"c.h", "error.h", "model.h", "nvtx.h", "recording.h"}
WANTED = {"stdint.h", "stddef.h", "cstdint", "optional", "stdexcept", "string", "utility", "vector", "nvtx3/nvToolsExt.h"} | {f"gpuwhy/{name}" for name in HEADERS}


def run(*words, **more):  # the slowest builds the static program
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=800, **more)
    assert result.returncode == 0, (words, result.returncode, result.stdout[-2000:], result.stderr[-2000:])
    return result.stdout


def check_symbols(library):
    listed = run("nm", "-DC", "--defined-only", library).splitlines()
    names = {re.sub(r"@@?GPUWHY_\d+$", "", line.split(" ", 2)[2]) for line in listed}
    names -= {"GPUWHY_0"}
    # Of the C interface, those that its header declares.
    declared = set(re.findall(r"\b(gpuwhy_\w+)\(", (ROOT / "include/gpuwhy/c.h").read_text()))
    assert declared, "no function in c.h"
    assert names == set(SYMBOLS) | declared, names ^ (set(SYMBOLS) | declared)


def check_headers(prefix):
    headers = {path.name: path.read_text() for path in (prefix / "include/gpuwhy").iterdir()}
    assert headers.keys() == HEADERS, headers.keys() ^ HEADERS
    for header, text in headers.items():
        wanted = set(re.findall(r"#\s*include\s*[<\"]([^>\"]+)", text))
        assert wanted and wanted <= WANTED, f"{header} wants {wanted - WANTED}"


def check_consumer(program, prefix, folder):
    recording = make_recording(folder / "run.sqlite")
    run("cmake", "-S", ROOT / "examples/consumer", "-B", folder / "consumer", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", folder / "consumer")
    # By pkg-config alone, without cmake.
    package = {**os.environ, "PKG_CONFIG_PATH": str(next(prefix.rglob("pkgconfig")))}
    flags = run("pkg-config", f"--define-variable=prefix={prefix}", "--cflags", "--libs", "gpuwhy", env=package).split()
    flags = [flag.replace("/usr/local", str(prefix)) for flag in flags]
    library = next(prefix.rglob("libgpuwhy.so"))
    run("c++", ROOT / "examples/consumer/main.cc", "-o", folder / "plain", *flags, f"-Wl,-rpath,{library.parent}")
    metrics = json.loads(run(program, "analyze", recording, "--json"))
    truth = [f"{row['total_ns']} {row['calls']} {row['kernel_name']}" for row in metrics["kernels"]]
    for made in (folder / "consumer/consumer", folder / "plain"):
        out = run(made, recording).splitlines()
        assert out[1:] == truth, (out, truth)
    failed = subprocess.run([folder / "plain", folder / "nothing"], capture_output=True, text=True)
    assert failed.returncode == 1 and "consumer:" in failed.stderr, failed
    check_symbols(library)


def make_debian(build, folder):
    if not shutil.which("lintian") or not shutil.which("cpack"):
        print("skipped: lintian or cpack is not here, so that the Debian package was not made")
        return None
    run("cpack", "-G", "DEB", "--config", build / "CPackConfig.cmake", "-B", folder / "deb", cwd=folder)
    package = next((folder / "deb").glob("*.deb"))
    told = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", package], capture_output=True, text=True)
    assert told.returncode == 0, told.stdout
    files = run("dpkg-deb", "-c", package)
    for wanted in ("usr/bin/gpuwhy", "man1/gpuwhy.1.gz", "completions/gpuwhy", "libgpuwhy.so.0", "gpuwhy-config.cmake"):
        assert wanted in files, f"{wanted} is not in the package"
    print(f"{package.name}: {package.stat().st_size / 1e6:.1f} MB, lintian: {told.stdout.count('W:')} warnings, 0 errors")
    return package


def main():
    asked = testing.arguments("program")
    build = pathlib.Path(asked.program).resolve().parent
    if "Debug" in run(asked.program, "--version"):
        testing.skip("packages are made of release builds")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuwhy-package-"))
    try:
        prefix = folder / "prefix"
        run("cmake", "--install", build, "--prefix", prefix)
        for file in ("share/man/man1/gpuwhy.1.gz", "share/bash-completion/completions/gpuwhy", "bin/gpuwhy",
                     "share/gpuwhy/skills/gpuwhy/SKILL.md"):
            assert (prefix / file).stat().st_size > 1000, file
        check_headers(prefix)
        check_consumer(prefix / "bin/gpuwhy", prefix, folder)
        return 0 if make_debian(build, folder) else 77
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())

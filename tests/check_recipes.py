#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checker of the recipes in packaging/: dependencies and version must be those of CMakeLists.txt.

The recipes cannot be run here (packaging/README.md), so that one which misses a library would be noticed by users only. The Debian
package finds its libraries by itself, and its build dependencies are in tools/install-deps.sh.
"""
import json
import pathlib
import re
import shutil
import sys
import tempfile
import tomllib

from violations import main

CONDA, PIXI, VCPKG = "packaging/conda/meta.yaml", "packaging/pixi.toml", "packaging/vcpkg.json"
DEBIAN, CHANGELOG = "tools/install-deps.sh", "packaging/debian/changelog"

# What CMake calls it: conda and pixi, vcpkg, Debian. None: the compiler brings it.
NAMES = {"CLI11": ("cli11", "cli11", "libcli11-dev"),
         "CURL": ("libcurl", "curl", "libcurl4-openssl-dev"),
         "fmt": ("fmt", "fmt", "libfmt-dev"),
         "nlohmann_json": ("nlohmann_json", "nlohmann-json", "nlohmann-json3-dev"),
         "OpenSSL": ("openssl", "openssl", "libssl-dev"),
         "protozero": ("protozero", "protozero", "libprotozero-dev"),
         "simdjson": ("simdjson", "simdjson", "libsimdjson-dev"),
         "SQLite3": ("sqlite", "sqlite3", "libsqlite3-dev"),
         "Threads": None,
         "yaml-cpp": ("yaml-cpp", "yaml-cpp", "libyaml-cpp-dev"),
         "ZLIB": ("zlib", "zlib", "zlib1g-dev")}
# What the recipes list besides: tools.
TOOLS = {"cmake", "cxx-compiler", "ninja"}


def wanted_libraries(cmake):
    """Every find_package(... REQUIRED), and every find_path of headers alone."""
    return re.findall(r"^ *find_package\(([\w-]+)[^)]*\bREQUIRED\b", cmake, re.M) + re.findall(
        r"^find_path\(\w+ (\w+)/\S+ REQUIRED\)", cmake, re.M)


def words_of(text, pattern):
    match = re.search(pattern, text, re.M | re.S)
    return set(re.split(r"[\s,]+", re.sub(r"#[^\n]*", "", match[1]).strip())) if match else set()


def violations(source):
    def read(name):
        return (source / name).read_text()

    cmake, conda, pixi, vcpkg = read("CMakeLists.txt"), read(CONDA), tomllib.loads(read(PIXI)), json.loads(read(VCPKG))
    listed = {CONDA: (0, words_of(conda, r"^  host: \[([^\]]*)\]")), PIXI: (0, set(pixi["dependencies"]) - TOOLS),
              VCPKG: (1, set(vcpkg["dependencies"])), DEBIAN: (2, words_of(read(DEBIAN), r"^build_packages=\((.*?)^\)"))}
    libraries = wanted_libraries(cmake)
    found = [f"CMakeLists.txt wants {name}, which {pathlib.Path(__file__).name} does not know" for name in libraries if name not in NAMES]
    known = [NAMES[name] for name in libraries if NAMES.get(name)]
    for recipe, (column, names) in listed.items():
        wanted = {row[column] for row in known}
        found += [f"{recipe} lacks {name}" for name in sorted(wanted - names)]
        if recipe != DEBIAN:  # which has much besides, for tests
            found += [f"{recipe} lists {name}, which CMakeLists.txt does not want" for name in sorted(names - wanted)]
    version = re.search(r"^project\(gpuwhy VERSION (\S+)", cmake, re.M)[1]
    versions = {CONDA: re.search(r'^  version: "([^"]+)"', conda, re.M)[1], PIXI: pixi["workspace"]["version"],
                VCPKG: vcpkg["version"], CHANGELOG: re.match(r"gpuwhy \(([^)]+)\)", read(CHANGELOG))[1]}
    found += [f"{recipe} is of version {one}, CMakeLists.txt of {version}" for recipe, one in versions.items() if one != version]
    for name, task in pixi["tasks"].items():
        if not isinstance(task, dict) or task.get("cwd") != "..":
            found.append(f"{PIXI}: task {name} does not start beside CMakeLists.txt")
    if "-DBUILD_TESTING=OFF" not in str(pixi["tasks"].get("build")) or "-DBUILD_TESTING=OFF" not in conda:
        found.append("a recipe builds the tests, which want more than it lists")
    return found


# File, what is replaced, by what, and what must be said of it.
PLANTS = [("CMakeLists.txt", "find_package(CURL REQUIRED)", "find_package(CURL REQUIRED)\nfind_package(Snappy REQUIRED)", "does not know"),
          ("CMakeLists.txt", "VERSION 0.", "VERSION 7.", "is of version"),
          (CONDA, "libcurl, ", "", "lacks libcurl"),
          (PIXI, 'libcurl = "*"\n', "", "lacks libcurl"),
          (VCPKG, '"curl", ', "", "lacks curl"),
          (DEBIAN, "libcurl4-openssl-dev ", "", "lacks libcurl4-openssl-dev"),
          (VCPKG, '"curl", ', '"curl", "boost", ', "does not want"),
          (CONDA, 'version: "0.', 'version: "7.', "is of version 7."),
          (PIXI, '\nversion = "0.', '\nversion = "7.', "is of version 7."),
          (VCPKG, '"version": "0.', '"version": "7.', "is of version 7."),
          (CHANGELOG, "gpuwhy (0.", "gpuwhy (7.", "is of version 7."),
          (PIXI, 'gpuwhy doctor", cwd = ".."', 'gpuwhy doctor"', "does not start"),
          (PIXI, " -DBUILD_TESTING=OFF", "", "builds the tests")]


def self_test(source):
    """Plants one fault at a time into a copy and wants each to be found."""
    for path, old, new, expected in PLANTS:
        with tempfile.TemporaryDirectory() as temporary:
            copy = pathlib.Path(temporary)
            for name in ("CMakeLists.txt", CONDA, PIXI, VCPKG, DEBIAN, CHANGELOG):
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source / name, copy / name)
            text = (copy / path).read_text()
            assert old in text, f"{old!r} is not in {path}"
            (copy / path).write_text(text.replace(old, new, 1))
            found = violations(copy)
            assert found and all(expected in line for line in found), (path, old, new, found)
    print(f"{len(PLANTS)} planted faults found")


if __name__ == "__main__":
    sys.exit(main(violations, self_test))

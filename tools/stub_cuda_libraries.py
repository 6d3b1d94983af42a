#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Empty stand-ins for the CUDA libraries that a torch wheel is linked against, for a machine without a GPU.

    tools/stub_cuda_libraries.py SITE_PACKAGES/torch/lib

The wheel of the plain package index needs gigabytes of CUDA libraries before `import torch` works, also where all work is on
the CPU. This makes a library of each missing name, with the symbols that torch's own libraries want of it, beside them. Every
function returns 1, an error; none is called before a GPU is used. Real libraries that are there are left alone.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

OF_CUDA = re.compile(r"^_*(cu|nv|nccl)", re.IGNORECASE)


def readelf(*words):
    return subprocess.run(["readelf", "-W", *words], capture_output=True, text=True, check=True).stdout


def needs(path):
    """Libraries one library names, and the symbols it wants: (symbol, version or "", is data)."""
    names = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", path))
    symbols = set()
    for line in readelf("--dyn-syms", path).splitlines():
        words = line.split()
        if len(words) > 7 and words[6] == "UND" and words[4] == "GLOBAL" and OF_CUDA.match(words[7]):
            name, _, version = words[7].partition("@")
            symbols.add((name, version.lstrip("@"), words[3] == "OBJECT"))
    versions = {}
    file = None
    for line in readelf("-V", path).splitlines():
        if found := re.search(r"Version: 1\s+File: (\S+)", line):
            file = found.group(1)
        elif file and (found := re.search(r"Name: (\S+)\s+Flags", line)):
            versions[found.group(1)] = file
    return names, symbols, versions


def is_found(folder, name):
    """By the loader's own search, or among packages of CUDA libraries beside torch."""
    if any((folder.parent.parent / "nvidia").rglob(name)):
        return True
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
    return f"\t{name} " in listed


def make(folder, name, symbols):
    by_version = {}
    for symbol, version, is_data in sorted(symbols):
        by_version.setdefault(version, []).append((symbol, is_data))
    lines, script = [], []
    for version, rows in by_version.items():
        lines += [f"char {s}[64];" if is_data else f"int {s}(void) {{ return 1; }}" for s, is_data in rows]
        if version:
            script.append(f"{version} {{ global: {' '.join(s + ';' for s, _ in rows)} }};")
    with tempfile.TemporaryDirectory() as scratch:
        source, versions = pathlib.Path(scratch) / "stub.c", pathlib.Path(scratch) / "stub.map"
        source.write_text("\n".join(lines) + "\n")
        versions.write_text("\n".join(script) + "\n")
        extra = [f"-Wl,--version-script={versions}"] if script else []
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{name}", *extra, "-o", folder / name, source],
                       check=True)


def main():
    folder = pathlib.Path(sys.argv[1])
    own = sorted(folder.glob("lib*.so*"))
    wanted, of_file = {}, {}
    for path in own:
        names, symbols, versions = needs(path)
        for name in names:
            if OF_CUDA.match(name.removeprefix("lib")) and not (folder / name).exists() and not is_found(folder, name):
                wanted.setdefault(name, set())
        for row in symbols:
            of_file.setdefault(versions.get(row[1], ""), set()).add(row)
    for name, rows in of_file.items():
        if name in wanted:
            wanted[name] |= rows
    # Where no version says whose they are, any library will do.
    if wanted:
        spare = "libnccl.so.2" if "libnccl.so.2" in wanted else sorted(wanted)[0]
        wanted[spare] |= {row for row in of_file.get("", ()) if not row[1]}
    for name, rows in sorted(wanted.items()):
        make(folder, name, rows)
        print(f"{name}: {len(rows)} symbols")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of secrets in the files of a failing nsys: one that cannot export, one that leaves its raw stream, one whose report contains a key.
The bundle of `llmprof run` must contain none."""
import argparse
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

KEY = "hf_" + "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0z"
LINE = "MIIEpAIBAAKCAQEA7bq2vX9"

# What `llmprof run` asks of nsys. EXPORT is done with $sqlite, PROFILE with $report.
NSYS = """#!/bin/sh
report= sqlite=
for word in "$@"; do case $word in --output=*) report=${word#--output=}; sqlite=$report;; esac; done
case "$1 $2" in
  --version*) echo "NVIDIA Nsight Systems version 2024.2.1.90-1";;
  "profile --help"|stats*) ;;
  profile*) PROFILE;;
  export*) EXPORT;;
esac
"""


class Bench:
    def __init__(self, program, folder, workload):
        self.program, self.folder, self.workload, self.count = program, folder, workload, 0

    def run(self, profile, export, *overrides, command=("/bin/true",)):
        """The files of the bundle, as {name: bytes}, and what was said."""
        self.count += 1
        place = self.folder / str(self.count)
        place.mkdir()
        nsys = place / "nsys"
        nsys.write_text(NSYS.replace("PROFILE", profile).replace("EXPORT", export))
        nsys.chmod(0o755)
        result = subprocess.run([self.program, "run", "--progress", "plain", f"artifacts.dir={place / 'runs'}", *overrides, "--", *command],
                                capture_output=True, text=True, timeout=120,
                                env={"PATH": os.environ["PATH"], "HOME": str(place), "TMPDIR": str(place), "LLMPROF_NSYS": str(nsys)})
        bundle = next((place / "runs").iterdir())
        return {str(path.relative_to(bundle)): path.read_bytes() for path in bundle.rglob("*") if path.is_file()}, result


def holders(files, secret=KEY):
    return sorted(name for name, contents in files.items() if secret.encode() in contents)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--workload", required=True)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        bench = Bench(asked.program, folder, asked.workload)
        clean_report = 'printf "\\\\0report of nothing" > "$report"'
        bad_report = f'printf "\\\\0HF_TOKEN={KEY}\\\\0" > "$report"'
        database = folder / "export.sqlite"
        connection = sqlite3.connect(database)
        connection.executescript("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        connection.execute("INSERT INTO StringIds VALUES (1, ?)", (f"token={KEY}",))
        connection.commit()
        connection.close()
        half = f'cp {database} "$sqlite"; exit 1'

        files, result = bench.run(bad_report, half)
        assert not holders(files) and "nsys/run.nsys-rep" not in files and "nsys/run.sqlite" not in files, (sorted(files), result)
        files, result = bench.run(clean_report, half)
        assert "nsys/run.nsys-rep" not in files and "left out" in result.stdout + result.stderr, (sorted(files), result)
        files, _ = bench.run(bad_report, half, "artifacts.keep_report=true")
        assert holders(files) == ["nsys/run.nsys-rep"] and "nsys/run.sqlite" not in files, sorted(files)
        files, _ = bench.run(clean_report, f'echo none > "$sqlite"')
        assert "nsys/run.sqlite" not in files, "an export that could not be cleaned was kept"

        raw = f'printf "\\\\1HF_TOKEN={KEY}\\\\0" > "$TMPDIR/one.qdstrm"; exit 1'
        files, result = bench.run(raw, "exit 1")
        assert not holders(files), (sorted(files), result)
        files, _ = bench.run(raw, "exit 1", "artifacts.keep_report=true")
        assert holders(files) == ["nsys/one.qdstrm"], sorted(files)
        files, _ = bench.run(raw.replace(KEY, "").replace("HF_TOKEN=", "nothing"), "exit 1")
        assert "nsys/one.qdstrm" in files, sorted(files)

        # A key of several lines in the log; names of ranges: "decode" is as long as "pwd=x1".
        script = f"printf -- '-----BEGIN PRIVATE KEY-----\\n{LINE}\\n-----END PRIVATE KEY-----\\nfine\\n'"
        files, _ = bench.run(clean_report, "exit 1", command=("/bin/sh", "-c", script))
        assert not holders(files, LINE) and b"fine" in files["baseline/log.txt"], files["baseline/log.txt"]
        script = f'{asked.workload}; sed -i s/decode/pwd=x1/g "$LLMPROF_NVTX_DIR"/*'
        files, _ = bench.run(clean_report, "exit 1", command=("/bin/sh", "-c", script))
        assert b"pwd=[scrubbed]" in files["baseline/ranges.csv"] and not holders(files, "pwd=x1"), files["baseline/ranges.csv"][:500]
    print("no bundle holds a key")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of secrets in the files of a failing nsys: one that cannot export, one that leaves its raw stream, one whose report contains a key.
The bundle of `gpuwhy run` must contain none."""
import os
import sqlite3
import subprocess
import sys

import testing

KEY = "hf_" + "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0z"
LINE = "MIIEpAIBAAKCAQEA7bq2vX9"

# What `gpuwhy run` asks of nsys. EXPORT is done with $sqlite, PROFILE with $report.
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

    def run(self, profile, export, *overrides, command=("/bin/true",), variables=None):
        """The files of the bundle, as {name: bytes}, and what was said."""
        self.count += 1
        place = self.folder / str(self.count)
        place.mkdir()
        nsys = place / "nsys"
        nsys.write_text(NSYS.replace("PROFILE", profile).replace("EXPORT", export))
        nsys.chmod(0o755)
        result = subprocess.run([self.program, "run", "--progress", "plain", f"artifacts.dir={place / 'runs'}", *overrides, "--", *command],
                                capture_output=True, text=True, timeout=120,
                                env={"PATH": os.environ["PATH"], "HOME": str(place), "TMPDIR": str(place), "GPUWHY_NSYS": str(nsys), **(variables or {})})
        bundle = next((place / "runs").iterdir())
        return {str(path.relative_to(bundle)): path.read_bytes() for path in bundle.rglob("*") if path.is_file()}, result


def holders(files, secret=KEY):
    return sorted(name for name, contents in files.items() if secret.encode() in contents)


def main():
    asked = testing.arguments("program", "workload")
    with testing.scratch() as folder:
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

        # A variable whose value spans lines, printed as it is, by one line, and escaped.
        value = "kind: service\n" + LINE + "\nQm9keU9mVGhlS2V5\n"
        script = 'echo "$SERVICE_CREDENTIALS"; printf "one line: %s\\n" Qm9keU9mVGhlS2V5; printf "%s" "$SERVICE_CREDENTIALS" | tr "\\n" "#"; echo fine'
        files, _ = bench.run(clean_report, "exit 1", command=("/bin/sh", "-c", script), variables={"SERVICE_CREDENTIALS": value})
        left = {secret: holders(files, secret) for secret in (LINE, "Qm9keU9mVGhlS2V5")}
        assert not any(left.values()), left
        assert b"fine" in files["baseline/log.txt"] and b"one line: " in files["baseline/log.txt"], files["baseline/log.txt"]

        # An environment of one variable, which has no NUL, and a value with a comma in it.
        connection = sqlite3.connect(database)
        connection.execute("DELETE FROM StringIds")
        connection.executemany("INSERT INTO StringIds VALUES (?, ?)", [(1, "DATABASE_CREDS=user:Zx81secret"), (2, "SVC_PASSWORD=first9,tail8second"),
                                                                       (3, "STEP=17,decode")])
        connection.commit()
        connection.close()
        files, _ = bench.run(clean_report, f'cp {database} "$sqlite"')
        assert not [secret for secret in ("Zx81secret", "first9", "tail8second") if holders(files, secret)], sorted(files)
        assert holders(files, "STEP=17,decode") == ["nsys/run.sqlite"], sorted(files)

        # A line of 200 MB costs a buffer.
        with (folder / "said").open("w") as said:
            process = subprocess.Popen([asked.program, "run", "--passes", "baseline", "--out", str(folder / "long"), "--", "sh", "-c",
                                        "head -c 200000000 /dev/zero | tr '\\0' a; echo; echo end"], stdout=said, stderr=said)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        (log, ) = (folder / "long").rglob("log.txt")
        assert log.read_text() == "[a line of more than 1 MiB]\nend\n", log.stat().st_size
        # Sanitizers keep what was freed: half of it may still be there.
        version = subprocess.run([asked.program, "--version"], capture_output=True, text=True).stdout
        most_kib = 500_000 if "address" in version else 100_000
        assert process.returncode == 0 and usage.ru_maxrss < most_kib, (process.returncode, usage.ru_maxrss)
        print(f"a line of 200 MB: {usage.ru_maxrss >> 10} MiB")

        # A key of several lines in the log; names of ranges: "decode" is as long as "pwd=x1".
        script = f"printf -- '-----BEGIN PRIVATE KEY-----\\n{LINE}\\n-----END PRIVATE KEY-----\\nfine\\n'"
        files, _ = bench.run(clean_report, "exit 1", command=("/bin/sh", "-c", script))
        assert not holders(files, LINE) and b"fine" in files["baseline/log.txt"], files["baseline/log.txt"]
        script = f'{asked.workload}; sed -i s/decode/pwd=x1/g "$GPUWHY_NVTX_DIR"/*'
        files, _ = bench.run(clean_report, "exit 1", command=("/bin/sh", "-c", script))
        assert b"pwd=[scrubbed]" in files["baseline/ranges.csv"] and not holders(files, "pwd=x1"), files["baseline/ranges.csv"][:500]
    print("no bundle holds a key")
    return 0


if __name__ == "__main__":
    sys.exit(main())

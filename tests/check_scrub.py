#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""llmprof scrub on a recording and on a bundle with secrets planted in the places where tools leave them: the bytes hold none
afterwards, and the analysis is the same."""
import argparse
import gzip
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

from recording import make_recording

# Each is told in another way: by its name in an environment, by its shape, by a flag before it, as a URL's password,
# by its name in JSON, and one that only the user knows.
SECRETS = {"environment": "Vq7sT0pEnvironment9", "shape": "hf_" + "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0z",
           "flag": "zz81-flag-secret-42", "url": "pAssw0rdOfAnUrl", "json": "jjjson-secret-0815",
           "given": "the dog is buried under the oak"}


def run(program, *words, code=0):
    result = subprocess.run([program, *map(str, words)], capture_output=True, text=True,
                            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
    assert result.returncode == code, (words, result.returncode, result.stdout, result.stderr)
    return result.stdout


def plant(path):
    connection = sqlite3.connect(path)
    strings = [f"HOME=/root\0MY_API_KEY={SECRETS['environment']}\0PATH=/bin\0", f"token is {SECRETS['shape']} here",
               f"python serve.py --api-key {SECRETS['flag']} --port 1"]
    for i, text in enumerate(strings):
        connection.execute("INSERT INTO StringIds (id, value) VALUES (?, ?)", (800_000 + i, text))
    # Tables of other versions: one that no list of ours names, and one whose name needs quotes.
    connection.execute("CREATE TABLE PROCESS_STREAMS (processId INTEGER, content TEXT)")
    connection.execute("INSERT INTO PROCESS_STREAMS VALUES (1, ?)", (f"GET https://user:{SECRETS['url']}@host/x",))
    connection.execute('CREATE TABLE "odd ""table" ("a ""column" TEXT)')
    connection.execute('INSERT INTO "odd ""table" VALUES (?)', (json.dumps({"client_secret": SECRETS["json"]}),))
    connection.execute("CREATE TABLE notes (text TEXT)")
    connection.execute("INSERT INTO notes VALUES (?)", (f"psst: {SECRETS['given']}",))
    # What stood here and is gone is still in the free pages.
    connection.execute("CREATE TABLE gone (text TEXT)")
    connection.executemany("INSERT INTO gone VALUES (?)", [(SECRETS["shape"] * 20,)] * 50)
    connection.commit()
    connection.execute("DROP TABLE gone")
    connection.commit()
    connection.close()


def none_left(root):
    files = [root] if root.is_file() else [path for path in root.rglob("*") if path.is_file()]
    for path in files:
        data = path.read_bytes()
        data += gzip.decompress(data) if data[:2] == b"\x1f\x8b" else b""
        for name, secret in SECRETS.items():
            assert secret.encode() not in data, f"{path} still holds the secret of {name}"
    return len(files)


def check_recording(program, recording, folder, given):
    path = folder / "run.sqlite"
    path.write_bytes(recording)
    before = json.loads(run(program, "analyze", path, "--json"))
    plant(path)
    planted = path.read_bytes()
    assert all(secret.encode() in planted for secret in SECRETS.values()), "the test plants nothing"
    out = run(program, "scrub", path, "--secrets", given)
    assert none_left(path) == 1 and "changed" in out, out
    assert json.loads(run(program, "analyze", path, "--json")) == before, "the analysis has changed"
    assert "clean" in run(program, "scrub", path, "--secrets", given), "a second time finds something"
    print("recording:", out.splitlines()[-1])


def check_bundle(program, recording, folder, given):
    bundle = folder / "bundle"
    (bundle / "nsys").mkdir(parents=True)
    path = bundle / "nsys/run.sqlite"
    path.write_bytes(recording)
    run(program, "analyze", path, "--out", bundle)
    plant(path)
    (bundle / "nsys/log.txt").write_text(f"Authorization: Bearer {SECRETS['environment']}\nfine\n")
    (bundle / "env.json").write_text(json.dumps({"variables": {"DB_PASSWORD": SECRETS["url"], "count": 3}}))
    (bundle / "nsys/run.nsys-rep").write_bytes(b"\0\1report" + SECRETS["environment"].encode() + b"\0")
    (bundle / "ncu").mkdir()
    (bundle / "ncu/run.ncu-rep").write_bytes(b"NVR\0nothing to hide")
    outside = folder / "outside.txt"
    outside.write_text(SECRETS["shape"])
    (bundle / "link.txt").symlink_to(outside)
    metrics = (bundle / "metrics.json").read_text()
    told = json.loads(run(program, "scrub", bundle, "--secrets", given, "--json"))
    outside_text = outside.read_text()
    outside.unlink()
    assert outside_text == SECRETS["shape"], "a link was followed"
    what = {row["path"]: row["what"] for row in told["files"]}
    assert what["nsys/run.nsys-rep"] == "removed" and what["nsys/run.sqlite"] == "changed", what
    assert what["link.txt"] == "skipped" and "ncu/run.ncu-rep" not in what and "metrics.json" not in what, what
    assert what["report.html"] == "removed" and told["left"] == [], told
    assert json.loads((bundle / "env.json").read_text())["variables"]["count"] == 3
    assert "fine" in (bundle / "nsys/log.txt").read_text() and (bundle / "metrics.json").read_text() == metrics
    (bundle / "link.txt").unlink()
    files = none_left(bundle)
    print(f"bundle: {files} files, {told['secrets_found']} secrets found")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        given = folder / "secrets.txt"
        given.write_text(SECRETS["given"] + "\n\n")
        recording = make_recording(folder / "made.sqlite").read_bytes()
        check_recording(asked.program, recording, folder, given)
        check_bundle(asked.program, recording, folder, given)
        for missing in (folder / "nothing", folder / "link"):
            if missing.name == "link":
                missing.symlink_to(folder / "made.sqlite")
            run(asked.program, "scrub", missing, code=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

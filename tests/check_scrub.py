#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of gpuwhy scrub on a recording and a bundle with planted secrets: afterwards no byte contains one, compressed data included,
and the analysis is the same."""
import base64
import gzip
import io
import json
import os
import re
import sqlite3
import stat
import subprocess
import sys
import zipfile

import testing
from recording import make_recording

# Each is told in another way: by its name in an environment, by its shape, by a flag before it, as a URL's password,
# by its name in JSON, and one that only the user knows.
SECRETS = {"environment": "Vq7sT0pEnvironment9", "shape": "hf_" + "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0z",
           "flag": "zz81-flag-secret-42", "url": "pAssw0rdOfAnUrl", "json": "jjjson-secret-0815",
           "given": "the dog is buried under the oak"}


SHAPE = SECRETS["shape"]


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


def unpacked(data):
    """The bytes of a file and all that is packed in it."""
    if data[:2] == b"\x1f\x8b":
        return data + gzip.decompress(data)
    return data + b"".join(gzip.decompress(base64.b64decode(part)) for part in re.findall(rb">(H4sI[A-Za-z0-9+/=]+)<", data))


def none_left(root):
    files = [root] if root.is_file() else [path for path in root.rglob("*") if path.is_file()]
    for path in files:
        data = unpacked(path.read_bytes())
        for name, secret in SECRETS.items():
            assert secret.encode() not in data and secret not in str(path), f"{path} still holds the secret of {name}"
    return len(files)


def scrub(program, folder, code=0):
    """What was said of each file."""
    told = json.loads(run(program, "scrub", folder, "--json", code=code))
    return {row["path"]: row["what"] for row in told["files"]}


def fill(folder, files):
    folder.mkdir()
    for name, contents in files.items():
        (folder / name).write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    return folder


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


def check_dry_run(program, bundle, given):
    """Says what a scrub would do, and changes nothing."""
    def contents():
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in bundle.rglob("*") if path.is_file() and not path.is_symlink()}

    before = contents()
    told = json.loads(run(program, "scrub", bundle, "--secrets", given, "--dry-run", "--json"))
    assert contents() == before, "a dry run changes the bundle"
    places = {row["path"]: row["places"] for row in told["files"] if row["what"] in ("changed", "removed")}
    assert told["dry_run"] and told["secrets_found"] > 0 and not told["left"], told
    assert places["nsys/log.txt"] == {"value after a name such as password, or of a URL": 1}, places
    assert sum(places["nsys/run.nsys-rep"].values()) == 1, places
    assert places["nsys/run.sqlite"]["key that begins with hf_"] >= 1 and places["nsys/run.sqlite"]["value given or in the environment"] == 1, places
    text = run(program, "scrub", bundle, "--secrets", given, "--dry-run")
    assert "nothing was written" in text and not any(secret in text for secret in SECRETS.values()), text


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
    check_dry_run(program, bundle, given)
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


def check_pages(program, recording, folder):
    """A page has its data as gzip in base64: where names of kernels held a key, the page holds it, too."""
    folder.mkdir()
    source = folder / "r.sqlite"
    source.write_bytes(recording)
    connection = sqlite3.connect(source)
    connection.execute("UPDATE StringIds SET value = value || ? WHERE id IN (SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL)",
                       (f" token={SHAPE}",))
    connection.commit()
    connection.close()
    run(program, "analyze", source, "--out", folder / "out")
    assert SHAPE.encode() in unpacked((folder / "out/report.html").read_bytes()), "the test plants nothing"
    what = scrub(program, folder / "out")
    assert what["report.html"] == "removed" and what["metrics.json"] == "changed", what
    none_left(folder / "out")
    beside = fill(folder / "beside", {"r.sqlite": source.read_bytes(),
                                      "page.html": run(program, "report", source, "--format", "html")})
    assert scrub(program, beside) == {"r.sqlite": "changed", "page.html": "removed"}
    none_left(beside)
    alone = fill(folder / "alone", {"page.html": run(program, "report", source, "--format", "html")})
    assert scrub(program, alone) == {"page.html": "removed"}
    # Nothing to hide: the page stays.
    source.write_bytes(recording)
    clean = fill(folder / "clean", {"page.html": run(program, "report", source, "--format", "html")})
    run(program, "analyze", source, "--out", clean / "out")
    assert "clean" in run(program, "scrub", clean), "a page without secrets is not clean"
    print("pages: removed with what they were made of")


def check_packed(program, folder):
    """What cannot be rewritten is searched all the same, and removed; what cannot be searched is never called clean."""
    line = f"HF_TOKEN={SHAPE}"
    pair = b"\x0a\x0aMY_API_KEY\x12\x13" + SECRETS["environment"].encode() + b"\x1a\x01x"
    long = b"\x0a\x0aMY_API_KEY\x12" + bytes([40]) + b"q" * 40 + b"R"
    held = {"trace.json.gz": gzip.compress(json.dumps({"env": {"HF_TOKEN": SHAPE}, "traceEvents": []}).encode()),
            "a.nsys-rep": b"\x01\x02" + line.encode() + b"\0\1", "b.qdstrm": b"text first " * 600 + line.encode() + b"\1",
            "c.ncu-rep": b"NVR\0" + line.encode(), "zero.log": b"one\0two\n" + line.encode() + b"\n",
            "wide.txt": line.encode("utf-16"), "wide-be.txt": b"\xfe\xff" + line.encode("utf-16-be"), "pair.nsys-rep": pair,
            "long.nsys-rep": long, "key.nsys-rep": b"\0-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----\n"}
    for name, contents in held.items():
        place = fill(folder / name, {name: contents})
        assert scrub(program, place) == {name: "removed"}, name
    clean = {"trace.json.gz": gzip.compress(b'{"traceEvents": []}'), "a.nsys-rep": b"\0max_tokens=128\0HOME=/root\0",
             "wide.txt": "nothing to hide".encode("utf-16"), "pair.nsys-rep": b"\x0a\x04HOME\x12\x0a/root/here\0"}
    assert "clean" in run(program, "scrub", fill(folder / "clean", clean))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as inside:
        inside.writestr("a.txt", line * 100)
    unsearched = {"a.zip": archive.getvalue(), "cut.gz": gzip.compress(os.urandom(5000))[:2000]}
    place = fill(folder / "unsearched", unsearched)
    assert scrub(program, place) == dict.fromkeys(unsearched, "not searched")
    out = run(program, "scrub", place)
    assert "clean" not in out and "could not be searched" in out, out
    print(f"packed: {len(held)} kinds removed, {len(unsearched)} said to be not searched")


PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA7bq2vX9\n" * 3 + "-----END RSA PRIVATE KEY-----\n"


def check_lines(program, folder):
    """Secrets of more than one line."""
    wanted = {
        "key.log": ("before\n" + PEM + "after\n", ("before\n", "after\n")),
        "cut.log": (PEM[:60] + "\n" + "x" * 30 + "\n", ()),
        "block.yaml": ("user: me\npassword: |\n  hunter2hunter2\nlast: 1\n", ("user: me", "last: 1")),
        "list.yaml": ("env:\n- name: HF_TOKEN\n  value: hunter2hunter2\n- name: PORT\n  value: 80\n", ("PORT", "80")),
        "comment.yaml": (f"a: 1  # token={SHAPE}\n", ("a: 1",)),
        # More than one document, so no tree.
        "many.yml": ("a: 1\n---\npassword: |\n  hunter2hunter2\n  MIIEpAIBAAKCAQEA7bq2vX9\nb: 2\n---\n- name: HF_TOKEN\n"
                     "  value: hunter2hunter2\n- name: PORT\n  value: 80\n", ("a: 1", "password: |\n  [scrubbed]\n", "b: 2", "  value: 80")),
    }
    place = fill(folder, {name: text for name, (text, _) in wanted.items()})
    what = scrub(program, place)
    assert what == dict.fromkeys(wanted, "changed"), what
    for name, (_, kept) in wanted.items():
        text = (place / name).read_text()
        assert not any(secret in text for secret in ("hunter2", "MIIE", "xxxxxx", SHAPE)), (name, text)
        assert all(part in text for part in kept), (name, text)
    assert "clean" in run(program, "scrub", place), "a second time finds something"
    print(f"lines: {len(wanted)} files with secrets of several lines")


def check_places(program, folder):
    """Places that were once skipped and called clean."""
    folder.mkdir()
    path = folder / "odd.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE odd (a CLOB, b JSON, c INTEGER, d BLOB, e REAL, zeros BLOB)")
    connection.execute("INSERT INTO odd VALUES (?, ?, ?, ?, ?, ?)",
                       (f"token={SHAPE}", json.dumps({"api_key": SECRETS["json"]}), f"x {SHAPE}",
                        b"\x01\x02password=" + SECRETS["url"].encode() + b"\0\x03", 1.5, bytes(16)))
    # Rows without a number, and a column that hides it.
    connection.execute("CREATE TABLE keyed (a TEXT PRIMARY KEY, b INTEGER) WITHOUT ROWID")
    connection.executemany("INSERT INTO keyed VALUES (?, ?)", [(f"x {SHAPE}", 1), ("fine", 2)])
    connection.execute("CREATE TABLE hidden (rowid TEXT, b TEXT)")
    connection.executemany("INSERT INTO hidden VALUES (?, ?)", [("7", f"x {SHAPE}"), ("7", "fine")])
    connection.commit()
    connection.close()
    assert scrub(program, path) == {str(path): "changed"}
    none_left(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT d, e, zeros, typeof(d) FROM odd").fetchall() == [
        (b"\x01\x02password=[scrubbed]\0\x03", 1.5, bytes(16), "blob")]
    assert connection.execute("SELECT * FROM keyed ORDER BY b").fetchall() == [("x [scrubbed]", 1), ("fine", 2)]
    assert connection.execute("SELECT b FROM hidden").fetchall() == [("x [scrubbed]",), ("fine",)]
    connection.execute(f"CREATE TABLE preset (a TEXT DEFAULT 'token={SHAPE}')")
    connection.commit()
    connection.close()
    run(program, "scrub", path, code=1)  # a schema is not rewritten, but it is not clean
    wide = folder / "wide.sqlite"
    connection = sqlite3.connect(wide)
    connection.executescript("PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (a TEXT)")
    connection.execute("INSERT INTO t VALUES (?)", (f"token={SHAPE}",))
    connection.commit()
    connection.close()
    assert scrub(program, wide) == {str(wide): "changed"} and SHAPE.encode("utf-16-le") not in wide.read_bytes()
    texts = {"twice.json": '{"api_key": "%s", "n": 1, "api_key": ""}' % SECRETS["json"], "nan.json": '{"n": NaN, "token": "%s"}' % SHAPE,
             "broken.json": '{"token": "%s", ' % SHAPE, f"log-{SHAPE}.txt": "nothing", "fine.json": '{"a": 1, "api_key": null}'}
    place = fill(folder / "texts", texts)
    (place / f"of {SHAPE}").mkdir()
    (place / f"of {SHAPE}" / "inner.txt").write_text(f"token={SHAPE}")
    told = run(program, "scrub", place)
    none_left(place)
    assert SHAPE not in told and "its name held a secret" in told, told
    assert len([path for path in place.rglob("*") if path.is_file()]) == len(texts) + 1
    assert json.loads((place / "fine.json").read_text()) == {"a": 1, "api_key": None} and "NaN" in (place / "nan.json").read_text()
    run(program, "scrub", "/proc/self/mem", code=1)  # a regular file that cannot be read
    print("places: columns of any type, keys given twice, JSON that is none, names of files")


def check_manifest(program, folder):
    """The manifest lists names and hashes: it is renewed before the last search."""
    place = fill(folder, {f"log-{SHAPE}.txt": "x", "a.txt": f"token={SHAPE}"})
    files = [{"path": path.name, "size_bytes": 1, "sha256": "0" * 64} for path in place.iterdir()]
    (place / "manifest.json").write_text(json.dumps({"schema": "gpuwhy.manifest", "schema_version": 1, "run_id": "x", "run": {},
                                                     "files": files}))
    run(program, "scrub", place)
    none_left(place)
    listed = {file["path"] for file in json.loads((place / "manifest.json").read_text())["files"]}
    assert listed == {path.name for path in place.iterdir()} - {"manifest.json"}, listed


def check_modes(program, recording, folder):
    place = fill(folder, {"r.sqlite": recording, "a.json": json.dumps({"token": SHAPE}), "a.log": f"token={SHAPE}\n",
                          "a.yaml": f"token: {SHAPE}\n"})
    plant(place / "r.sqlite")
    for path in place.iterdir():
        path.chmod(0o600)
    before = os.umask(0)
    scrub(program, place)
    os.umask(before)
    modes = {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in place.iterdir()}
    assert set(modes.values()) == {"0o600"} and len(modes) == 4, modes


def check_speed(program, folder):
    """A key on every line, the same one or another: time grows as the file does."""
    for kind, line in (("same", lambda i: f"Authorization: Bearer {SHAPE}"), ("other", lambda i: f"{i} token=a{i:07}b{i * 7919:015}")):
        place = fill(folder / kind, {"a.log": "".join(line(i) + "\n" for i in range(40_000))})
        start = os.times()
        scrub(program, place)
        now = os.times()  # of the processor: the machine may be busy
        took = now.children_user + now.children_system - start.children_user - start.children_system
        assert took < 10, f"{kind}: {took:.1f} s for 40,000 lines"
        print(f"speed: 40,000 lines with a key each ({kind}) in {took:.2f} s")


def main():
    asked = testing.arguments("program")
    with testing.scratch() as folder:
        given = folder / "secrets.txt"
        given.write_text(SECRETS["given"] + "\n\n")
        recording = make_recording(folder / "made.sqlite").read_bytes()
        check_recording(asked.program, recording, folder, given)
        check_bundle(asked.program, recording, folder, given)
        check_pages(asked.program, recording, folder / "pages")
        (folder / "packed").mkdir()
        check_packed(asked.program, folder / "packed")
        check_lines(asked.program, folder / "lines")
        check_places(asked.program, folder / "places")
        check_manifest(asked.program, folder / "manifest")
        check_modes(asked.program, recording, folder / "modes")
        (folder / "speed").mkdir()
        check_speed(asked.program, folder / "speed")
        for missing in (folder / "nothing", folder / "link"):
            if missing.name == "link":
                missing.symlink_to(folder / "made.sqlite")
            run(asked.program, "scrub", missing, code=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gpuwhy fleet` against servers that answer slowly, wrongly, with a login page, or break off, and with names and
addresses that try to be something else. Nothing may be lost, doubled or carried out, and each trouble is one sentence."""
import concurrent.futures
import hashlib
import http.server
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

HTML = b"<html><body>Please log in</body></html>"


class Server(http.server.ThreadingHTTPServer):
    """As much of ClickHouse as a push needs: keeps what is inserted, by table and in order. `trouble` is asked first and
    may answer in its place."""
    daemon_threads = True

    def __init__(self, trouble=None, tls=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.trouble = trouble
        self.requests = []
        self.inserts = []  # (table, body)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_):
        pass  # clients that give up are what is tested


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, body, status=200, is_clickhouse=True, length=None, content_type="text/tab-separated-values", code=None):
        self.send_response(status)
        if code is not None:
            self.send_header("X-ClickHouse-Exception-Code", str(code))
        if is_clickhouse:
            self.send_header("X-ClickHouse-Server-Display-Name", "test")
        self.send_header("Content-Type", content_type)
        if length != "none":
            self.send_header("Content-Length", str(len(body) if length is None else length))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query)).get("query")
        self.server.requests.append((self.path, dict(self.headers), query or body.decode("utf-8", "replace")))
        if self.server.trouble and self.server.trouble(self, query, body):
            return
        if query:
            self.server.inserts.append((query.split()[2], body))
            self.reply(b"")
        elif body == b"SELECT version()":
            self.reply(b"18.16.1\n")
        else:
            self.reply(b"")  # no rows


class Test:
    def __init__(self, program, make_history, folder):
        self.program = program
        self.folder = pathlib.Path(folder)
        self.data = self.folder / "history"
        subprocess.run([make_history, self.data, "1", "2", "8", "hostile"], check=True, stdout=subprocess.DEVNULL)

    def run(self, *arguments, spool="spool", environment=None):
        arguments = [str(a) for a in arguments]
        if arguments[0] == "push":
            arguments += ["--spool", str(self.folder / spool)]
        return subprocess.run([self.program, "fleet", *arguments], capture_output=True, text=True, timeout=250,
                              env={**os.environ, "NO_PROXY": "127.0.0.1", **(environment or {})})

    def waiting(self, spool="spool"):
        return sorted((self.folder / spool).glob("*.batch"))


def expect(result, code, *words):
    text = result.stdout + result.stderr
    assert result.returncode == code, (result.returncode, text)
    for word in words:
        assert word in text, (word, text)
    assert len(text.splitlines()) <= 3, text  # a sentence and a hint
    assert "\x1b" not in text


def insert_only(trouble):
    """Trouble for inserts, not for the question after the version."""
    return lambda handler, query, body: trouble(handler) if query else False


def done(handler, *arguments, **named):
    handler.reply(*arguments, **named)
    return True


def cut(handler):
    handler.reply(b"", length=100)
    handler.connection.shutdown(socket.SHUT_RDWR)
    return True


def slow(handler):
    time.sleep(3)
    return done(handler, b"")


# What a server does to an insert -> the exit code and words of gpuwhy. In each case the rows must still be there.
TROUBLES = {
    "a login page with status 200": (lambda h: done(h, HTML, is_clickhouse=False, content_type="text/html"), 5,
                                     ["does not answer like ClickHouse", "text/html"]),
    "an empty answer of something else": (lambda h: done(h, b"", is_clickhouse=False), 5, ["does not answer like ClickHouse"]),
    "words in place of nothing": (lambda h: done(h, b"thanks\x1b[31m\n"), 5, ["answered an insert with thanks"]),
    "a break in the middle of the answer": (cut, 5, ["batches wait in"]),
    "an answer without an end": (lambda h: done(h, b"", length="none"), 5, ["does not say where it ends"]),
    "no answer in time": (slow, 5, ["batches wait in"]),
    "a redirect": (lambda h: done(h, b"", status=302, is_clickhouse=False), 5, ["HTTP 302"]),
    "too many parts": (lambda h: done(h, b"Code: 252, e.displayText() = DB::Exception: Too many parts", status=500), 5,
                       ["Code: 252", "batches wait in"]),
    "a wrong password": (lambda h: done(h, b"Code: 193, e.displayText() = DB::Exception: Wrong password", status=401), 5,
                         ["Code: 193", "GPUWHY_CLICKHOUSE_PASSWORD"]),
    "no tables": (lambda h: done(h, b"Code: 60. DB::Exception: Table gpuwhy.names doesn't exist", status=404), 5,
                  ["Code: 60", "gpuwhy fleet init"]),
    "a gateway without a server": (lambda h: done(h, HTML, status=502, is_clickhouse=False, content_type="text/html"), 5,
                                   ["HTTP 502"]),
}


def test_troubles(test):
    for name, (trouble, code, words) in TROUBLES.items():
        spool = "spool-" + hashlib.sha256(name.encode()).hexdigest()[:8]
        server = Server(insert_only(trouble))
        # A busy machine answers late, and that is not the same as no answer.
        expect(test.run("push", test.data, "--to", server.url, "--wait", "1", "--timeout", "1" if trouble is slow else "60", spool=spool),
               code, *words)
        waiting = test.waiting(spool)
        assert len(waiting) == 1, (name, waiting)
        before = waiting[0].read_bytes()
        healthy = Server()
        expect(test.run("push", "--to", healthy.url, spool=spool), 0, "sent 2 ranks, 42 rows in 1 batches")
        assert not test.waiting(spool), name
        # The bytes that were refused are the bytes that are sent.
        assert before.endswith(b"".join(body for _, body in healthy.inserts)), name
        assert [table for table, _ in healthy.inserts] == [f"gpuwhy.{t}" for t in ("names", "kernels", "stages", "parts", "ranks")]
        server.server_close()
        healthy.server_close()
        print(f"  {name}: nothing lost")


# Errors that pass: each once, with the status and in the words of ClickHouse. 9999 is one of a release to come.
PASSING = {3: "UNEXPECTED_END_OF_FILE", 23: "CANNOT_READ_FROM_ISTREAM", 49: "LOGICAL_ERROR", 74: "CANNOT_READ_FROM_FILE_DESCRIPTOR",
           75: "CANNOT_WRITE_TO_FILE_DESCRIPTOR", 76: "CANNOT_OPEN_FILE", 107: "FILE_DOESNT_EXIST", 159: "TIMEOUT_EXCEEDED",
           160: "TOO_SLOW", 173: "CANNOT_ALLOCATE_MEMORY", 198: "DNS_ERROR", 201: "QUOTA_EXCEEDED", 202: "TOO_MANY_SIMULTANEOUS_QUERIES",
           210: "NETWORK_ERROR", 218: "TABLE_IS_DROPPED", 241: "MEMORY_LIMIT_EXCEEDED", 242: "TABLE_IS_READ_ONLY", 252: "TOO_MANY_PARTS",
           290: "LIMIT_EXCEEDED", 305: "CANNOT_ASSIGN_OPTIMIZE", 319: "UNKNOWN_STATUS_OF_INSERT", 373: "SESSION_IS_LOCKED",
           425: "SYSTEM_ERROR", 439: "CANNOT_SCHEDULE_TASK", 473: "DEADLOCK_AVOIDED", 499: "S3_ERROR", 574: "CANNOT_NOTIFY_KEEPER",
           722: "ASYNC_LOAD_WAIT_FAILED", 999: "KEEPER_EXCEPTION", 1000: "POCO_EXCEPTION", 1001: "STD_EXCEPTION", 9999: "NOT_YET_KNOWN"}


def message(code, name):
    return f"Code: {code}. DB::Exception: It does not go now. ({name}) (version 24.3.1.1)\n".encode()


def once(answer):
    """Trouble for the first insert only."""
    told = []

    def trouble(handler, query, body):
        if query and not told:
            told.append(query)
            return answer(handler)
        return False
    return trouble


def test_passing_errors(test):
    """An error that passes is tried again, in every form a server has for it; nothing is put aside."""
    forms = {f"code {code}": lambda h, b=message(code, name): done(h, b, status=500) for code, name in PASSING.items()}
    forms |= {f"HTTP {status}": lambda h, s=status: done(h, HTML, status=s, is_clickhouse=False) for status in (408, 425, 429, 500, 503, 504)}
    forms |= {f"HTTP {status} of ClickHouse without a word": lambda h, s=status: done(h, b"", status=s) for status in (400, 429, 500, 503)}
    # The status was sent before the error was seen.
    forms |= {"200 with a header": lambda h: done(h, b"", code=241),
              "200 with a header of 40 digits": lambda h: done(h, b"", code="9" * 40),
              "200 with a header that is not a number": lambda h: done(h, b"", code="many"),
              "200 with an exception in its body": lambda h: done(h, message(241, "MEMORY_LIMIT_EXCEEDED")),
              "200 with an exception marked in its body": lambda h: done(h, b"\r\n__exception__\r\n" + message(241, "M"))}

    def try_one(number, name, answer):
        server = Server(once(answer))
        spool = f"passing-{number}"
        expect(test.run("push", test.data, "--to", server.url, "--wait", "200", spool=spool), 0, "sent 2 ranks, 42 rows in 1 batches",
               "1 retries")
        assert len(server.inserts) == 5 and not (test.folder / spool / "failed").exists(), (name, server.inserts)
        server.server_close()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:  # most of the time is waiting
        for tried in [pool.submit(try_one, number, name, answer) for number, (name, answer) in enumerate(forms.items())]:
            tried.result()
    # One that does not pass in time: the batch waits, also for an unknown reason, and others are sent.
    for name in ("code 241", "code 9999", "200 with a header"):
        server = Server(insert_only(forms[name]))
        spool = f"waiting-{name}".replace(" ", "_")
        expect(test.run("push", test.data, "--to", server.url, "--wait", "1", spool=spool), 5, "1 batches wait in")
        assert len(test.waiting(spool)) == 1 and not server.inserts
    # A server that does not tell its version says nothing about the rows.
    silent = Server(lambda h, q, b: done(h, b"<b>1</b>\n") if b == b"SELECT version()" else False)
    expect(test.run("push", test.data, "--to", silent.url, "--wait", "1", spool="silent"), 5, "1 batches wait in")
    assert len(test.waiting("silent")) == 1
    print(f"  {len(forms)} forms of errors that pass: all tried again")


def test_wrong_rows(test):
    """Rows that no server will ever take are put aside and do not stop the others."""
    server = Server(insert_only(lambda h: done(h, b"Code: 33, e.displayText() = DB::Exception: Cannot read all data", status=500)))
    expect(test.run("push", test.data, "--to", server.url, "--wait", "1", spool="bad"), 1, "the server refuses", "Code: 33")
    assert not test.waiting("bad") and len(list((test.folder / "bad" / "failed").glob("*.batch"))) == 1
    # When the cause is gone, they are sent again on request, and only then.
    refused = next((test.folder / "bad" / "failed").glob("*.batch")).read_bytes()
    repaired = Server()
    expect(test.run("push", "--to", repaired.url, spool="bad"), 0, "sent 0 ranks")
    expect(test.run("push", "--failed", "--to", server.url, "--wait", "1", spool="bad"), 1, "1 refused batch sent again", "Code: 33")
    assert len(list((test.folder / "bad" / "failed").glob("*.batch"))) == 1
    expect(test.run("push", "--failed", "--to", repaired.url, spool="bad"), 0, "1 refused batch sent again", "sent 2 ranks, 42 rows")
    assert refused.endswith(b"".join(body for _, body in repaired.inserts))
    assert not test.waiting("bad") and not list((test.folder / "bad" / "failed").glob("*.batch"))
    expect(test.run("push", "--failed", "--to", repaired.url, spool="bad"), 0, "0 refused batches sent again")
    # A batch that was damaged on disk is not sent.
    healthy = Server()
    offline = f"http://127.0.0.1:{free_port()}"
    expect(test.run("push", test.data, "--to", offline, "--wait", "1", spool="damaged"), 5, "batches wait in", "nothing is lost")
    batch = test.waiting("damaged")[0]
    damaged = bytearray(batch.read_bytes())
    damaged[-1] ^= 1
    batch.write_bytes(damaged)
    expect(test.run("push", "--to", healthy.url, spool="damaged"), 1, "not a complete batch")
    assert not healthy.inserts


def recent(handler, query, body, definition=b"CREATE TABLE gpuwhy.kernels (day Date) TTL day + toIntervalDay(30)\n"):
    """A recent server whose tables keep rows for 30 days."""
    if body == b"SELECT version()":
        return done(handler, b"26.5.1.1\n")
    return done(handler, definition) if b"create_table_query" in body else False


def test_damaged_summaries(test):
    """One damaged, empty or newer summary does not stop the others, is named, and is not forgotten by the exit code."""
    folder = test.folder / "damaged-summaries"
    shutil.copytree(test.data, folder)
    good = sorted(folder.rglob("*.gpuwhy"))
    (good[0].parent / "cut.gpuwhy").write_bytes(good[0].read_bytes()[:1000])
    (good[0].parent / "empty.gpuwhy").write_bytes(b"")
    server = Server()
    expect(test.run("push", folder, "--to", server.url, spool="some"), 7, "not sent:", "cut.gpuwhy", "empty.gpuwhy", "sent 2 ranks")
    assert [table for table, _ in server.inserts][-1] == "gpuwhy.ranks"
    # What was acknowledged is not sent again by a relay that looks at its folder once more, unless it is told to.
    before = len(server.inserts)
    (good[0].parent / "cut.gpuwhy").unlink()
    (good[0].parent / "empty.gpuwhy").unlink()
    expect(test.run("push", folder, "--to", server.url, spool="some"), 0, "sent 0 ranks", "2 ranks sent before")
    assert len(server.inserts) == before
    expect(test.run("push", folder, "--to", server.url, "--again", spool="some"), 0, "sent 2 ranks")
    assert len(server.inserts) == 2 * before


def test_age_limit(test):
    """Rows that the server would acknowledge and drop are not sent. The generator's are of January 2026."""
    server = Server(recent)
    expect(test.run("push", test.data, "--to", server.url, spool="aged"), 7, "drops rows from before", "--keep-days", "sent 0 ranks")
    assert not server.inserts and not test.waiting("aged")
    # A batch that grew too old in the spool is put aside, not lost.
    expect(test.run("push", test.data, "--to", f"http://127.0.0.1:{free_port()}", "--wait", "1", spool="grown"), 5, "1 batches wait")
    expect(test.run("push", "--to", server.url, spool="grown"), 1, "which the server drops")
    assert not server.inserts and len(list((test.folder / "grown" / "failed").glob("*.batch"))) == 1
    kept = Server(lambda h, q, b: recent(h, q, b, b"CREATE TABLE gpuwhy.kernels (day Date)\n"))
    expect(test.run("push", test.data, "--to", kept.url, spool="kept-all"), 0, "sent 2 ranks")


def test_read_only_user(test):
    """A user whose profile is read only may not send the setting; a statement that writes is still refused."""
    def trouble(handler, query, body):
        if "readonly=1" in handler.path:
            return done(handler, b"Code: 164, e.displayText() = DB::Exception: Cannot modify 'readonly' setting in readonly mode", status=500)
        return done(handler, b"2\n") if b"system.settings" in body else False
    server = Server(trouble)
    expect(test.run("status", "--to", server.url), 0, "no runs")
    # The user may write, so it was the statement: it is not tried without the setting.
    writer = Server(lambda h, q, b: done(h, b"0\n") if b"system.settings" in b else
                    done(h, b"Code: 164. DB::Exception: Cannot execute query in readonly mode", status=500) if "readonly=1" in h.path else False)
    expect(test.run("sql", "DROP TABLE x", "--to", writer.url), 5, "Code: 164")
    assert not any("DROP" in text and "readonly=1" not in path for path, _, text in writer.requests)


def test_sql_answers(test):
    """Bytes go to a file as they came; JSON is JSON."""
    parquet = b"PAR1\x00\x1b\xff\nPAR1"
    server = Server(lambda h, q, b: done(h, parquet) if b"Parquet" in b else done(h, b'{"data": [{"x": "\\u001b"}]}\n') if b"FORMAT JSON" in b else False)
    out = test.folder / "answer.parquet"
    expect(test.run("sql", "SELECT 1 FORMAT Parquet", "--to", server.url, "--out", out), 0)
    assert out.read_bytes() == parquet
    result = test.run("sql", "SELECT 1 AS x", "--to", server.url, "--json")
    assert result.returncode == 0 and json.loads(result.stdout)["data"] == [{"x": "\x1b"}] and "\x1b" not in result.stdout, result


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_failover(test):
    """A dead node beside a live one; and an acknowledgement that was lost: the same bytes come again."""
    lost = []

    def loses_first(handler, query, body):
        if query and not lost:
            lost.append(body)
            handler.server.inserts.append((query.split()[2], body))
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
            return True
        return False

    server = Server(loses_first)
    urls = f"http://127.0.0.1:{free_port()},{server.url}"
    expect(test.run("push", test.data, "--to", urls, "--wait", "20", spool="failover"), 0, "sent 2 ranks")
    tables = [table for table, _ in server.inserts]
    assert tables == ["gpuwhy.names", "gpuwhy.names", "gpuwhy.kernels", "gpuwhy.stages", "gpuwhy.parts", "gpuwhy.ranks"], tables
    assert server.inserts[0][1] == server.inserts[1][1]


def test_names(test):
    """No name is part of a statement or an address; the 100 KB one and the NUL travel whole."""
    server = Server()
    expect(test.run("push", test.data, "--to", server.url, spool="names"), 0, "sent 2 ranks")
    for path, _, statement in server.requests:
        for piece in ("DROP", "fill", "mo'del", "nul", "xxxx", "run-000"):
            assert piece not in path, path[:200]
            assert statement.startswith("INSERT INTO gpuwhy.") or piece not in statement, statement[:200]
    names = dict(server.inserts)["gpuwhy.names"]
    assert b"'; DROP TABLE gpuwhy.kernels; --" in names and b"nul\0byte" in names and b"x" * 100_000 in names
    # As questions they are asked for by number, and what comes back is shown harmless.
    name = "x'; DROP TABLE runs; --\n\0".replace("\0", "")
    result = test.run("top", "--to", server.url, "--run", name, "--stage", name, "--model", name)
    expect(result, 0, "0 runs")
    assert all("DROP" not in statement for _, _, statement in server.requests)
    key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    assert any(str(key) in statement for _, _, statement in server.requests)


def test_wrong_answers(test):
    """Questions answered with what was not asked for."""
    answers = {"HTML": HTML + b"\n", "too few columns": b"1\t2\n", "no number": b"\t".join([b"x"] * 14) + b"\n", "no end of line": b"1"}
    for name, answer in answers.items():
        server = Server(lambda h, q, b, answer=answer: done(h, answer) if b"FROM" in b else False)
        expect(test.run("status", "--to", server.url), 1, "the server")
        print(f"  a question answered with {name}: refused")
    # Numbers that no run has, where all columns are there.
    run = [7, 1, 1, b"r", 1, b"m", b"g", b"e", b"v", 1_700_000_000, 2, 1, 5, b"cluster=a", 0, 10, 5, 0]
    kernel = [1, 2, 3, 1, 0, 1, 0, 5, 5, 5, b"[3]", b"[1]", 5]
    stage = [7, 2, 1, *[0, 1] * 7, 5]
    most = (1 << 64) - 1
    hostile = [("top", run[:at] + [most] + run[at + 1:], kernel) for at in (1, 2, 4, 9)]
    hostile += [("top", run, kernel[:at] + [value] + kernel[at + 1:])
                for at in (4, 5, 6, 7, 8, 9) for value in (most, most // 2)]
    hostile += [("top", run, kernel[:10] + [b"[600]", b"[1]", 5]), ("top", run, kernel[:10] + [b"[18446744073709551615]", b"[1]", 5]),
                ("top", run, kernel[:8] + [9, 5] + kernel[10:])]
    hostile += [("trend", run, stage[:at] + [value] + stage[at + 1:]) for at in (0, *range(3, 17)) for value in (most, most // 2)]
    # The same rows without anything hostile are an answer: the others are not refused for their number of columns.
    for command, first, second in (("top", run, kernel), ("trend", run, stage), *hostile):
        texts = [b"\t".join(x if isinstance(x, bytes) else str(x).encode() for x in row) + b"\n" for row in (first, second)]

        def trouble(handler, query, body):
            if b"kernels" in body or b"stages" in body:
                return done(handler, texts[1] * (2 if b"kernels" in body else 1))
            return done(handler, texts[0]) if b"run_id" in body else done(handler, b"")
        result = test.run(command, "--to", Server(trouble).url, "--json")
        text = result.stdout + result.stderr
        is_good = first is run and second in (kernel, stage)
        assert not is_good or (result.returncode == 0 and '"notes": []' in text), (command, text)
        assert result.returncode in (0, 1) and "internal error" not in text and "runtime error" not in text, (command, first, second, text)
    print(f"  {len(hostile)} rows of hostile numbers: an answer or a sentence")
    version = Server(lambda h, q, b: done(h, b"<b>1</b>\n") if b == b"SELECT version()" else False)
    expect(test.run("init", "--to", version.url), 1, "does not report a ClickHouse version")
    large = Server(lambda h, q, b: done(h, b"1\t" * (150 << 20)) if b"FROM" in b else False)
    expect(test.run("status", "--to", large.url), 5, "larger than 256 MiB")


def test_credentials(test):
    server = Server()
    secret = "hunter2-secret"
    refused = test.run("status", "--to", f"http://me:{secret}@127.0.0.1:1")
    expect(refused, 2, "holds credentials", "GPUWHY_CLICKHOUSE_USER")
    assert secret not in refused.stdout + refused.stderr
    environment = {"GPUWHY_CLICKHOUSE_USER": "me", "GPUWHY_CLICKHOUSE_PASSWORD": secret}
    expect(test.run("push", test.data, "--to", server.url, spool="credentials", environment=environment), 0)
    assert all(h["X-ClickHouse-User"] == "me" and h["X-ClickHouse-Key"] == secret and secret not in path
               for path, h, _ in server.requests)
    file = test.folder / "netrc"
    file.write_text(f"login me\npassword {secret}\n")
    file.chmod(0o644)
    expect(test.run("status", "--to", server.url, "--credentials", file), 1, "can be read by others", "chmod 600")
    file.chmod(0o600)
    expect(test.run("status", "--to", server.url, "--credentials", file), 0)
    assert server.requests[-1][1]["X-ClickHouse-Key"] == secret
    away = test.run("push", test.data, "--to", "http://127.0.0.1:1", "--wait", "1", spool="kept", environment=environment)
    expect(away, 5)
    batches = list((test.folder / "kept").rglob("*.batch"))
    assert batches and not any(secret.encode() in path.read_bytes() for path in batches), batches
    broken = {**environment, "GPUWHY_CLICKHOUSE_PASSWORD": "a\nX-Evil: 1"}
    expect(test.run("status", "--to", server.url, environment=broken), 2, "control characters")
    for wrong in ("ftp://host", "http://", "http://a b", "http://host/?query=DROP", "http://host#x"):
        expect(test.run("status", "--to", wrong), 2, "is not a server address")
    for option in ("--database", "--cluster"):
        expect(test.run("init", "--to", server.url, option, "x; DROP DATABASE y"), 2, "cannot be")


def test_tls(test):
    """A certificate that nobody signed is refused, and taken when the user names it."""
    if not shutil.which("openssl"):
        print("  not tested: there is no openssl to make a certificate with")
        return
    key, certificate = test.folder / "key.pem", test.folder / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = Server(tls=context)
    expect(test.run("status", "--to", server.url), 5, "certificate", "--ca FILE")
    assert not server.requests
    expect(test.run("status", "--to", server.url, "--ca", certificate), 0, "no runs")
    expect(test.run("status", "--to", server.url.replace("127.0.0.1", "localhost"), "--ca", certificate), 5, "--ca FILE")


def main():
    arguments = testing.arguments("program", "make-history")
    with tempfile.TemporaryDirectory() as folder:
        test = Test(arguments.program, arguments.make_history, folder)
        for check in (test_troubles, test_passing_errors, test_wrong_rows, test_damaged_summaries, test_age_limit, test_read_only_user,
                      test_sql_answers, test_failover, test_names, test_wrong_answers, test_credentials, test_tls):
            started = time.monotonic()
            check(test)
            print(f"{check.__name__}: {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

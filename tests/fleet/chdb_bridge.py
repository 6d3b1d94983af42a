# SPDX-License-Identifier: Apache-2.0
"""The HTTP interface of ClickHouse, as far as gpuwhy uses it, in front of libchdb: a recent ClickHouse without a server.

chDB is the engine as a library and has no network code, so this answers on loopback and hands statements over. Settings
that a server would take from the URL become settings of the statement; rows of an insert go through a file. An insert
without the token by which a recent server recognizes it is refused.

   chdb_bridge.py FOLDER        prints its address and answers until it is ended"""
import ctypes
import http.server
import os
import pathlib
import re
import sys
import tempfile
import threading
import urllib.parse

# Of the parameters that gpuwhy sends, those that are the server's own and no settings of a query.
NOT_SETTINGS = {"query", "wait_end_of_query", "readonly"}


def find_library():
    told = os.environ.get("GPUWHY_CHDB_PREFIX") or os.path.expanduser("~/.cache/gpuwhy/chdb")
    found = sorted(pathlib.Path(told).rglob("libchdb.so"))
    return found[0] if found else None


class Engine:
    def __init__(self, library, path):
        chdb = ctypes.CDLL(str(library))
        chdb.chdb_connect.restype = ctypes.POINTER(ctypes.c_void_p)
        chdb.chdb_connect.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]
        chdb.chdb_query_n.restype = ctypes.c_void_p
        chdb.chdb_query_n.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
        chdb.chdb_result_buffer.restype = ctypes.c_void_p
        chdb.chdb_result_length.restype = ctypes.c_size_t
        chdb.chdb_result_error.restype = ctypes.c_char_p
        for name in ("chdb_result_buffer", "chdb_result_length", "chdb_result_error", "chdb_destroy_query_result"):
            getattr(chdb, name).argtypes = [ctypes.c_void_p]
        arguments = (ctypes.c_char_p * 2)(b"clickhouse", f"--path={path}".encode())
        self.connection = chdb.chdb_connect(2, arguments)
        assert self.connection, "libchdb does not open its folder"
        self.chdb = chdb
        self.lock = threading.Lock()

    def query(self, sql):
        """(is_error, bytes)"""
        with self.lock:
            result = self.chdb.chdb_query_n(self.connection[0], sql, len(sql), b"TabSeparated", 12)
            try:
                error = self.chdb.chdb_result_error(result)
                if error:
                    return True, error
                length = self.chdb.chdb_result_length(result)
                return False, ctypes.string_at(self.chdb.chdb_result_buffer(result), length) if length else b""
            finally:
                self.chdb.chdb_destroy_query_result(result)


class Bridge(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, library, folder):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = pathlib.Path(folder)
        self.engine = Engine(library, self.folder / "data")
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        parameters = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_error, answer = self.answer(parameters, body)
        self.send_response(500 if is_error else 200)
        self.send_header("X-ClickHouse-Server-Display-Name", "chdb")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def answer(self, parameters, body):
        engine = self.server.engine
        settings = ", ".join(f"{name} = '{value}'" for name, value in parameters.items() if name not in NOT_SETTINGS)
        if "query" not in parameters:
            first = body.split(None, 1)[0].upper()
            if parameters.get("readonly") == "1" and first not in (b"SELECT", b"SHOW", b"DESCRIBE", b"WITH", b"EXPLAIN"):
                return True, b"Code: 164. DB::Exception: Cannot execute query in readonly mode. (READONLY)"
            return engine.query(body)
        statement = parameters["query"]
        # With its list of columns: rows of one version go into tables of another.
        insert = re.fullmatch(r"(INSERT INTO \w+\.\w+ \([a-z_, ]+\)) FORMAT RowBinary", statement)
        assert insert, statement
        if len(parameters.get("insert_deduplication_token", "")) != 64:
            return True, b"Code: 36. DB::Exception: an insert without its token"
        with tempfile.NamedTemporaryFile(dir=self.server.folder, suffix=".rows") as rows:
            rows.write(body)
            rows.flush()
            return engine.query(f"{insert[1]} FROM INFILE '{rows.name}' SETTINGS {settings} FORMAT RowBinary".encode())


def main():
    bridge = Bridge(find_library(), sys.argv[1])
    print(bridge.url, flush=True)
    bridge.serve_forever()


if __name__ == "__main__":
    main()

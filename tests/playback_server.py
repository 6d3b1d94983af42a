#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for an engine's server, not a test itself: health, models, streamed completions, and the profiling endpoints of vLLM.

It answers in the forms of OpenAI's API. --log FILE gets a line for each POST. --slow-start waits, --die-after N ends with
code 9 in the middle of the N-th completion. --trace FILE is copied to the folder --traces when profiling stops.
"""
import argparse
import http.server
import json
import os
import shutil
import threading
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log")
    parser.add_argument("--slow-start", type=float, default=0)
    parser.add_argument("--die-after", type=int)
    parser.add_argument("--token-ms", type=float, default=2)
    parser.add_argument("--profiler-config.profiler", dest="profiler")
    parser.add_argument("--trace", help="what its profiler writes")
    parser.add_argument("--traces", help="where")
    arguments = parser.parse_known_args()[0]
    lock = threading.Lock()
    completions, num_steps = [0], [0]

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def answer(self, code, document):
            body = json.dumps(document).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            if self.path == "/health":
                self.answer(200, {})
            elif self.path == "/v1/models":
                self.answer(200, {"data": [{"id": "playback"}]})
            else:
                self.answer(404, {"error": {"message": "unknown path"}})

        def chunk(self, text):
            data = text.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
            if arguments.log:
                with lock, open(arguments.log, "a") as log:
                    log.write(f"{self.path}\n")
            # A window of steps ends by itself, and then cannot be stopped: SGLang.
            if self.path == "/start_profile":
                num_steps[0] = body.get("num_steps", 0)
            if arguments.trace and self.path == ("/start_profile" if num_steps[0] else "/stop_profile"):
                shutil.copy(arguments.trace, arguments.traces)
            if self.path == "/stop_profile" and num_steps[0]:
                return self.answer(500, {})
            if self.path in ("/start_profile", "/stop_profile"):
                return self.answer(200 if arguments.profiler else 404, {})
            with lock:
                completions[0] += 1
                number = completions[0]
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for i in range(body["max_tokens"]):
                if number == arguments.die_after and i == body["max_tokens"] // 2:
                    os._exit(9)
                time.sleep(arguments.token_ms / 1000)
                self.chunk("data: " + json.dumps({"choices": [{"text": "a", "finish_reason": None}]}) + "\n\n")
            usage = {"prompt_tokens": len(body["prompt"]), "completion_tokens": body["max_tokens"]}
            self.chunk("data: " + json.dumps({"choices": [], "usage": usage}) + "\n\ndata: [DONE]\n\n")
            self.wfile.write(b"0\r\n\r\n")

    time.sleep(arguments.slow_start)
    http.server.ThreadingHTTPServer(("127.0.0.1", arguments.port), Handler).serve_forever()


if __name__ == "__main__":
    main()

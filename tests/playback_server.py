#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for an engine's server, not a test itself: health, models, streamed completions, and the profilers of engines.

It answers in the forms of OpenAI's API. --log FILE gets a line for each POST, with its body but for completions. --slow-start waits,
--die-after N ends with code 9 in the middle of the N-th completion. --trace FILE is copied when profiling stops, to --traces or where the
engine would write: --profiler-config.torch_profiler_dir of vLLM, SGLANG_TORCH_PROFILER_DIR of SGLang, whose windows of steps end by
themselves. TensorRT-LLM has no endpoints: its trace is written after the N-th completion, N being the end of TLLM_PROFILE_START_STOP.
Of several ranks of mpirun the first is the server.
"""
import argparse
import http.server
import json
import os
import shutil
import signal
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
    parser.add_argument("--profiler-config.torch_profiler_dir", dest="torch_profiler_dir")
    parser.add_argument("--trace", help="what its profiler writes")
    parser.add_argument("--traces", help="where")
    arguments = parser.parse_known_args()[0]
    if os.environ.get("OMPI_COMM_WORLD_RANK", "0") != "0":
        signal.pause()  # a worker: only the first rank answers
    lock = threading.Lock()
    completions, started = [0], [{}]
    traces = arguments.traces or arguments.torch_profiler_dir or os.environ.get("SGLANG_TORCH_PROFILER_DIR")
    trace_of_steps = os.environ.get("TLLM_TORCH_PROFILE_TRACE")
    last_step = int(os.environ.get("TLLM_PROFILE_START_STOP", "0-0").split("-")[1])

    def write_trace():
        """SGLang writes a file for each stage that is asked for, all others one."""
        for stage in started[0].get("profile_stages", [""]) if arguments.trace and traces else []:
            ending = ".gz" if arguments.trace.endswith(".gz") else ""
            shutil.copy(arguments.trace, f"{traces}/1700000000-TP-0{stage and '-' + stage}.trace.json{ending}")

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
            is_profile = self.path.endswith("_profile")
            if arguments.log:
                with lock, open(arguments.log, "a") as log:
                    log.write(f"{self.path}{' ' + json.dumps(body) if is_profile and body else ''}\n")
            if is_profile and not (arguments.profiler or traces):
                return self.answer(404, {})
            if self.path == "/start_profile":
                started[0] = body
            # A window of steps ends by itself, and then cannot be stopped: SGLang.
            ends_by_itself = "num_steps" in started[0] and not arguments.profiler
            if is_profile and (self.path == "/start_profile") == ends_by_itself:
                write_trace()
            if is_profile:
                return self.answer(500 if self.path == "/stop_profile" and ends_by_itself else 200, {})
            with lock:
                completions[0] += 1
                number = completions[0]
            if trace_of_steps and number == last_step:
                base, ending = os.path.splitext(trace_of_steps)
                shutil.copy(arguments.trace, f"{base}-rank-0{ending}")
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

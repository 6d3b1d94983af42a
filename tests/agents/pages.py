#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JSON of the commands in pages: each within its budget, together the whole document."""
import json
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
import testing
from agents.mcp_client import BYTES_PER_TOKEN, whole
from recording import make_recording

COMMANDS = [["analyze", "run.sqlite"], ["table", "kernels", "run.sqlite"], ["table", "layers", "layers.sqlite"],
            ["table", "ranges", "run.sqlite"], ["table", "launches", "layers.sqlite"], ["ncu", "plan", "run.sqlite"],
            ["compare", "run.sqlite", "layers.sqlite"], ["analyze", "run.sqlite", "--from", "1us"], ["merge", "job"],
            ["fleet", "status", "--to", "job"], ["fleet", "top", "--to", "job"], ["fleet", "layers", "--to", "job"],
            # By what they hold, whatever they are called.
            ["report", "of-yesterday"], ["compare", "of-yesterday", "of-yesterday"], ["compare", "run.sqlite", "of-yesterday"]]


def run(program, folder, words, code=0):
    result = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True)
    assert result.returncode == code, (words, result.returncode, result.stderr)
    return result.stdout if code == 0 else result.stderr


def pages_of(program, folder, words, max_tokens):
    pages, after = [], []
    while not pages or pages[-1]["next"] is not None:
        text = run(program, folder, [*words, "--json", "--max-tokens", str(max_tokens), *after])
        assert text.count("\n") == 1 and len(text.encode()) - 1 <= BYTES_PER_TOKEN * max_tokens, (words, max_tokens, len(text))
        pages.append(json.loads(text))
        assert list(pages[-1]) == ["schema", "schema_version", "from", "next", "value"], pages[-1]
        after = ["--page", pages[-1]["next"] or ""]
    return pages


def main():
    program = testing.arguments("program").program
    with tempfile.TemporaryDirectory(prefix="gpuwhy-pages-") as folder:
        make_recording(pathlib.Path(folder) / "run.sqlite", "analyze-llm")
        make_recording(pathlib.Path(folder) / "layers.sqlite", "table-layers")
        run(program, folder, ["analyze", "layers.sqlite", "--out", "job/rank-0"])
        run(program, folder, ["analyze", "run.sqlite", "--out", "out"])
        (pathlib.Path(folder) / "out/metrics.json").rename(pathlib.Path(folder) / "of-yesterday")
        assert "kernel_ns" in run(program, folder, ["explain", "of-yesterday", "capture.kernel_ns"])
        for words in COMMANDS:
            document = json.loads(run(program, folder, [*words, "--json"]))
            for max_tokens in (2000, 100_000):
                pages = pages_of(program, folder, words, max_tokens)
                assert whole(pages) == document, (words, max_tokens)
                print(f"{' '.join(words)}: {len(pages)} pages of {max_tokens} tokens")
        words = ["table", "kernels", "run.sqlite"]
        pages = pages_of(program, folder, words, 200)
        assert len(pages) > 2 and whole(pages) == json.loads(run(program, folder, [*words, "--json"]))
        for wrong, sentence in ((["--max-tokens", "500"], "is for JSON"), (["--json", "--page", "/1"], "requires --max-tokens"),
                                (["--json", "--max-tokens", "50"], "too small"), (["--json", "--max-tokens", "500", "--page", "/99"], "no address"),
                                (["--json", "--max-tokens", "500", "--page", "x"], "no address")):
            assert sentence in run(program, folder, [*words, *wrong], 2), wrong
    return 0


if __name__ == "__main__":
    sys.exit(main())

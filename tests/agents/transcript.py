#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A session with `gpuwhy mcp`: versions, tools, their schemas, pages, mistakes, paths that escape, cancelled requests.

Answers are compared with metrics.json of the same recording, which the program prints by another way.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
import testing
import jsonschema
from agents.mcp_client import PROTOCOLS, Client, whole
from recording import make_recording

TOOLS = ["open", "findings", "steps", "layers", "kernels", "explain", "compare", "plan_capture"]


def metrics_of(program, file, *options):
    return json.loads(subprocess.run([program, "analyze", file, "--json", *options], check=True, capture_output=True, text=True).stdout)


def value_at(metrics, key):
    """A number by the key of its row and its field, as kernels[0].total_ns."""
    value = metrics
    for step in key.replace("]", "").replace("[", ".").split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def check_keys(rows, metrics):
    """Every value of a row is the value at its key."""
    count = 0
    for row in rows:
        for field, value in row.items():
            if field != "key":
                assert value_at(metrics, f"{row['key']}.{field}") == value, (row["key"], field)
                count += 1
    return count


def check_protocol(program, root):
    for protocol in PROTOCOLS:
        client = Client(program, root, protocol)
        assert client.info["protocolVersion"] == protocol and client.info["serverInfo"]["name"] == "gpuwhy", client.info
        assert client.ask("ping") == {}
        batch = json.dumps([{"jsonrpc": "2.0", "id": 90, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/initialized"},
                            {"jsonrpc": "2.0", "id": 91, "method": "nothing"}])
        client.send(batch)
        answer = client.receive()
        if protocol == "2025-03-26":
            assert [one["id"] for one in answer] == [90, 91], answer
        else:
            assert answer["error"]["code"] == -32600, answer
        client.close()
    client = Client(program, root, "2099-01-01")
    assert client.info["protocolVersion"] == PROTOCOLS[-1], client.info
    assert client.ask_raw("resources/list")["error"]["code"] == -32601
    assert client.ask_raw("tools/call", {"name": "rm", "arguments": {}})["error"]["code"] == -32602
    for text, code in (("{", -32700), ("[" * 5000, -32700), (b"\xff\xfe", -32700), ("1", -32600), ('{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600),
                       ('{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600), ('{"jsonrpc": "2.0", "id": 1}', -32600),
                       ("x" * (3 << 20), -32600)):
        client.send(text)
        answer = client.receive()
        assert answer["error"]["code"] == code, (text[:40], answer)
    # What wants no answer gets none: the next answer is that of the next question.
    for text in ('{"jsonrpc": "2.0", "id": 7, "result": {}}', '{"jsonrpc": "2.0", "method": "unknown/notification"}', "", "  ",
                 '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "none"}}'):
        client.send(text)
    assert client.ask("ping") == {}
    client.close()


def check_schemas(client):
    tools = client.ask("tools/list")["tools"]
    assert [tool["name"] for tool in tools] == TOOLS, tools
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        assert tool["description"] and tool["annotations"]["readOnlyHint"] is True, tool
        assert {"max_tokens", "continuation"} <= set(tool["inputSchema"]["properties"]), tool
    return {tool["name"]: tool["inputSchema"] for tool in tools}


def check_answers(client, metrics, file):
    opened = client.call("open", path=file)
    assert opened["verdict"] == metrics["verdict"], opened
    count = check_keys([opened["capture"]] + opened["devices"] + opened["stages"], metrics)
    found = client.call("findings", path=file)
    assert len(found["findings"]) == len(metrics["findings"]) and found["verdict"] == metrics["verdict"]
    count += check_keys(found["findings"] + found["ledgers"], metrics)
    kernels = client.call("kernels", path=file, top=1000)
    assert len(kernels["kernels"]) == len(metrics["kernels"]) == kernels["rows_that_fit"]
    count += check_keys(kernels["kernels"] + kernels["families"], metrics)
    steps = client.call("steps", path=file, durations=True)
    count += check_keys(steps.get("steps", []) + steps.get("stages", []), metrics)
    layers = client.call("layers", path=file)
    if "cannot_answer" in layers:
        assert layers["cannot_answer"] and not metrics["structure"]["passes"], layers
    else:
        for table in ("passes", "parts", "slow_passes", "slow_layers"):
            assert len(layers[table]) == len(metrics["structure"][table]), table
            count += check_keys(layers[table], metrics)
    for row in (kernels["kernels"] or [])[:3]:
        explained = client.call("explain", path=file, key=f"{row['key']}.total_ns")
        assert explained["value"] == row["total_ns"] and explained["unit"] == "ns" and explained["formula"], explained
    return count


def check_pages(client, file):
    """Pages of any size give the same document."""
    for tool in ("findings", "kernels", "steps", "layers"):
        large = client.call(tool, path=file, max_tokens=100_000)
        for max_tokens in (200, 333, 1000):
            assert client.call(tool, path=file, max_tokens=max_tokens) == large, (tool, max_tokens)
    is_error, page = client.page("kernels", path=file, continuation="/nothing/3")
    assert is_error and "no address" in page["value"]["error"], page


def check_mistakes(client, schemas, file):
    wrong = [("open", {}), ("open", {"path": 3}), ("open", {"path": file, "colour": 1}), ("kernels", {"path": file, "top": 0}),
             ("kernels", {"path": file, "max_tokens": 10}), ("kernels", {"path": file, "max_tokens": "many"}),
             ("compare", {"base": file, "candidate": [file]}), ("compare", {"base": [], "candidate": [file]}),
             ("plan_capture", {"engine": "word"}), ("steps", {"path": file, "durations": "yes"}), ("open", {"path": "x" * 5000})]
    for tool, arguments in wrong:
        assert not jsonschema.Draft202012Validator(schemas[tool]).is_valid(arguments), (tool, arguments)
        is_error, page = client.page(tool, **arguments)
        assert is_error and page["value"]["error"], (tool, arguments, page)
    # What a schema cannot say.
    for tool, arguments in (("steps", {"path": file, "steps": "9..2"}), ("open", {"path": file, "from": "soon"}), ("plan_capture", {}),
                            ("explain", {"key": "no_such_word"}), ("explain", {"path": file, "key": "kernels[999].total_ns"}),
                            ("open", {"path": file, "marks": ["decode=no_such_range"]})):
        assert jsonschema.Draft202012Validator(schemas[tool]).is_valid(arguments), (tool, arguments)
        is_error, page = client.page(tool, **arguments)
        assert is_error and page["value"]["error"], (tool, arguments, page)
    is_error, page = client.page("kernels", path=file, stage="no_such_stage")
    assert not is_error and "no stage" in page["value"]["cannot_answer"], page


def check_escape(client, root, outside):
    (root / "link.sqlite").symlink_to(outside / "secret.sqlite")
    (root / "folder").symlink_to(outside)
    (root / "dangling").symlink_to(root / "nowhere")
    os.mkfifo(root / "pipe")
    bundle = root / "bundle"
    bundle.mkdir()
    (bundle / "metrics.json").symlink_to(outside / "metrics.json")
    piped = root / "piped"
    (piped / "nsys").mkdir(parents=True)
    os.mkfifo(piped / "metrics.json")
    (root / "inside.sqlite").symlink_to(root / "run.sqlite")
    for path in ("/etc/passwd", str(outside / "secret.sqlite"), "../outside/secret.sqlite", "bundle/../../outside/secret.sqlite", "link.sqlite",
                 "folder/secret.sqlite", "folder", "dangling", "pipe", "bundle", "piped", "", "no_such_file", "run.sqlite\0.txt", "~", "/dev/zero"):
        for tool, arguments in (("open", {"path": path}), ("findings", {"path": path}), ("explain", {"path": path, "key": "capture.kernel_ns"}),
                                ("compare", {"base": [path], "candidate": ["run.sqlite"]}), ("compare", {"base": ["run.sqlite"], "candidate": [path]}),
                                ("plan_capture", {"path": path})):
            is_error, page = client.page(tool, **arguments)
            value = json.dumps(page["value"])
            if (tool, path) == ("open", "piped"):
                is_error = is_error or "entries" in page["value"]
            assert is_error, (tool, path, page)
            assert str(outside) not in value.replace(json.dumps(path)[1:-1], "") and "SECRET" not in value, (tool, path, page)
    assert "verdict" in client.call("open", path="inside.sqlite")
    listed = [entry["path"] for entry in client.call("open", path=".")["entries"]]
    assert "run.sqlite" in listed and "inside.sqlite" in listed, listed
    assert not {"link.sqlite", "folder", "dangling", "pipe"} & set(listed), listed


def check_refusals(client, root):
    """What cannot be answered is an answer, with its reason."""
    (root / "text.sqlite").write_text("not a recording")
    (root / "report.nsys-rep").write_bytes(b"NVIDIA Tegra Profiler Report 4.0\0" + b"\0" * 500)
    for path in ("text.sqlite", "report.nsys-rep"):
        is_error, page = client.page("findings", path=path)
        assert page["value"].get("cannot_answer") and not is_error, page
        assert str(root) not in json.dumps(page), page


def check_cancel(program, root):
    """A request that waits, and one that is being answered, are not answered any more."""
    client = Client(program, root)
    requests = [json.dumps({"jsonrpc": "2.0", "id": f"slow{i}", "method": "tools/call",
                            "params": {"name": "findings", "arguments": {"path": "large.sqlite", "from": f"{i}ms"}}}) for i in range(3)]
    cancels = [json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": f"slow{i}", "reason": "test"}})
               for i in range(3)]
    client.send("\n".join(requests))
    time.sleep(0.05)  # the first one has begun
    client.send("\n".join(cancels))
    assert client.ask("ping") == {}
    client.close()


def check_changed_file(client, program, root):
    """A file that changed is read again."""
    before = client.call("open", path="changing.sqlite")
    time.sleep(0.02)
    (root / "changing.sqlite").unlink()
    make_recording(root / "changing.sqlite", "analyze-graph")
    after = client.call("open", path="changing.sqlite")
    assert after["verdict"] == metrics_of(program, root / "changing.sqlite")["verdict"] != before["verdict"]


def check_windows(client, program, root):
    for options in ({"steps": "1..2"}, {"from": "1us", "to": "3us"}):
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        result = subprocess.run([program, "analyze", root / "run.sqlite", "--json", *words], capture_output=True, text=True)
        is_error, page = client.page("open", path="run.sqlite", **options)
        if result.returncode == 0:
            window = json.loads(result.stdout)["capture"]["window"]
            assert page["value"]["capture"]["window"] == window and window, page
        else:
            assert is_error, page


def main():
    arguments = testing.arguments("program", "make-trace")
    program = os.path.abspath(arguments.program)
    with tempfile.TemporaryDirectory(prefix="gpuwhy-mcp-") as directory:
        root, outside = pathlib.Path(directory) / "root", pathlib.Path(directory) / "outside"
        root.mkdir()
        outside.mkdir()
        for name, case in (("run", "analyze-llm"), ("layers", "table-layers"), ("graph", "analyze-graph"), ("nocuda", "analyze-nocuda"), ("changing", "analyze-llm")):
            make_recording(root / f"{name}.sqlite", case)
        make_recording(outside / "secret.sqlite", "analyze-llm")
        (outside / "metrics.json").write_text('{"schema": "gpuwhy.metrics", "schema_version": 1, "verdict": "SECRET"}')
        subprocess.run([arguments.make_trace, root / "large.sqlite", "300000"], check=True, capture_output=True)
        check_protocol(program, root)
        client = Client(program, root)
        schemas = check_schemas(client)
        count = 0
        for name in ("run", "layers", "graph"):
            count += check_answers(client, metrics_of(program, root / f"{name}.sqlite"), f"{name}.sqlite")
            check_pages(client, f"{name}.sqlite")
        assert client.call("findings", path="nocuda.sqlite")["findings"], "no finding without a GPU"
        assert "cannot_answer" in client.call("kernels", path="nocuda.sqlite")
        assert "cannot_answer" in client.call("plan_capture", path="nocuda.sqlite")
        plan = client.call("plan_capture", path="run.sqlite")["plan"]
        printed = subprocess.run([program, "ncu", "plan", root / "run.sqlite", "--json"], check=True, capture_output=True, text=True).stdout
        assert plan["kernels"] == json.loads(printed)["kernels"], plan
        for engine in schemas["plan_capture"]["properties"]["engine"]["enum"]:
            assert "gpuwhy" in client.call("plan_capture", engine=engine)["recipe"], engine
        compared = client.call("compare", base=["run.sqlite"], candidate=["layers.sqlite"])
        printed = subprocess.run([program, "compare", "run.sqlite", "layers.sqlite", "--json"], check=True, capture_output=True, text=True, cwd=root).stdout
        assert compared == json.loads(printed), "compare differs from gpuwhy compare"
        for word in ("launch_bound", "MFU"):
            assert client.call("explain", key=word)["means"], word
        check_mistakes(client, schemas, "run.sqlite")
        check_windows(client, program, root)
        check_changed_file(client, program, root)
        check_escape(client, root, outside)
        check_refusals(client, root)
        before = sorted(path.name for path in root.iterdir())
        client.close()
        assert before == sorted(path.name for path in root.iterdir())
        check_cancel(program, root)
        print(f"{count} values equal those of metrics.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gpuwhy mcp` as the reference client of the protocol sees it: the package `mcp`.

It is in a virtual environment ($GPUWHY_PYTHON_PREFIX, default ~/.cache/gpuwhy/python; tools/install-deps.sh python).
"""
import asyncio
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
import testing
sys.path.append(str(TESTS / "python"))
from prefix import tools_python
from recording import make_recording


async def session_with(program, root):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    server = StdioServerParameters(command=program, args=["mcp", "--root", str(root)])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        info = await session.initialize()
        name = getattr(info, "serverInfo", None) or info.server_info
        assert name.name == "gpuwhy", info
        tools = (await session.list_tools()).tools
        assert len(tools) == 8, tools
        calls = [("open", {"path": "."}), ("open", {"path": "run.sqlite"}), ("findings", {"path": "run.sqlite"}), ("steps", {"path": "run.sqlite"}),
                 ("layers", {"path": "run.sqlite"}), ("kernels", {"path": "run.sqlite", "max_tokens": 300}), ("explain", {"key": "launch_bound"}),
                 ("compare", {"base": ["run.sqlite"], "candidate": ["run.sqlite"]}), ("plan_capture", {"engine": "vllm"})]
        for tool, arguments in calls:
            result = await session.call_tool(tool, arguments)
            assert not is_error(result), (tool, result)
            page = json.loads(result.content[0].text)
            assert page["schema"] == "gpuwhy.page" and page["value"], page
        for arguments in ({"path": "../outside"}, {"path": "/etc/passwd"}, {"path": "run.sqlite", "top": "x"}):
            assert is_error(await session.call_tool("kernels", arguments)), arguments
        await session.send_ping()
    print(f"{len(calls)} calls by the reference client")


def is_error(result):
    return getattr(result, "isError", None) or getattr(result, "is_error", False)


def main():
    arguments = testing.arguments("program", inside=False)  # inside: this Python has the client
    if arguments.inside:
        with tempfile.TemporaryDirectory(prefix="gpuwhy-mcp-") as directory:
            make_recording(pathlib.Path(directory) / "run.sqlite", "analyze-llm")
            asyncio.run(asyncio.wait_for(session_with(os.path.abspath(arguments.program), directory), 120))
        return 0
    return subprocess.run([tools_python(), __file__, *sys.argv[1:], "--inside"]).returncode


if __name__ == "__main__":
    sys.exit(main())

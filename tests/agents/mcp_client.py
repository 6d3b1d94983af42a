# SPDX-License-Identifier: Apache-2.0
"""A plain client of `gpuwhy mcp`: one line of JSON per message, and pages put together again."""
import json
import subprocess

BYTES_PER_TOKEN = 3  # as the program counts
PROTOCOLS = ("2024-11-05", "2025-03-26", "2025-06-18")


class Client:
    def __init__(self, program, root, protocol=PROTOCOLS[-1]):
        self.process = subprocess.Popen([program, "mcp", "--root", str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.next_id = 0
        self.info = self.ask("initialize", {"protocolVersion": protocol, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
        self.notify("notifications/initialized")

    def send(self, text):
        self.process.stdin.write((text if isinstance(text, bytes) else text.encode()) + b"\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), (line, self.process.poll())
        return json.loads(line)

    def notify(self, method, params=None):
        self.send(json.dumps({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}))

    def ask_raw(self, method, params=None):
        self.next_id += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.next_id, "method": method, **({} if params is None else {"params": params})}))
        answer = self.receive()
        assert answer["jsonrpc"] == "2.0" and answer["id"] == self.next_id, answer
        return answer

    def ask(self, method, params=None):
        answer = self.ask_raw(method, params)
        assert "result" in answer, answer
        return answer["result"]

    def page(self, tool, **arguments):
        """One answer of a tool, checked: {isError, page}."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert [part["type"] for part in result["content"]] == ["text"], result
        text = result["content"][0]["text"]
        budget = arguments.get("max_tokens", 2000)
        budget = budget if isinstance(budget, int) and 200 <= budget <= 100_000 else 2000
        assert len(text.encode()) <= BYTES_PER_TOKEN * budget, f"{tool} {arguments}: {len(text)} bytes"
        page = json.loads(text)
        assert page["schema"] == "gpuwhy.page", page
        return result["isError"], page

    def call(self, tool, **arguments):
        """The whole answer, page by page."""
        is_error, page = self.page(tool, **arguments)
        assert not is_error, page
        pages = [page]
        while pages[-1]["next"] is not None:
            is_error, page = self.page(tool, **arguments, continuation=pages[-1]["next"])
            assert not is_error and page["from"] == pages[-1]["next"], page
            pages.append(page)
        return whole(pages)

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(timeout=250)
        errors = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        assert code == 0 and not errors, (code, errors)


def whole(pages):
    """The document of its pages: rows are added, and what a page cuts goes on in the next."""
    document = pages[0]["value"]
    for page in pages[1:]:
        document = merged(document, page["value"], [word.replace("~1", "/").replace("~0", "~") for word in page["from"].split("/")[1:]])
    return document


def merged(before, more, place):
    if isinstance(more, list):
        # The place is a new row, or inside the last one.
        if place and int(place[0]) == len(before) - 1 and len(place) > 1:
            return before[:-1] + [merged(before[-1], more[0], place[1:])] + more[1:]
        return before + more
    result = dict(before)
    for number, (key, value) in enumerate(more.items()):
        is_continued = number == 0 and place and place[0] == key and key in before and len(place) > 1
        result[key] = merged(before[key], value, place[1:]) if is_continued else value
    return result

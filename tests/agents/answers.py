#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The questions of tests/answers/key.json, asked through the tools of `gpuwhy mcp` alone: the same answers must be reached."""
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "answers")]
import answers
from agents.mcp_client import Client


def main():
    arguments = answers.asked()
    wanted = answers.wanted()
    client = Client(arguments.program, arguments.corpus)
    num_right = num_pages = 0
    for name, answer in sorted(wanted.items()):
        path = f"{'nsys_sqlite' if name.endswith('.sqlite') else 'kineto'}/{name}"
        found = client.call("findings", path=path)
        objections = list(answers.objections(found, answer))
        # The first finding is in the first page, of the usual size.
        _, page = client.page("findings", path=path)
        if found["findings"] and page["value"]["findings"][0] != found["findings"][0]:
            objections.append("the first finding is not in the first page")
        num_right += not objections
        for objection in objections:
            print(f"{name} ({answer['case']}): {objection}")
    client.close()
    print(f"{num_right} of {len(wanted)} recordings are answered as the key says")
    return 0 if num_right >= arguments.least else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Command line of scripts that check the sources against a rule: --source SOURCE says what breaks it, --self-test plants faults."""
import argparse
import pathlib
import sys


def main(violations, self_test):
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test(arguments.source)
    found = violations(arguments.source)
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0

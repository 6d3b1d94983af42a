#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of the completion scripts in bash, zsh and fish."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

# line typed so far -> offers that must be there, offers that must not
CASES = [
    ("gpuwhy do", {"doctor"}, {"config"}),
    ("gpuwhy ", {"doctor", "table", "list", "completion", "--version"}, {"show", "gpus"}),
    ("gpuwhy list ", {"config", "gpus"}, {"doctor"}),
    ("gpuwhy list config run.m", {"run.mode="}, {"run.top_n_kernels="}),
    ("gpuwhy list config --o", {"--origin"}, {"--json"}),
    ("gpuwhy list g", {"gpus"}, {"keys"}),
]


def bash(script, line):
    driver = f"""
source {script}
compopt() {{ :; }}
COMP_LINE='{line}' COMP_POINT={len(line)}
_gpuwhy
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return subprocess.run(["bash", "--norc", "-c", driver], capture_output=True, text=True, check=True, timeout=250)


def fish(script, line):
    return subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
                          capture_output=True, text=True, check=True, timeout=250)


def zsh(script, line):
    """zsh completes only inside its line editor, so the functions it would call are replaced by ones that print."""
    driver = f"""
compdef() {{ :; }}
_files() {{ :; }}
source {script}
compadd() {{ print -l -- "${{(@P)@[-1]}}"; }}
words=({line} {"''" if line.endswith(" ") else ""})
CURRENT=${{#words}}
_gpuwhy
"""
    return subprocess.run(["zsh", "-f", "-c", driver], capture_output=True, text=True, check=True, timeout=250)


def main():
    program = testing.arguments("program").program
    tested = []
    for shell in (bash, zsh, fish):
        if not shutil.which(shell.__name__):
            print(f"not tested: {shell.__name__} is not installed")
            continue
        with tempfile.TemporaryDirectory() as directory:
            script = pathlib.Path(directory) / "script"
            script.write_text(subprocess.run([program, "completion", shell.__name__], capture_output=True,
                                             text=True, check=True).stdout)
            for line, wanted, unwanted in CASES:
                result = shell(script, line)
                assert not result.stderr, (shell.__name__, line, result.stderr)
                offers = {offer.split("\t")[0] for offer in result.stdout.split("\n")}
                current = line.split(" ")[-1]
                offers = {offer for offer in offers if offer.startswith(current)}
                assert wanted <= offers, (shell.__name__, line, offers)
                assert not unwanted & offers, (shell.__name__, line, offers)
        tested.append(shell.__name__)
    print("completes in", ", ".join(tested))
    return 0 if tested else 77


if __name__ == "__main__":
    sys.exit(main())

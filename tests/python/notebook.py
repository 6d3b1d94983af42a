#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of docs/notebooks: every cell runs, three questions are answered, each with a plot, and the report is shown."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))


def execute(notebook, directory):
    import nbformat
    from nbclient import NotebookClient

    document = nbformat.read(notebook, as_version=4)
    nbformat.validate(document)
    NotebookClient(document, timeout=120, kernel_name="python3", resources={"metadata": {"path": directory}}).execute()
    cells = [cell for cell in document.cells if cell.cell_type == "code"]
    pictures = sum("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs)
    frames = sum("<iframe" in "".join(output.get("data", {}).get("text/html", "")) for cell in cells for output in cell.outputs)
    answers = [output.text for cell in cells for output in cell.outputs if output.output_type == "stream"]
    assert pictures >= 3 and frames >= 1, (pictures, frames)
    assert sum(text.startswith("Answer:") for text in answers) == 3, answers
    print("".join(text for text in answers if text.startswith("Answer:")), end="")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--execute", nargs=2)
    arguments = parser.parse_args()
    if arguments.execute:
        execute(*arguments.execute)
        return
    from make_requests import Load, parser_of_loads, write_all
    from prefix import tools_python
    from recording import make_recording

    python = tools_python()
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(temporary)
        make_recording(directory / "decode.sqlite")
        serving = directory / "serving"
        serving.mkdir()
        write_all(Load(parser_of_loads().parse_args(["--requests", "80", "--seed", "3"])), serving)
        environment = {**os.environ, "GPUWHY_LIBRARY": arguments.library, "PYTHONPATH": str(arguments.source / "python"),
                       "MPLBACKEND": "module://matplotlib_inline.backend_inline", "IPYTHONDIR": str(directory / "ipython")}
        command = [python, __file__, "--library", arguments.library, "--source", arguments.source, "--execute",
                   arguments.source / "docs/notebooks/questions.ipynb", directory]
        sys.exit(subprocess.run(command, env=environment, timeout=280).returncode)


if __name__ == "__main__":
    main()

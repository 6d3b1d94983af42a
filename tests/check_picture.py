#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checker of the picture of the layers in docs/how-it-works.md: it is what the layer(...) lines of CMakeLists.txt say.

An arrow reads "is used by". A layer that another one brings along has no arrow of its own: what uses `ingest` uses `base` too.
`check_picture.py --source . --update` draws it again.
"""
import pathlib
import re
import shutil
import sys
import tempfile

from check_layers import allowed_includes
from violations import main

PAGE = "docs/how-it-works.md"
PICTURE = re.compile(r"```mermaid\n(.*?)```\n", re.S)


def picture(layers):
    """The layers from the lowest up, each with the layers that use it directly and through no other."""
    everything = {}  # what a layer reaches

    def reach(name):
        if name not in everything:
            everything[name] = layers[name].union(*(reach(used) for used in layers[name]))
        return everything[name]

    ordered = sorted(layers, key=lambda name: (len(reach(name)), name))
    lines = ["flowchart BT"]
    for name in ordered:
        users = [user for user in ordered if name in layers[user] and not any(name in reach(used) for used in layers[user])]
        lines.append(f"  {name} --> {' & '.join(users)}" if users else f"  {name}")
    return "\n".join(lines) + "\n"


def violations(source):
    drawn = PICTURE.search((source / PAGE).read_text())
    if not drawn:
        return [f"{PAGE} has no picture of the layers"]
    return [] if drawn[1] == picture(allowed_includes(source)) else [
        f"the picture in {PAGE} is not what the layer(...) lines say: tests/check_picture.py --source . --update draws it again"]


def update(source):
    page = source / PAGE
    page.write_text(PICTURE.sub(lambda _: f"```mermaid\n{picture(allowed_includes(source))}```\n", page.read_text()))


def self_test(source):
    """A layer that uses one more, one that is new, and a picture that is gone must each be found, and drawing again fixes them."""
    small = {"base": set(), "trace": {"base"}, "report": {"trace", "base"}, "alone": set()}
    assert picture(small) == "flowchart BT\n  alone\n  base --> trace\n  trace --> report\n  report\n", picture(small)
    plants = [("layer(trace USES base", "layer(trace USES base model"), ("layer(results USES base", "layer(extra USES base)\nlayer(results USES base")]
    with tempfile.TemporaryDirectory() as temporary:
        copy = pathlib.Path(temporary)
        (copy / "docs").mkdir()
        for before, after in plants:
            shutil.copy(source / PAGE, copy / PAGE)
            text = (source / "CMakeLists.txt").read_text()
            assert text.count(before) == 1, before
            (copy / "CMakeLists.txt").write_text(text.replace(before, after))
            assert len(violations(copy)) == 1, after
            update(copy)
            assert not violations(copy), after
        (copy / PAGE).write_text("no picture\n")
        assert len(violations(copy)) == 1
    print(f"{len(plants) + 1} planted differences found")


if __name__ == "__main__":
    if "--update" in sys.argv:
        sys.exit(update(pathlib.Path(sys.argv[sys.argv.index("--source") + 1])))
    sys.exit(main(violations, self_test))

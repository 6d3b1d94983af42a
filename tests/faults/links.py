#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of planted links in output folders: under the names of files, temporaries and folders. Their targets must not change; a link may
be replaced by the file, or the command refuses. Also checks the permissions of a bundle."""
import datetime
import os
import pathlib
import shutil
import subprocess

import common

VICTIM = "not to be touched\n"
# Beside the files of a recording or a bundle; also names that earlier versions used.
BESIDE = ("{}.scrubbed", "{}.clean", "{}.clean-journal", "{}-journal", "{}-wal", "{}-shm", "{}.tmp", "{}~")


class Place:
    """An output folder, and what the links in it point to: a file, a name that does not exist, a folder."""

    def __init__(self, root):
        self.folder, self.file, self.absent, self.inside = root / "out", root / "victim", root / "absent", root / "victims"
        for made in (self.folder, self.inside):
            made.mkdir(parents=True)
        self.file.write_text(VICTIM)
        self.file.chmod(0o640)

    def check(self):
        assert self.file.read_text() == VICTIM, "the file behind a link was written"
        assert self.file.stat().st_mode & 0o777 == 0o640, "the mode of the file behind a link was changed"
        assert not os.path.lexists(self.absent), "a file was made behind a link"
        assert not list(self.inside.iterdir()), f"files were made behind a link: {list(self.inside.iterdir())}"


def plant(place, names, target):
    for name in names:
        path = place.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(path):
            path.symlink_to(target)


def check_files(command, place, target):
    """Links under all final names (but of what the command is given) and beside them, and under the names of its temporaries, which a
    shell knows that becomes gpuwhy."""
    command.prepare(place.folder)
    plant(place, command.reference, target)
    plant(place, [beside.format(name) for name in command.reference for beside in BESIDE if not name.endswith(".sqlite") or "-" not in beside],
          target)
    temporaries = [f"{pathlib.Path(name).parent}/.{pathlib.Path(name).name}" for name in command.reference]
    lines = "".join(f'for n in 0 1 2 3 4 5; do ln -s "$TO" "$OUT/{name}.$$-$n.tmp"; done; ' for name in temporaries)
    words = command.words(place.folder)
    result = subprocess.run(["sh", "-c", lines + 'exec "$@"', "sh", *words], capture_output=True, text=True, timeout=250,
                            cwd=place.folder.parent, env={**os.environ, "OUT": str(place.folder), "TO": str(target)})
    place.check()
    # In a folder that holds anything under its names a report is refused, and the links stay.
    if command.name.startswith("analyze") and ", again" not in command.name:
        assert result.returncode == 2 and "gpuwhy did not write it" in result.stderr and not common.contents(place.folder), result
        return "refused, said"
    assert result.returncode in command.good, result
    written = common.contents(place.folder)  # without links
    changed = {name for name in command.reference if written.get(name) != command.reference[name]}
    assert not changed, f"not as without links: {changed}"
    return "complete"


def check_journals(command, place, suffix):
    """SQLite's own files beside a recording: it follows no links, and is not led to take one for a journal."""
    command.prepare(place.folder)
    plant(place, ["run.sqlite" + suffix], place.file)
    result = command.run(place.folder)
    place.check()
    if result.returncode:
        return command.judge(result, {}, place.folder)
    kept = [path for path in place.folder.rglob("*") if path.is_file() and not path.is_symlink()
            and common.SECRET.encode() in path.read_bytes()]
    assert not kept, f"exit 0, and secrets are left in {kept}"
    return "complete"


def check_run(command, place):
    """The names of bundles can be guessed: each is planted, for the next minutes."""
    now = datetime.datetime.now(datetime.timezone.utc)
    plant(place, [f"{now + datetime.timedelta(seconds=s):%Y%m%d-%H%M%S}" for s in range(-1, 120)], place.inside)
    result = command.run(place.folder)
    place.check()
    assert result.returncode == 0, result
    (bundle,) = [path for path in place.folder.iterdir() if not path.is_symlink()]
    assert bundle.name.endswith("-2"), bundle
    return "complete"


def refuse(result, place, word="is a link"):
    place.check()
    assert result.returncode == 1 and word in result.stderr and "internal error" not in result.stderr, result
    return "incomplete, said"


def check_rank(command, place):
    plant(place, ["job"], place.inside)
    ranks = {"GPUWHY_RUN_ID": "job", "RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
    return refuse(command.run(place.folder, ranks), place)


def check_modes(command, place):
    """Whatever the umask: a bundle, its folders and the scratch folder of its run are their owner's alone."""
    told = place.folder.parent / "told"
    argv = command.words(place.folder)
    argv = argv[:argv.index("--")] + ["--", "sh", "-c", f'stat -c %a "$(dirname "$GPUWHY_NVTX_DIR")" > {told}; exit 0']
    result = subprocess.run(argv, capture_output=True, text=True, timeout=250, umask=0)
    assert result.returncode == 0, result
    assert told.read_text() == "700\n", told.read_text()
    (bundle,) = place.folder.iterdir()
    folders = [bundle, *[path for path in bundle.rglob("*") if path.is_dir()]]
    modes = {str(path): oct(path.stat().st_mode & 0o777) for path in folders}
    assert len(folders) >= 4 and set(modes.values()) == {"0o700"}, modes
    return "complete"


def main(asked, scratch):
    outcomes = common.Outcomes()
    commands = {command.name: command for command in common.commands(asked.program, asked.workload, scratch)}
    for command in commands.values():
        command.learn(scratch / "reference" / command.name.replace(" ", "_") / "out")
    run = commands["run"]
    checks = [(command.name, fault, check_files, command, target) for command in commands.values() if command is not run
              for fault, target in (("to a file", "file"), ("to nothing", "absent"), ("to a folder", "inside"))]
    checks += [("scrub", f"{suffix} to a file", check_journals, commands["scrub"], suffix) for suffix in ("-journal", "-wal", "-shm")]
    checks += [("run", "as a bundle", check_run, run), ("run, of a rank", "as the run's folder", check_rank, run),
               ("run", "modes", check_modes, run)]
    for i, (name, fault, check, command, *more) in enumerate(checks):
        place = Place(scratch / f"place{i}")
        more = [getattr(place, word, word) if isinstance(word, str) else word for word in more]
        outcomes.add(name, fault, lambda: check(command, place, *more))
        shutil.rmtree(scratch / f"place{i}")
    return outcomes.finish(len(checks))


common.main(main)

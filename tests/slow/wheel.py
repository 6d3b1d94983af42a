#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of the wheel: built from the sdist, installed into clean environments, used and removed.

Builds both with packaging/wheel.sh, minutes of all processors, unless GPUWHY_WHEEL names a wheel. The oldest and the newest Python
of this machine from 3.9 on get it, without an index: whatever it needs is inside.
"""
import glob
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "python")]
from prefix import tools_python  # noqa: E402
from recording import make_recording  # noqa: E402

SOURCE = TESTS.parent
MOST_BYTES = 12_000_000
OLDEST = (3, 9)
USE = """
import gc, gpuwhy, os, sys
assert "GPUWHY_LIBRARY" not in os.environ and gpuwhy.__file__.startswith(sys.prefix), gpuwhy.__file__
p = gpuwhy.open("run.sqlite", model="llama_3_1_8b")
assert p.verdict and len(p.launches) == 257 and p.kernels[0].calls == 256 and p.metrics["verdict"] == p.verdict
assert "<html" in p.html()
for number in range(100):  # an exception inside the library, a hundred times
    try:
        gpuwhy.open("nothing.sqlite")
    except gpuwhy.Error as error:
        assert "nothing.sqlite" in str(error)
    else:
        sys.exit("a file that is not there was read")
stream = p.launches.__arrow_c_stream__()
del stream, p
gc.collect()
with gpuwhy.mark("prefill", tokens=512):
    pass
print(gpuwhy.compare("run.sqlite", "run.sqlite").verdict)
"""


def interpreters():
    """Every Python of this machine by its version."""
    found = {}
    candidates = [sys.executable, "/usr/bin/python3", *glob.glob(str(pathlib.Path.home() / ".pyenv/versions/*/bin/python"))]
    for folder in os.environ.get("PATH", "").split(":"):
        candidates += glob.glob(f"{folder}/python3.[0-9]*")
    for path in candidates:
        if re.search(r"python(3(\.\d+)?)?$", path) and os.access(path, os.X_OK):
            try:
                asked = subprocess.run([path, "-c", "import ensurepip, sys, venv; print(*sys.version_info[:3])"],
                                       capture_output=True, text=True, timeout=250)
            except OSError:
                continue
            if asked.returncode == 0:
                found.setdefault(tuple(map(int, asked.stdout.split())), path)
    return {version: path for version, path in sorted(found.items()) if version >= OLDEST}


def files_of(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def run(*command, **keywords):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=280, **keywords)
    return result


def must(*command, **keywords):
    result = run(*command, **keywords)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def check_contents(wheel):
    assert wheel.stat().st_size < MOST_BYTES, f"{wheel.name} has {wheel.stat().st_size} bytes"
    version = re.search(r"project\(gpuwhy VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]
    assert re.fullmatch(rf"gpuwhy-{version}-py3-none-manylinux_2_\d+_\w+\.whl", wheel.name), wheel.name
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as temporary:
        names = set(archive.namelist())
        scripts = f"gpuwhy-{version}.data/scripts/gpuwhy"
        wanted = {"gpuwhy/__init__.py", "gpuwhy/py.typed", "gpuwhy/libgpuwhy.so", "gpuwhy/libgpuwhy_marks.so", scripts,
                  f"gpuwhy-{version}.dist-info/licenses/LICENSE"}
        assert wanted <= names, wanted - names
        strays = {name for name in names if not name.startswith(("gpuwhy/", f"gpuwhy-{version}."))}
        assert not strays, strays
        assert archive.read(scripts)[:4] == b"\x7fELF", "the command is not the program itself"
        needed = must("readelf", "-d", archive.extract("gpuwhy/libgpuwhy.so", temporary))
        libraries = set(re.findall(r"NEEDED.*\[(.*)\]", needed))
        assert libraries <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"} and "TEXTREL" not in needed, needed
        exported = must("nm", "-D", "--defined-only", f"{temporary}/gpuwhy/libgpuwhy.so").split()
        foreign = [name for name in exported if name.startswith(("sqlite3", "deflate", "SHA256", "_ZN4YAML", "_ZNSt"))]
        assert not foreign, foreign
    print(f"{wheel.name}: {wheel.stat().st_size} bytes, needs {', '.join(sorted(libraries))}")
    return version


def check_install(wheel, version, python, directory):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GPUWHY_", "VIRTUAL"))}
    venv = directory / f"venv-{pathlib.Path(python).resolve().name}-{version}"
    must(python, "-m", "venv", venv)
    before = files_of(venv)
    pip = [venv / "bin/python", "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
    must(*pip, "install", "--no-index", wheel, env=environment)
    assert must(venv / "bin/gpuwhy", "--version", env=environment).startswith(f"gpuwhy {version}")
    doctor = run(venv / "bin/gpuwhy", "doctor", env=environment)
    assert doctor.returncode in (0, 5) and doctor.stdout, doctor
    must(venv / "bin/gpuwhy", "analyze", "run.sqlite", cwd=directory, env=environment)
    must(venv / "bin/python", "-X", "dev", "-W", "error", "-c", USE, cwd=directory, env=environment)
    must(*pip, "check", env=environment)
    must(*pip, "uninstall", "-y", "gpuwhy", env=environment)
    left = files_of(venv) - before
    left = {name for name in left if "/pip/" not in name and "__pycache__" not in name}
    assert not left, f"uninstall leaves {left}"


def main():
    testing.arguments()
    python = tools_python()
    with testing.scratch() as directory:
        if os.environ.get("GPUWHY_WHEEL"):
            wheel = pathlib.Path(os.environ["GPUWHY_WHEEL"])
        else:
            made = subprocess.run([SOURCE / "packaging/wheel.sh", directory / "made"], capture_output=True, text=True)
            if "tools/install-deps.sh static" in made.stderr + made.stdout and made.returncode:
                testing.skip("the static libraries are not here; tools/install-deps.sh static")
            assert made.returncode == 0, (made.stdout + made.stderr)[-4000:]
            wheel, = (directory / "made").glob("*.whl")
            sdist, = (directory / "made").glob("*.tar.gz")
            print(f"{sdist.name}: {sdist.stat().st_size} bytes; the wheel is built from it")
        version = check_contents(wheel)
        shown = must(python, "-m", "auditwheel", "show", wheel)
        assert wheel.name.split("-")[-1].removesuffix(".whl") in shown, shown
        make_recording(directory / "run.sqlite")
        pythons = interpreters()
        assert pythons, "there is no Python with venv"
        for number in sorted({min(pythons), max(pythons)}):
            check_install(wheel, version, pythons[number], directory)
            print(f"installed, used and removed with Python {'.'.join(map(str, number))}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of the packages on minimal systems: the static program on the previous Debian release, with an older C library, and the Debian
package on the current one. Both must print the same for a recording as the program that was built."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

from package import ROOT, make_debian, make_recording, run


def release():
    facts = dict(re.findall(r'^(\w+)="?([^"\n]*)', pathlib.Path("/etc/os-release").read_text(), re.M))
    return facts.get("VERSION_CODENAME")


def mirror():
    """Where this machine has its own packages from."""
    for file in sorted(pathlib.Path("/etc/apt").rglob("*")):
        if file.suffix in (".list", ".sources"):
            found = re.search(r"^(?:URIs:|deb(?: \[[^\]]*\])?) *(\S+/debian)/?(?=\s|$)", file.read_text(), re.M)
            if found:
                return found[1]
    return None


class System:
    """The bare system of a release, in a folder."""

    def __init__(self, name, folder):
        self.root = folder / name
        run("debootstrap", "--variant=minbase", name, self.root, mirror())
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        (self.root / "etc/hosts").write_text(pathlib.Path("/etc/hosts").read_text() + "\n127.0.0.1 planted-server\n")
        # These modules are missing: code that calls them fails.
        (self.root / "etc/nsswitch.conf").write_text("passwd: files systemd\nhosts: mymachines resolve files dns\n")

    def command(self, *words):
        return ["chroot", str(self.root), "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
                "DEBIAN_FRONTEND=noninteractive", *map(str, words)]

    def run(self, *words):
        return run(*self.command(*words))

    def check(self, program, recording, truth):
        shutil.copy(recording, self.root / "root/run.sqlite")
        assert "gpuwhy" in self.run(program, "--version")
        metrics = json.loads(self.run(program, "analyze", "/root/run.sqlite", "--json"))
        assert metrics["kernels"] == truth["kernels"] and metrics["stages"] == truth["stages"]
        self.run(program, "analyze", "/root/run.sqlite", "--out", "/root/report")
        assert (self.root / "root/report/report.html").stat().st_size > 10_000
        asked = subprocess.run(self.command(program, "fleet", "status", "--to", "http://planted-server:1"),
                               capture_output=True, text=True, timeout=250)
        told = asked.stdout + asked.stderr
        assert asked.returncode != 0 and "Failed to connect to planted-server" in told, told


def check_static(build, folder, recording, truth):
    if "gpuwhy_static" not in run("cmake", "--build", build, "--target", "help"):
        print("skipped: no static libraries (tools/install-deps.sh static), so that there is no static program")
        return False
    tarball = folder / "gpuwhy.tar.gz"
    run(ROOT / "packaging/tarball.sh", build, tarball)
    older = {"trixie": "bookworm", "bookworm": "bullseye", "bullseye": "buster"}.get(release(), "bullseye")
    system = System(older, folder)
    run("tar", "-C", system.root / "opt", "-xzf", tarball)
    program = next(system.root.glob("opt/*/bin/gpuwhy"))
    assert "not a dynamic" in subprocess.run(["ldd", program], capture_output=True, text=True).stderr
    system.check(f"/{program.relative_to(system.root)}", recording, truth)
    print(f"static program: {program.stat().st_size / 1e6:.1f} MB, used on {older}")
    return True


def check_package(build, folder, recording, truth):
    package = make_debian(build, folder)
    if package is None:
        return False
    system = System(release(), folder)
    shutil.copy(package, system.root / "root/gpuwhy.deb")
    system.run("apt-get", "install", "-qq", "-y", "--no-install-recommends", "/root/gpuwhy.deb")
    system.check("gpuwhy", recording, truth)
    system.run("apt-get", "remove", "-qq", "-y", "gpuwhy")
    left = [path for path in system.root.glob("usr/**/*gpuwhy*") if not path.is_dir()]
    assert not left, left
    print(f"{package.name}: installed, used and removed on {release()}")
    return True


def main():
    asked = testing.arguments("program")
    if "Debug" in run(asked.program, "--version"):
        testing.skip("packages are made of release builds")
    if os.geteuid() != 0 or not shutil.which("debootstrap") or not mirror():
        testing.skip("needs root, debootstrap and a Debian mirror")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuwhy-chroot-"))
    try:
        recording = make_recording(folder / "run.sqlite")
        truth = json.loads(run(asked.program, "analyze", recording, "--json"))
        build = pathlib.Path(asked.program).parent
        are_proven = [check(build, folder, recording, truth) for check in (check_static, check_package)]
    finally:
        shutil.rmtree(folder)
    return 0 if all(are_proven) else 77


if __name__ == "__main__":
    sys.exit(main())

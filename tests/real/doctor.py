#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""doctor with the real nsys and ncu: what it says of them must be what they say of themselves."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing


def output(*argv):
    result = subprocess.run(argv, capture_output=True, text=True, timeout=250)
    return result.stdout + result.stderr


def doctor(program, *arguments, **environment):
    result = subprocess.run([program, "doctor", "--json", *arguments], env={**os.environ, **environment},
                            capture_output=True, text=True, timeout=120)
    return json.loads(result.stdout), result.returncode


def check_of(report, name):
    return next(check for check in report["checks"] if check["id"] == name)


def path_without_tools(directory):
    """A PATH on which everything but the tools is found."""
    for name in ("sh", "nvidia-smi"):
        if found := shutil.which(name):
            (directory / name).symlink_to(found)
    return str(directory)


def main():
    program = testing.arguments("program").program
    if not shutil.which("nsys") or not shutil.which("ncu"):
        testing.skip("nsys and ncu are not installed (tools/install-deps.sh nsight)")

    report, code = doctor(program)
    assert code == 0, code
    assert report["schema"] == "gpuwhy.doctor" and report["schema_version"] == 1

    nsys = report["tools"]["nsys"]
    assert nsys["version_full"] in output("nsys", "--version"), nsys
    assert nsys["version_full"].startswith(nsys["version"])
    reports = re.findall(r"^  (\w+).* -- ", output("nsys", "stats", "--help-reports"), re.M)
    assert len(reports) > 10 and nsys["dialect"]["reports"] == reports, nsys["dialect"]
    assert nsys["dialect"]["kernel_summary_report"] in reports
    assert nsys["dialect"]["report_names_from"] == "tool"
    profile_help = output("nsys", "profile", "--help")
    for option, available in nsys["dialect"]["options"].items():
        spelled = re.search(rf"^\s*(-\w, )?{option}=", profile_help, re.M) is not None
        assert available == spelled, (option, available)
    assert check_of(report, "nsys_importer")["status"] == "OK", check_of(report, "nsys_importer")

    ncu = report["tools"]["ncu"]
    assert f"Version {ncu['version_full']}" in output("ncu", "--version"), ncu
    sets = output("ncu", "--list-sets")
    assert re.search(rf"^{ncu['dialect']['default_set']} .* yes ", sets, re.M), ncu
    assert all(re.search(rf"^{name} ", sets, re.M) for name in ncu["dialect"]["sets"])
    ncu_help = output("ncu", "--help")
    for option, available in ncu["dialect"]["options"].items():
        spelled = re.search(rf"^\s+(-\w \[ )?{option}( |$)", ncu_help, re.M) is not None
        assert available == spelled, (option, available)

    has_driver = pathlib.Path("/proc/driver/nvidia/version").exists()
    assert check_of(report, "driver")["status"] == ("OK" if has_driver else "FAIL")
    _, strict = doctor(program, "--strict")
    assert strict == (5 if report["summary"]["fail"] else 0), strict
    if not has_driver:
        assert strict == 5
        assert "no NVIDIA driver" in check_of(report, "driver")["finding"]

    with testing.scratch() as directory:
        bare, code = doctor(program, PATH=path_without_tools(directory))
        assert code == 0
        for tool in ("nsys", "ncu"):
            if bare["tools"][tool] is None:
                check = check_of(bare, tool)
                assert check["status"] == "FAIL" and "apt-get install" in check["remedy"], check
            else:
                print(f"note: {tool} is also installed at {bare['tools'][tool]['path']}")

        # The real program without its importer, as Debian's two trees leave it.
        alone = directory / "target-linux-x64"
        alone.mkdir()
        real = pathlib.Path(shutil.which("nsys")).resolve()
        if real.parent.name == alone.name:
            shutil.copy(real, alone)
            lone, _ = doctor(program, GPUWHY_NSYS=str(alone / "nsys"))
            check = check_of(lone, "nsys_importer")
            assert check["status"] == "FAIL" and "QdstrmImporter" in check["finding"] and check["remedy"], check
        else:
            print(f"note: {real} is not laid out like NVIDIA's: the missing importer is not tested")

        fake = directory / "new-nsys"
        fake.write_text("#!/bin/sh\necho 'NVIDIA Nsight Systems version 2025.3.1.90-253135822126v0'\n")
        fake.chmod(0o755)
        new, _ = doctor(program, GPUWHY_NSYS=str(fake))
        assert new["tools"]["nsys"]["version"] == "2025.3.1"
        assert new["tools"]["nsys"]["dialect"]["kernel_summary_report"] == "cuda_gpu_kern_sum"
        assert new["tools"]["nsys"]["dialect"]["report_names_from"] == "version"
        assert new["tools"]["nsys"]["dialect"]["options"] is None
    print(f"nsys {nsys['version']}, ncu {ncu['version']}: as they say themselves")
    return 0


if __name__ == "__main__":
    sys.exit(main())

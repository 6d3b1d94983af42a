#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes an SPDX 2.3 document: gpuwhy and the libraries it is built with, by the versions that are installed here.

The time in it is SOURCE_DATE_EPOCH, or that of the last commit: the same source on the same system gives the same bytes."""
import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

# Debian's package of each library, and its licence.
LIBRARIES = {"libcli11-dev": "BSD-3-Clause", "libfmt-dev": "MIT", "nlohmann-json3-dev": "MIT", "libssl-dev": "Apache-2.0",
             "libprotozero-dev": "BSD-2-Clause", "libsimdjson-dev": "Apache-2.0", "libsqlite3-dev": "blessing",
             "libyaml-cpp-dev": "MIT", "zlib1g-dev": "Zlib", "libcurl4-openssl-dev": "curl"}


def said(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, **more).stdout.strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, required=True)
    asked = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[1]
    version = re.search(r"project\(gpuwhy VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text())[1]
    used = (root / "CMakeLists.txt").read_text().lower()
    packages = [("gpuwhy", version, "Apache-2.0")]
    for name, licence in LIBRARIES.items():
        installed = said("dpkg-query", "-W", "-f", "${Version}", name)
        if installed and (name != "libcurl4-openssl-dev" or "curl" in used):
            packages.append((name, installed, licence))
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or said("git", "-C", str(root), "log", "-1", "--format=%ct") or 0)
    listed = json.dumps(packages)
    document = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"gpuwhy-{version}",
                "documentNamespace": f"urn:gpuwhy:{version}:{hashlib.sha256(listed.encode()).hexdigest()}",
                "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)),
                                 "creators": ["Tool: gpuwhy packaging/sbom.py"]},
                "packages": [{"SPDXID": f"SPDXRef-{name.replace('_', '-')}", "name": name, "versionInfo": number,
                              "licenseDeclared": licence, "licenseConcluded": licence, "downloadLocation": "NOASSERTION",
                              "filesAnalyzed": False, "copyrightText": "NOASSERTION"} for name, number, licence in packages],
                "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                                   "relatedSpdxElement": "SPDXRef-gpuwhy"}] +
                                 [{"spdxElementId": "SPDXRef-gpuwhy", "relationshipType": "DEPENDS_ON",
                                   "relatedSpdxElement": f"SPDXRef-{name}"} for name, _, _ in packages[1:]]}
    asked.out.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

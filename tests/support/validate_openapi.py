#!/usr/bin/env python3
"""Validates an OpenAPI document with the openapi-spec-validator package, an implementation independent of ours.

usage: validate_openapi.py VENV_DIR DOCUMENT COMMAND..

Runs COMMAND with MILLRACE_OPENAPI_OUT=DOCUMENT, installs the validator into VENV_DIR when it is not there, and
validates DOCUMENT. Exit code 77 (skipped) only when the package cannot be installed.
"""
import os
import pathlib
import subprocess
import sys
import venv

PACKAGE = "openapi-spec-validator==0.7.1"
CHECK = """
import json, sys
from openapi_spec_validator import OpenAPIV31SpecValidator
document = json.load(open(sys.argv[1]))
faults = list(OpenAPIV31SpecValidator(document).iter_errors())
for fault in faults:
    print("/".join(str(part) for part in fault.absolute_path), fault.message)
print(f"{len(document['paths'])} paths, {len(faults)} faults")
sys.exit(1 if faults else 0)
"""


def main():
    folder, document, command = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    subprocess.run(command, env={**os.environ, "MILLRACE_OPENAPI_OUT": document}, check=True, stdout=subprocess.DEVNULL)
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    if subprocess.run([python, "-c", "import openapi_spec_validator"], capture_output=True).returncode != 0:
        pip = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE],
                             capture_output=True, text=True)
        if pip.returncode != 0:
            print(f"SKIPPED: cannot install {PACKAGE}: {pip.stderr.strip().splitlines()[-1:]}")
            return 77
    return subprocess.run([python, "-c", CHECK, document]).returncode


sys.exit(main())

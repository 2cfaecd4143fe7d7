"""Resolve this software together with each package that people install beside it.

Usage::

    .venv/bin/python tools/neighbours.py [--python 3.11] [PACKAGE ...]

Needs uv (extra `release`) and a package index. Nothing is installed. A package that does not
resolve with all extras is tried with the base install, and the reason of the resolver is printed.
Exit code 1 if a package resolves with neither.
"""

import argparse
import re
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = "pyqt6,segment,onnx,bundle,dicom,register,parquet,prompt"
NEIGHBOURS = (
    "batchgenerators",
    "cellpose",
    "dicom2nifti",
    "highdicom",
    "itk",
    "MedPy",
    "monai",
    "monailabel",
    "napari-animation",
    "napari-nninteractive",
    "napari-skimage-regionprops",
    "napari-sam",
    "nnunetv2",
    "panoptica",
    "pydicom-seg",
    "pyradiomics",
    "segment-anything-hq",
    "SimpleITK",
    "surface-distance",
    "torchio",
    "TotalSegmentator",
)


def resolve(package: str, extras: str, python: str) -> tuple[bool, str]:
    """Return whether a package resolves, and its version or the reason why it does not."""
    done = subprocess.run(
        [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--python-version", python, "-"],
        input=f"napari-mamamia[{extras}] @ {ROOT.as_uri()}\n{package}\n",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return False, textwrap.indent(done.stderr.strip(), "    ")
    (version,) = re.findall(rf"(?mi)^{re.escape(package)}==(\S+)", done.stdout)
    return True, version


def main() -> int:
    """Print a line for each package."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", nargs="*", default=NEIGHBOURS, metavar="PACKAGE")
    parser.add_argument("--python", default="3.11")
    options = parser.parse_args()
    n_resolved = 0
    for package in options.packages:
        resolves, result = resolve(package, EXTRAS, options.python)
        print(f"{package:28} {result if resolves else 'not with all extras:'}", flush=True)
        if not resolves:
            print(result)
            resolves, result = resolve(package, "", options.python)
            print(f"{package:28} base install: {result if resolves else 'no'}", flush=True)
        n_resolved += resolves
    print(f"{n_resolved} of {len(options.packages)} resolve with Python {options.python}")
    return n_resolved < len(options.packages)


if __name__ == "__main__":
    sys.exit(main())

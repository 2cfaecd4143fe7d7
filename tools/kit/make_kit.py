"""An archive that installs this software without a network: wheels, documentation and a demo.

Usage::

    .venv/bin/python tools/kit/make_kit.py [--python /usr/bin/python3] [--extras pyside6 dicom]

The archive is ``dist/napari-mamamia-VERSION-kit-cpXY-linux-ARCHITECTURE.tar.gz``. The packages have
the versions and hashes of the lock files of the extras. PySide6 (LGPL) is taken rather than PyQt6
(GPL), because a kit passes the packages on. `install.sh` in the archive verifies and installs.
"""

import argparse
import hashlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


def merge_locks(texts: Sequence[str]) -> str:
    """Return the pins of several lock files, each once, in alphabetical order."""
    pins = {pin for text in texts for pin in re.findall(r"(?m)^\w.*(?:\n +--hash.*)+", text)}
    return "".join(f"{pin}\n" for pin in sorted(pins))


def hash_files(folder: Path) -> str:
    """Return the SHA-256 of each file below a folder, in the form of ``sha256sum``."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}\n"
        for path in files
    )


def run(*command: object) -> str:
    """Run a program, and return its output."""
    return subprocess.run(
        [str(word) for word in command], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def fill_kit(kit: Path, python: str, extras: Sequence[str]) -> None:
    """Write the contents of a kit for one Python into an empty folder."""
    wheels = kit / "wheels"
    run(sys.executable, "-m", "build", "--wheel", "--outdir", wheels, ROOT)
    (wheel,) = wheels.iterdir()
    locks = [(ROOT / "locks" / f"{extra}.txt").read_text("utf-8") for extra in extras]
    requirements = kit / "requirements.txt"
    requirements.write_text(merge_locks(locks), "utf-8")
    pip = (python, "-m", "pip", "--disable-pip-version-check", "download", "--quiet")
    pip = (*pip, "--only-binary", ":all:", "--dest", wheels)
    run(*pip, "--require-hashes", "--requirement", requirements)
    run(*pip, "pip")  # `install.sh` uses it, because Debian's Python may have none
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    with requirements.open("a", encoding="utf-8") as stream:
        stream.write(f"napari-mamamia=={wheel.name.split('-')[1]} --hash=sha256:{sha256}\n")
    shutil.copytree(ROOT / "site", kit / "documentation")
    with tempfile.TemporaryDirectory() as folder:
        run(Path(sys.executable).with_name("mamamia"), "demo", "--out", Path(folder) / "demo")
        shutil.copytree(Path(folder) / "demo" / "dataset", kit / "demo")
    for path in (HERE / "install.sh", HERE / "README.txt", ROOT / ".ci/system-libraries"):
        shutil.copy(path, kit)
    version = run(python, "-c", "import sys; print('{}.{}'.format(*sys.version_info))").strip()
    (kit / "python-version").write_text(f"{version}\n", "utf-8")
    (kit / "SHA256SUMS").write_text(hash_files(kit), "utf-8")


def main() -> None:
    """Make the archive."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="the Python to install for")
    parser.add_argument("--extras", nargs="+", default=["pyside6", "dicom"])
    options = parser.parse_args()
    if not (ROOT / "site").is_dir():
        sys.exit("expected the documentation in site: run `make docs` first")
    with tempfile.TemporaryDirectory(prefix="mamamia-kit-") as folder:
        kit = Path(folder) / "kit"
        kit.mkdir()
        fill_kit(kit, options.python, options.extras)
        (wheel,) = (kit / "wheels").glob("napari_mamamia-*.whl")
        python = "cp" + (kit / "python-version").read_text("utf-8").strip().replace(".", "")
        name = f"napari-mamamia-{wheel.name.split('-')[1]}-kit-{python}-linux-{platform.machine()}"
        archive = ROOT / "dist" / f"{name}.tar.gz"
        archive.parent.mkdir(exist_ok=True)
        with tarfile.open(archive, "w:gz", compresslevel=1) as stream:  # wheels are compressed
            stream.add(kit, name)
    print(f"{archive}: {archive.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()

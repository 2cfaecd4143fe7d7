"""Wheel and sdist: built twice, equal bit for bit, and tried in clean environments.

Usage::

    .venv/bin/python tools/release.py                  # `make release`: all of it, 10 minutes, 5 GB
    .venv/bin/python tools/release.py --only build base  # some of the checks

Checks, in this order: ``build`` (two builds, compared; the sdist holds all that git tracks; twine
and check-wheel-contents accept both), ``base`` (the wheel without extras: no Qt, no torch, no
display; demo), ``all`` (the wheel with the extra ``all``: prediction, the window), ``sdist`` (its
tests are found, and some of each room run, from the unpacked archive). What is built stays in
``dist``; environments are made in a temporary folder and removed. A tree with changes that are not
committed is refused.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
CHECKS = ("build", "base", "all", "sdist")
HEAVY = ("torch", "napari", "PyQt6", "PySide6", "qtpy", "pydicom", "SimpleITK", "dask", "monai")
SOME_TESTS = (
    *("tests/core", "tests/metrics", "tests/test_locks.py", "tests/commands/test_manifest.py"),
    *("tests/io/test_saving.py", "tests/io/test_nifti_write.py", "tests/io/test_ods.py"),
    *(
        "tests/io/test_protocol.py",
        "tests/io/test_dicom_seg.py",
        "tests/features/perfusion/test_qiba_objects.py",
    ),
    *(
        "tests/cli/test_options.py",
        "tests/cli/test_cli_scores.py",
        "tests/phantom/test_phantom_spec.py",
    ),
)
"""Of each room, with files beside the tests, with papers, and through the command line."""


def run(*command: object, folder: Path = ROOT, more: Mapping[str, str] | None = None) -> str:
    """Run a program without a display and return what it said; the release ends where it fails."""
    kept = {"PATH", "HOME", "LANG", "SSL_CERT_FILE", "TMPDIR"}
    given = {key: text for key, text in os.environ.items() if key in kept or key[:4] == "PIP_"}
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=folder,
        env={**given, **(more or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
        raise SystemExit(f"{tail}\n\n{' '.join(words)}: exit code {done.returncode}")
    return done.stdout


def say(text: str) -> None:
    """Print one result."""
    print(f"  {text}", flush=True)


def sha256(path: Path) -> str:
    """Return a file's checksum."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build(scratch: Path) -> None:
    """Build twice from the committed state and compare; what is equal is put into ``dist``."""
    if changes := run("git", "status", "--porcelain"):
        raise SystemExit(f"commit these first, a release is of one commit:\n{changes}")
    when = run("git", "log", "-1", "--format=%ct").strip()
    for name in ("one", "two"):
        run(
            *(sys.executable, "-m", "build", "--outdir", scratch / name, ROOT),
            more={"SOURCE_DATE_EPOCH": when},
        )
    files = sorted(path.name for path in (scratch / "one").iterdir())
    for name in files:
        first, second = (sha256(scratch / folder / name) for folder in ("one", "two"))
        if first != second:
            raise SystemExit(f"{name} differs between two builds of one commit")
        say(f"{name} twice {first}")
    require_whole(scratch / "one")
    require_accepted(sorted((scratch / "one").iterdir()))
    shutil.rmtree(DIST, ignore_errors=True)
    shutil.copytree(scratch / "one", DIST)


def require_whole(folder: Path) -> None:
    """Compare what git tracks with the sdist, and its package with the wheel."""
    tracked = set(run("git", "ls-files").splitlines())
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        installed = {f"src/{name}" for name in wheel.namelist() if ".dist-info/" not in name}
    wanted = {name for name in tracked if name.startswith("src/")}
    wrong = {
        "in git, not in the sdist": tracked - inside,
        "in the sdist, not in git": inside - tracked - {"PKG-INFO"},
        "in git, not in the wheel": wanted - installed,
        "in the wheel, not in git": installed - wanted,
    }
    if any(wrong.values()):
        raise SystemExit("\n".join(f"{what}: {sorted(names)}" for what, names in wrong.items()))
    say(f"the sdist holds the {len(tracked)} files of the commit, the wheel the package")


def require_accepted(files: Sequence[Path]) -> None:
    """Check the files as a package index does, by twine and check-wheel-contents.

    Raises
    ------
    SystemExit
        If a program rejects a file, or is not installed.
    """
    wheels = [path for path in files if path.suffix == ".whl"]
    for module, words in (
        ("twine", ("check", "--strict", *files)),
        ("check_wheel_contents", wheels),
    ):
        if find_spec(module) is None:
            raise SystemExit(
                f"expected {module} to check the built files, but it is not installed: run "
                "make .venv/release.done"
            )
        run(sys.executable, "-m", module, *words)
        say(f"{module} accepts the built files")


def built(pattern: str) -> Path:
    """Return the one built file of a kind."""
    found = [*DIST.glob(pattern)]
    if len(found) != 1:
        raise SystemExit(f"expected one {pattern} in {DIST}, got {len(found)}: --only build first")
    return found[0]


def environment(folder: Path, *wishes: str) -> Path:
    """Make a clean environment with some packages in it; return its folder of programs."""
    run(sys.executable, "-m", "venv", folder)
    programs = folder / "bin"
    pip = (programs / "python", "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "-c", ROOT / "constraints.txt", *wishes)
    run(*pip, "check")
    return programs


def check_base(scratch: Path) -> None:
    """Use the wheel without extras: where no display and nothing heavy is."""
    programs = environment(scratch / "base", str(built("*.whl")))
    names = run(programs / "python", "-m", "pip", "list", "--format=freeze").lower()
    heavy = [name for name in HEAVY if f"\n{name.lower()}=" in f"\n{names}"]
    if heavy:
        raise SystemExit(f"the base install brought {heavy}")
    mamamia, demo = programs / "mamamia", scratch / "demo"
    run(programs / "python", "-P", "-c", "import napari_mamamia", folder=scratch)
    run(mamamia, "--help", folder=scratch)
    told = run(mamamia, "--version", folder=scratch).strip()
    if not told.endswith(built("*.whl").name.split("-")[1]):
        raise SystemExit(f"mamamia --version says {told}, the wheel is {built('*.whl').name}")
    say(f"{told}: {len(names.splitlines())} packages, none heavy")
    run(mamamia, "demo", "--out", demo, folder=scratch)
    masks = len([*(demo / "workspace").rglob("*.nii.gz")])
    say(f"demo without a display: {masks} masks, scores, report, export")


STEPS = ["step_work_list", "step_read", "step_mask", "step_check"]
WINDOW = """
import sys
import napari
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QWidget
viewer = napari.Viewer()
viewer.window.add_plugin_dock_widget("napari-mamamia")
def look():
    window = viewer.window._qt_window
    shown = [one.objectName() for one in window.findChildren(QWidget) if one.isVisible()]
    print([name for name in shown if name.startswith("step_") and name != "step_bar"])
    window.grab().save(sys.argv[1])
    viewer.close()
QTimer.singleShot(3000, look)
napari.run()
"""


def check_all(scratch: Path) -> None:
    """Use the wheel with the extra ``all``: a prediction, and the window on a screen of its own."""
    wheel = built("*.whl")
    programs = environment(scratch / "all", f"{wheel}[all]", f"{wheel}[test,lint,docs,bench]")
    count = len(run(programs / "python", "-m", "pip", "list", "--format=freeze").splitlines())
    say(f"[all] and the tests' packages resolve: {count} packages, pip check is content")
    mamamia, demo = programs / "mamamia", scratch / "demo of all"
    if not demo.exists():
        run(mamamia, "demo", "--out", demo, folder=scratch)
    out = scratch / "predictions"
    run(mamamia, "predict", demo / "dataset", "--model", "kinetic", "--out", out, folder=scratch)
    say(f"predict --model kinetic: {len([*out.rglob('*.nii.gz')])} masks")
    picture = DIST.parent / "dist" / "window.png"
    screen = ("xvfb-run", "-a", "-s", "-screen 0 1400x900x24")
    said = run(*screen, programs / "python", "-P", "-c", WINDOW, picture, folder=scratch)
    if said.strip().splitlines()[-1] != str(STEPS) or not picture.exists():
        raise SystemExit(f"the window should show the steps {STEPS}, got {said}")
    picture.unlink()
    say(f"the window opens: {said.strip().splitlines()[-1]}")


def check_sdist(scratch: Path) -> None:
    """Unpack the sdist, find all of its tests and run some, with the environment of ``all``."""
    programs = scratch / "all" / "bin"
    if not programs.exists():
        wheel = built("*.whl")
        programs = environment(scratch / "all", f"{wheel}[all]", f"{wheel}[test,lint,docs,bench]")
    with tarfile.open(built("*.tar.gz")) as archive:
        archive.extractall(scratch / "sdist", filter="data")
    (top,) = (scratch / "sdist").iterdir()
    tests: Sequence[object] = (
        programs / "python",
        "-P",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
    )
    found = run(*tests, "--collect-only", "tests", folder=top).strip().splitlines()[-1]
    say(f"sdist: {found}")
    own = {"PYTHONPATH": str(top / "src")}
    said = run(*tests, "-m", "not night", *SOME_TESTS, folder=top, more=own)
    say(f"sdist, some of its tests: {said.strip().splitlines()[-1]}")


def main() -> int:
    """Run the checks that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=CHECKS, default=CHECKS)
    wanted = parser.parse_args().only
    steps = {"build": build, "base": check_base, "all": check_all, "sdist": check_sdist}
    with tempfile.TemporaryDirectory(prefix="mamamia-release-") as folder:
        for name in CHECKS:
            if name in wanted:
                print(name, flush=True)
                steps[name](Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())

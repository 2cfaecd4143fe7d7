"""The kit's installer: installs without a network, and refuses what it should not install."""

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pip
import pytest

TOP = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def make_kit():
    spec = importlib.util.spec_from_file_location("make_kit", TOP / "tools/kit/make_kit.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_wheel(path):
    """A wheel with one program, `mamamia`, that prints a version."""
    contents = {
        "small.py": "def main():\n    print('napari-mamamia 9.9')\n",
        "napari_mamamia-9.9.dist-info/METADATA": (
            "Metadata-Version: 2.1\nName: napari-mamamia\nVersion: 9.9\n"
        ),
        "napari_mamamia-9.9.dist-info/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
        "napari_mamamia-9.9.dist-info/entry_points.txt": (
            "[console_scripts]\nmamamia = small:main\n"
        ),
    }
    record = "".join(f"{name},,\n" for name in contents)
    contents["napari_mamamia-9.9.dist-info/RECORD"] = record
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in contents.items():
            wheel.writestr(name, text)


@pytest.fixture
def kit(tmp_path, make_kit):
    """A small kit: a wheel of our own, pip, and the real scripts."""
    folder = tmp_path / "kit"
    wheels = folder / "wheels"
    wheels.mkdir(parents=True)
    wheel = wheels / "napari_mamamia-9.9-py3-none-any.whl"
    write_wheel(wheel)
    package = Path(pip.__file__).parent
    with zipfile.ZipFile(wheels / f"pip-{pip.__version__}-py3-none-any.whl", "w") as archive:
        for path in package.rglob("*"):
            if path.suffix != ".pyc":
                archive.write(path, path.relative_to(package.parent))
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (folder / "requirements.txt").write_text(f"napari-mamamia==9.9 --hash=sha256:{sha256}\n")
    for name in ("documentation", "demo"):
        (folder / name).mkdir()
        (folder / name / "file").write_text(name)
    for path in (TOP / "tools/kit/install.sh", TOP / ".ci/system-libraries"):
        shutil.copy(path, folder)
    (folder / "python-version").write_text("{}.{}\n".format(*sys.version_info))
    (folder / "SHA256SUMS").write_text(make_kit.hash_files(folder))
    return folder


def install(kit, target):
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    return subprocess.run(
        ["sh", str(kit / "install.sh"), str(target)],
        env={"PATH": path, "HOME": str(kit.parent)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_whole_kit_installs_and_says_what_it_installed(kit, tmp_path):
    installed = install(kit, tmp_path / "app")
    assert installed.returncode == 0, installed.stderr
    assert "napari-mamamia 9.9" in installed.stdout
    assert "1 Python packages" in installed.stdout
    assert (tmp_path / "app/demo/file").read_text() == "demo"
    second = install(kit, tmp_path / "app")
    assert second.returncode == 1
    assert "there already" in second.stderr


def test_a_changed_file_of_a_kit_is_named_and_nothing_installed(kit, tmp_path):
    (kit / "demo/file").write_text("changed")
    refused = install(kit, tmp_path / "app")
    assert refused.returncode == 1
    assert "demo/file: FAILED" in refused.stdout
    assert not (tmp_path / "app").exists()


def test_a_wheel_of_another_hash_is_not_installed(kit, tmp_path, make_kit):
    with zipfile.ZipFile(kit / "wheels/napari_mamamia-9.9-py3-none-any.whl", "a") as wheel:
        wheel.writestr("more.py", "")
    (kit / "SHA256SUMS").unlink()
    (kit / "SHA256SUMS").write_text(make_kit.hash_files(kit))
    refused = install(kit, tmp_path / "app")
    assert refused.returncode == 1
    assert "do not match the hashes" in refused.stderr.lower()
    assert not (tmp_path / "app").exists()


def test_a_kit_for_another_python_is_refused(kit, tmp_path, make_kit):
    (kit / "python-version").write_text("3.99\n")
    (kit / "SHA256SUMS").unlink()
    (kit / "SHA256SUMS").write_text(make_kit.hash_files(kit))
    refused = install(kit, tmp_path / "app")
    assert refused.returncode == 1
    assert "python3.99" in refused.stderr


def test_pins_of_several_lock_files_are_merged(make_kit):
    first = (
        "# head\na==1 \\\n    --hash=sha256:aa\n    # via\n    #   b\n"
        "b==2 \\\n    --hash=sha256:bb\n"
    )
    second = (
        "a==1 \\\n    --hash=sha256:aa\nc==3 \\\n    --hash=sha256:cc \\\n    --hash=sha256:dd\n"
    )
    merged = make_kit.merge_locks([first, second])
    assert merged == (
        "a==1 \\\n    --hash=sha256:aa\nb==2 \\\n    --hash=sha256:bb\n"
        "c==3 \\\n    --hash=sha256:cc \\\n    --hash=sha256:dd\n"
    )
    locks = [(TOP / f"locks/{name}.txt").read_text("utf-8") for name in ("pyside6", "dicom")]
    names = {line.split("==")[0] for text in locks for line in text.splitlines() if "==" in line}
    merged = make_kit.merge_locks(locks).splitlines()
    assert {line.split("==")[0] for line in merged if "==" in line} == {
        name for name in names if not name.startswith(("#", " "))
    }

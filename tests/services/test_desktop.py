"""`mamamia desktop`: an entry in the menu of programs."""

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from tests.cli.warm_program import mamamia

from napari_mamamia.core.errors import SaveConflictError, SaveError
from napari_mamamia.services import desktop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has .desktop files")


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    folder = tmp_path / "my data"
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    return folder


def read_entry(path):
    parser = configparser.ConfigParser(interpolation=None, delimiters="=")
    parser.optionxform = str
    parser.read(path, "utf-8")
    return parser["Desktop Entry"]


def test_the_entry_starts_the_programs_command_and_has_its_icon(data):
    answer = mamamia("desktop")
    assert answer.returncode == 0, answer.stderr
    path = data / "applications" / "napari-mamamia.desktop"
    entry = read_entry(path)
    program, *words = shlex.split(entry["Exec"])
    assert os.access(program, os.X_OK)
    assert words == ["view", "--in-window", "%F"]
    icon = data / "icons" / "hicolor" / "scalable" / "apps" / "napari-mamamia.svg"
    assert entry["Icon"] == str(icon)
    assert icon.read_text("utf-8").startswith("<svg")
    if shutil.which("desktop-file-validate"):
        subprocess.run(["desktop-file-validate", path], check=True)
    assert mamamia("desktop").returncode == 0
    assert mamamia("desktop", "--remove").returncode == 0
    assert not [file for file in data.rglob("*") if file.is_file()]
    assert mamamia("desktop", "--remove").returncode == 0


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("act", [desktop.install_entry, desktop.remove_entry])
def test_a_file_of_another_program_is_neither_replaced_nor_removed(act, which):
    file = desktop.desktop_files()[which]
    file.parent.mkdir(parents=True)
    file.write_text("[Desktop Entry]\nName=Another\n")
    with pytest.raises(SaveConflictError):
        act()
    assert file.read_text() == "[Desktop Entry]\nName=Another\n"
    assert not desktop.desktop_files()[1 - which].exists()


def test_a_link_is_not_followed(tmp_path):
    entry, _icon = desktop.desktop_files()
    entry.parent.mkdir(parents=True)
    target = tmp_path / "target"
    target.write_text("X-Napari-Mamamia=true")
    entry.symlink_to(target)
    with pytest.raises(SaveConflictError):
        desktop.install_entry()
    assert target.read_text() == "X-Napari-Mamamia=true"


def test_another_system_gets_the_way_to_make_a_shortcut(monkeypatch):
    monkeypatch.setattr(desktop, "IS_LINUX", False)
    with pytest.raises(SaveError):
        desktop.install_entry()


def test_odd_characters_of_the_programs_path_are_escaped(tmp_path, monkeypatch):
    folder = tmp_path / 'a $b "c" 100%'
    folder.mkdir()
    (folder / "mamamia").write_text("")
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    text = read_entry(desktop.install_entry())["Exec"]
    # Desktop Entry Specification 1.5: \\\\ of a value is \\, then a quoted \\ precedes a character
    unescaped = text.replace("\\\\", "\\").replace("%%", "%")
    quoted = re.match(r'"((?:\\.|[^"\\])*)" view', unescaped)[1]
    assert re.sub(r"\\(.)", r"\1", quoted) == str(folder / "mamamia")

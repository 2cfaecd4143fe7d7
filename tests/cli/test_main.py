"""What `mamamia` does to its own process before any command runs."""

import importlib
import os
import sys

program = importlib.import_module("napari_mamamia.cli.app")  # the package names its `app` alone


def test_a_command_runs_in_a_process_that_has_let_go_of_the_current_folder(monkeypatch, tmp_path):
    """Else a library that starts `fc-list` or `lscpu` by itself takes the one that lies there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join((".", "", str(tmp_path), "/usr/bin")))
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    for name in ("_stop_at", "sweep_temporary"):
        monkeypatch.setattr(program, name, lambda *_: None)
    seen = []
    monkeypatch.setattr(program, "app", lambda: seen.append((os.environ["PATH"], *sys.path)))
    program.main()
    ((path, *folders),) = seen
    assert path == "/usr/bin"
    assert not {"", str(tmp_path)} & set(folders)

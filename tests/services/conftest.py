"""What the batch tests share: cases of small files, and work that notes its calls."""

import sys
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def importable_functions(monkeypatch):
    """Let this process and its workers import batch_functions."""
    folder = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", folder)
    yield
    sys.modules.pop("batch_functions", None)


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


@pytest.fixture
def work(notes):
    from batch_functions import Row, Settings, measure

    from napari_mamamia.services.batch.work import CaseWork

    return CaseWork("measure", measure, Settings(notes), Row)


@pytest.fixture
def cases_of(tmp_path):
    """Return a function from ids to cases; each has a file of as many bytes as its id's length."""
    from napari_mamamia.services.batch.work import CaseInputs

    def make(*case_ids):
        for case_id in case_ids:
            (tmp_path / f"{case_id}.bin").write_bytes(b"x" * len(case_id))
        return [CaseInputs(case_id, (tmp_path / f"{case_id}.bin", None)) for case_id in case_ids]

    return make


@pytest.fixture
def is_running():
    """Return a function that says whether a process of that number is still at work."""

    def find(pid):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state != "Z"

    return find

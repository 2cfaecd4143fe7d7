"""The notebooks of docs/notebooks run from their first cell to the last and end with a picture."""

import json
import os
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel

pytestmark = pytest.mark.door

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PATIENCE_S = 240


def _code(path):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def _run(path, folder):
    """Return, for each cell run in a kernel of its own, the messages that it gave."""
    for name in ("here", "temporary"):
        (folder / name).mkdir()
    own = {**os.environ, "TMPDIR": str(folder / "temporary")}
    manager, client = start_new_kernel(cwd=str(folder / "here"), env=own)
    said = []
    try:
        for cell in _code(path):
            said.append([])
            client.execute_interactive(
                "".join(cell["source"]), timeout=PATIENCE_S, output_hook=said[-1].append
            )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return [[(m["msg_type"], m["content"]) for m in messages] for messages in said]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_says_nothing_on_the_error_stream_and_ends_with_a_picture(path, tmp_path):
    cells = _run(path, tmp_path)
    said = [message for messages in cells for message in messages]
    errors = ["\n".join(content["traceback"]) for kind, content in said if kind == "error"]
    assert not errors, errors[0]
    streams = [content for kind, content in said if kind == "stream"]
    assert [content["text"] for content in streams if content["name"] == "stderr"] == []
    shown = [content["data"] for kind, content in cells[-1] if kind == "display_data"]
    assert any("image/png" in data for data in shown)
    assert list((tmp_path / "here").iterdir()) == []


def test_there_are_six_and_none_keeps_its_outputs():
    assert len(NOTEBOOKS) == 6
    for path in NOTEBOOKS:
        assert not any(cell["outputs"] or cell["execution_count"] for cell in _code(path)), path
        first = json.loads(path.read_text("utf-8"))["cells"][0]
        assert "".join(first["source"]).startswith("# "), path

"""The notebooks of docs/notebooks run from their first cell to the last and end with a picture."""

import ast
import inspect
import json
import os
from operator import attrgetter
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel

import napari_mamamia as mm

pytestmark = pytest.mark.door

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PATIENCE_S = 240


def _code(path):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


NOBODY = "http://127.0.0.1:9"


def _run(path, folder, exam_address=NOBODY):
    """Return, for each cell run in a kernel of its own, the messages that it gave."""
    for name in ("here", "temporary"):
        (folder / name).mkdir()
    own = {
        **os.environ,
        "TMPDIR": str(folder / "temporary"),
        "MAMAMIA_EXAM_ADDRESS": exam_address,
    }
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


BY_DAY = "1_first_case"
"""Of the others the names and options alone are looked at: each takes 9 s."""


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=[] if p.stem == BY_DAY else [pytest.mark.night]) for p in NOTEBOOKS],
    ids=lambda path: path.stem,
)
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


def _calls(path):
    """Yield each name of the library that a notebook reads, with the call's own, if it is one."""
    tree = ast.parse("\n".join("".join(cell["source"]) for cell in _code(path)))
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
        if text.startswith("mm.") and text.replace(".", "").isidentifier():
            yield text, called.get(id(node))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_function_of_the_library_that_a_notebook_calls_takes_what_it_gives(path):
    found = list(_calls(path))
    assert len(found) > 1
    for text, call in found:
        value = attrgetter(text.removeprefix("mm."))(mm)
        if call is not None:
            names = {one.arg: None for one in call.keywords if one.arg}
            inspect.signature(value).bind(*call.args, **names)


def test_there_are_eight_and_none_keeps_its_outputs():
    assert len(NOTEBOOKS) == 8
    for path in NOTEBOOKS:
        assert not any(cell["outputs"] or cell["execution_count"] for cell in _code(path)), path
        first = json.loads(path.read_text("utf-8"))["cells"][0]
        assert "".join(first["source"]).startswith("# "), path

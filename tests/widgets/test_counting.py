"""Slices are counted from 1 and phases are named pre and post wherever a person reads them."""

import ast
import re
from pathlib import Path

import napari_mamamia
from napari_mamamia.widgets.viewer.slice_view import CaseSteps

SOURCE = Path(napari_mamamia.__file__).parent
READ_BY_PEOPLE = (
    *(SOURCE / "widgets").rglob("*.py"),
    *(SOURCE / "features").glob("*/widgets/**/*.py"),
    *(SOURCE / "services" / "report").rglob("*.py"),
    *(SOURCE / "scoring" / "report").rglob("*.py"),
)
COUNTED_FROM_0 = re.compile(r"phase \{|phases \{|on the slider|from 0 to \{last\}|phase 0\b")


def texts_of(path):
    """Yield the texts of a module without its docstrings; a field of an f-string is {}."""
    tree = ast.parse(path.read_text("utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inner = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "{" for part in node.values)
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and id(node) not in docs | inner:
            yield str(node.value)


def test_no_text_of_window_or_report_counts_from_0():
    counted = {
        f"{path.relative_to(SOURCE)}: {text}"
        for path in READ_BY_PEOPLE
        for text in texts_of(path)
        if COUNTED_FROM_0.search(text)
    }
    assert counted == set()


def test_each_name_of_a_phase_knows_how_many_phases_are_before_contrast():
    """With two scans before contrast phase 2 is "post 1"; an import does not know it yet."""
    arguments = {"phase_name": 2, "phase_and_time": 3, "phases_text": 2}
    short = {
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        if not path.is_relative_to(SOURCE / "widgets" / "dicom")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and len(node.args) + len(node.keywords) < arguments.get(node.func.id, 0)
    }
    assert short == set()


def test_the_sliders_count_slices_from_1_and_phases_from_the_last_before_contrast(opened):
    steps = CaseSteps(opened.scene.stack)
    n_phases, n_slices, *_ = opened.scene.layer("phase").data.shape
    phase, piece = steps.number(0), steps.number(1)
    assert (piece.first, piece.last) == (1, n_slices)
    assert (phase.first, phase.last) == (0, n_phases - 1)

"""The walks of DESIGN.md go where the program goes."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
SOURCE = TOP / "src" / "napari_mamamia"


def walks_in_design():
    """Return each walk's steps, (module, function), by its name."""
    section = (TOP / "DESIGN.md").read_text("utf-8").split("## Four walks")[1].split("\n## ")[0]
    walks = {}
    for name, line in re.findall(r"(?m)^\| \*\*(\w+)\*\*(.*)$", section):
        module, steps = "", []
        for word in re.findall(r"`([^`]+)`", line):
            if word.endswith(".py"):
                module = word
            else:
                steps.append((module, word))
        walks[name] = steps
    return walks


WALKS = walks_in_design()


def test_there_is_a_walk_for_each_of_the_four():
    assert sorted(WALKS) == ["import", "predict", "score", "stroke"]
    assert min(map(len, WALKS.values())) >= 8


@pytest.mark.parametrize("name", WALKS)
def test_each_step_of_a_walk_is_a_function_where_it_is_said_to_be(name):
    missing = []
    for module, function in WALKS[name]:
        tree = ast.parse((SOURCE / module).read_text("utf-8"))
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        if function not in names:
            missing.append((module, function))
    assert missing == []


@pytest.mark.night
def test_the_program_goes_through_each_step():
    spec = importlib.util.spec_from_file_location("architecture", TOP / "tools" / "architecture.py")
    architecture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(architecture)
    for name, walk in architecture.walks(WALKS).items():
        met = {(module, function.split(".")[-1]) for _, module, function in walk.lines}
        steps = [step for step in WALKS[name] if not step[0].startswith("widgets/")]
        assert [step for step in steps if step not in met] == []

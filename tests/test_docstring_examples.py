"""Each example in a docstring of the program says what it prints.

pytest's own collection of examples imports every module in each of its workers, half a minute of
processor time each: here only the text is read until an example is run.
"""

import ast
import doctest
import importlib
from functools import cache
from io import StringIO
from pathlib import Path

import pytest

import napari_mamamia

SOURCE = Path(napari_mamamia.__file__).parent
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
SKIP = doctest.OPTIONFLAGS_BY_NAME["SKIP"]


def names_with_examples(text, module):
    """Return the full names of what a module's text gives a docstring with an example."""
    found = []

    def look(node, name):
        if ">>>" in (ast.get_docstring(node) or ""):
            found.append(name)
        for part in node.body:
            if isinstance(part, ast.ClassDef | ast.FunctionDef):
                look(part, f"{name}.{part.name}")

    look(ast.parse(text), module)
    return found


def examples_of_all():
    """Return each module's name with the names in it that have an example."""
    pairs = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text("utf-8")
        if ">>>" in text:
            parts = path.relative_to(SOURCE.parent).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            pairs += [(module, name) for name in names_with_examples(text, module)]
    return pairs


ALL = examples_of_all()


def test_every_prompt_in_the_source_belongs_to_an_example_that_is_run():
    prompts = sum(path.read_text("utf-8").count(">>> ") for path in SOURCE.rglob("*.py"))
    assert sum(len(found_in(module)[name].examples) for module, name in ALL) == prompts


@cache
def found_in(module):
    """Return what doctest finds in a module, by name."""
    return {t.name: t for t in doctest.DocTestFinder().find(importlib.import_module(module))}


@pytest.mark.parametrize(("module", "name"), ALL, ids=[name for _, name in ALL])
def test_an_example_prints_what_it_says(module, name):
    example = found_in(module)[name]
    if all(part.options.get(SKIP) for part in example.examples):
        pytest.skip("it needs files of a user")
    said = StringIO()
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(example, out=said.write)
    assert runner.failures == 0, said.getvalue()
    assert runner.tries > 0

"""What is public: nobody changes a name, a signature or a first line without saying so."""

import ast
import dataclasses
import importlib
import inspect
import subprocess
import sys
import textwrap
import typing
from pathlib import Path

import pytest

import napari_mamamia as mm

HERE = Path(__file__).parent
LIST = HERE / "public.txt"
DOORS = ("napari_mamamia", "napari_mamamia.metrics", "napari_mamamia.kinetics")
HEAVY = ("torch", "napari", "qtpy", "PyQt6", "pandas", "numpy", "nibabel", "scipy", "rich")


def _node(thing):
    """Return the definition of a function or class as it stands in its module."""
    return ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]


def _signatures(thing):
    """Return a function's signatures as they are written, those of its overloads before."""
    every = [*typing.get_overloads(thing), thing]
    for one in every[:-1] or every:
        node = _node(one)
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        yield f"({ast.unparse(node.args)}){returns}"


def _first_line(thing):
    return (inspect.getdoc(thing) or "").split("\n")[0]


def _fields(kind):
    """Return the fields of a record, which is made by its name; nothing of other classes."""
    if not dataclasses.is_dataclass(kind):
        return ""
    lines = [one for one in _node(kind).body if isinstance(one, ast.AnnAssign)]
    return f"({', '.join(ast.unparse(line) for line in lines)})"


def _members(kind):
    for name, member in sorted(vars(kind).items()):
        if name.startswith("_") or inspect.ismemberdescriptor(member):
            continue
        function = getattr(member, "__func__", member)
        if inspect.isfunction(function):
            yield from (f"    {name}{one}" for one in _signatures(function))
            yield f"    {name}  # {_first_line(function)}"
        else:
            yield f"    {name}: a value  # {_first_line(member)}"


def public_lines():
    """Return every public name with signature and first line of its docstring."""
    for door in DOORS:
        package = importlib.import_module(door)
        yield f"== {door}"
        for name in sorted(package.__all__):
            if name == "__version__" or inspect.ismodule(getattr(package, name)):
                yield name
                continue
            thing = getattr(package, name)
            if inspect.isfunction(thing):
                yield from (f"{name}{one}" for one in _signatures(thing))
                yield f"{name}  # {_first_line(thing)}"
                continue
            is_error = inspect.isclass(thing) and issubclass(thing, Exception)
            yield f"{name}{'' if is_error else _fields(thing)}  # {_first_line(thing)}"
            if not is_error:
                yield from _members(thing)


def test_the_public_names_signatures_and_first_lines_are_those_of_the_list():
    now = "\n".join(public_lines()) + "\n"
    command = "python tests/library/test_public.py"
    assert now == LIST.read_text("utf-8"), (
        f"the public interface changed: read the rule in CONTRIBUTING.md, then run  {command}"
    )


def _imported_for_types(path):
    """Return the names that a package's block for type checkers imports."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            inner = [one for one in node.body if isinstance(one, ast.ImportFrom)]
            return {alias.asname for one in inner for alias in one.names}
    return set()


@pytest.mark.parametrize("door", DOORS)
def test_what_type_checkers_see_is_what_there_is_and_what_is_listed(door):
    package = importlib.import_module(door)
    listed = set(package.__all__) - {"__version__"}
    assert listed == _imported_for_types(Path(package.__file__))
    assert all(getattr(package, name) is not None for name in listed)
    assert listed <= set(dir(package))


@pytest.mark.parametrize("door", DOORS)
def test_every_public_function_says_what_it_returns_and_every_parameter(door):
    package = importlib.import_module(door)
    for name in package.__all__:
        thing = getattr(package, name)
        if not inspect.isfunction(thing):
            continue
        text = inspect.getdoc(thing)
        assert text, name
        if door == "napari_mamamia":
            for parameter in inspect.signature(thing).parameters:
                assert parameter in text, (name, parameter)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'scores_of'"):
        mm.scores_of  # noqa: B018 - it looks the name up


@pytest.mark.door
def test_importing_it_imports_nothing_else_and_using_it_no_qt_and_no_torch(data_set_of_module):
    told = "import sys; print(*[name for name in sys.argv[1:] if name in sys.modules])"
    program = f"import napari_mamamia as mm\n{told}\n"
    program += (
        f"data_set = mm.open_data_set({str(data_set_of_module)!r})\ndata_set.cases\n"
        f"case = data_set[0]\ncase.signal, case.reference, case.to_nibabel()\n"
        f"mm.score(case.reference, case.reference).cohort\n"
        f"mm.metrics.assd_mm(case.reference, case.reference)\n{told}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *HEAVY], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    at_import, in_use = done.stdout.split("\n")[:2]
    assert at_import == ""
    assert not set(in_use.split()) & {"torch", "napari", "qtpy", "PyQt6"}
    assert done.stderr == ""


if __name__ == "__main__":
    LIST.write_text("\n".join(public_lines()) + "\n", "utf-8")

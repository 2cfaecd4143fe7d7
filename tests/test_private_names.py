"""Each private name that a class reads of itself is there: Qt's classes hide that from mypy.

qtpy is untyped, so that a class which derives from one of Qt's takes any attribute.
"""

import ast
from functools import cache
from pathlib import Path

import napari_mamamia

SOURCE = Path(napari_mamamia.__file__).parent


def classes_of_all():
    """Return each class by its name with its module; names are looked up as bases are written."""
    classes = {}
    for path in sorted(SOURCE.rglob("*.py")):
        inner = ast.parse(path.read_text("utf-8")).body
        while inner:
            node = inner.pop()
            inner += [part for part in getattr(node, "body", ()) if isinstance(part, ast.stmt)]
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append((path, node))
    return classes


@cache
def parts_of(node):
    """Return all that a class is made of; each class is walked through once."""
    return tuple(ast.walk(node))


@cache
def names_made(node):
    """Return the names that a class gives itself: methods, fields, and what is assigned to self."""
    names = set()
    for part in parts_of(node):
        if isinstance(part, ast.FunctionDef):
            names.add(part.name)
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            names.add(part.id)
        elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
            names.add(part.attr)
    return names


def names_known(node, classes, seen):
    """Return the names of a class and of all that it derives from here."""
    names = set(names_made(node))
    for base in node.bases:
        name = ast.unparse(base).split("[")[0].split(".")[-1]
        for _, other in classes.get(name, ()):
            if id(other) not in seen:
                names |= names_known(other, classes, {*seen, id(other)})
    return names


def names_read(node):
    """Yield the private names that a class reads of self, with their lines."""
    for part in parts_of(node):
        if (
            isinstance(part, ast.Attribute)
            and isinstance(part.ctx, ast.Load)
            and isinstance(part.value, ast.Name)
            and part.value.id == "self"
            and part.attr.startswith("_")
            and not part.attr.startswith("__")
        ):
            yield part.attr, part.lineno


def missing_names():
    classes = classes_of_all()
    for name, homes in classes.items():
        for path, node in homes:
            known = names_known(node, classes, {id(node)})
            for attribute, line in names_read(node):
                if attribute not in known:
                    yield f"{path.relative_to(SOURCE)}:{line}: {name} has no {attribute}"


def test_every_private_name_that_a_class_reads_of_itself_is_there():
    assert list(missing_names()) == []


def test_a_name_that_is_missing_would_be_found():
    node = ast.parse("class A(B):\n def f(self):\n  return self._x + self._y").body[0]
    base = ast.parse("class B:\n def __init__(self):\n  self._y = 1").body[0]
    known = names_known(node, {"B": [(Path("b.py"), base)]}, set())
    assert [name for name, _ in names_read(node) if name not in known] == ["_x"]

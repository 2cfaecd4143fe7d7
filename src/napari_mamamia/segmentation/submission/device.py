"""Whether a program of somebody else's asks for CUDA by name; read as text, never run."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

__all__ = ["cuda_by_name"]

_CUDA: Final = re.compile(r"cuda(:\d+)?")
_ASKED: Final = "is_available"
_CALLS: Final = ("device", "to", "load")
_ARGUMENTS: Final = ("device", "map_location")


def cuda_by_name(files: Iterable[tuple[Path, str]]) -> str:
    r"""Return where the first of some Python files uses a CUDA device outright, "" if none does.

    That is ``"cuda"``, or a name or attribute that was given it, as what a call of ``device``,
    ``to`` or ``load`` gets or as its argument ``device`` or ``map_location``; or ``x.cuda()``. A
    file that asks whether there is a card is taken to do without.

    Examples
    --------
    >>> cuda_by_name([(Path("model.py"), "import torch\nnet.to('cuda:0')")])
    'model.py line 2'
    >>> cuda_by_name([(Path("model.py"), "net.to('cuda' if torch.cuda.is_available() else 'cpu')")])
    ''
    """
    for file, text in files:
        if file.suffix != ".py" or "cuda" not in text or _ASKED in text:
            continue
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # running it will say so
        names = {name for node in ast.walk(tree) for name in _names_for_cuda(node)}
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
        lines = [call.lineno for call in calls if _uses_cuda(call, names)]
        if lines:
            return f"{file.name} line {min(lines)}"
    return ""


def _names_for_cuda(node: ast.AST) -> Iterator[str]:
    """Yield the names and attributes that a node makes mean a CUDA device."""
    if isinstance(node, ast.Assign) and _is_cuda(node.value, set()):
        yield from (_name(target) for target in node.targets if _name(target))


def _uses_cuda(call: ast.Call, names: set[str]) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda":
        return True
    values = list(call.args) if _name(call.func) in _CALLS else []
    values += [keyword.value for keyword in call.keywords if keyword.arg in _ARGUMENTS]
    return any(_is_cuda(value, names) for value in values)


def _is_cuda(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and _CUDA.fullmatch(node.value) is not None
    return _name(node) in names


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""

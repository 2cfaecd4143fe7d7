"""What the command line prints of a refusal and its remedies, and how a user types these."""

import re
import shlex
from contextlib import contextmanager

import pytest

from napari_mamamia.cli.remedies import name_remedies
from napari_mamamia.core.errors import list_remedies


def as_printed(error: BaseException) -> str:
    """Return an error as the command line prints it."""
    return f"{error}{name_remedies(list_remedies(error))}"


@contextmanager
def refuses(kind, pattern):
    """Expect an error whose print matches a pattern."""
    with pytest.raises(kind) as caught:
        yield
    assert re.search(pattern, as_printed(caught.value)), as_printed(caught.value)


def printed_options(text: str) -> list[list[str]]:
    """Return the arguments of each alternative in brackets, in order.

    Examples
    --------
    >>> printed_options("it is a copy (--leave-out series=5, or --allow-thin)")
    [['--leave-out', 'series=5'], ['--allow-thin']]
    """
    brackets = re.findall(r"\((--[^()]*)\)", text)
    return [shlex.split(option) for bracket in brackets for option in bracket.split(", or ")]

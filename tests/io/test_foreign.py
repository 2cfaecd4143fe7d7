"""The door of every reader."""

from collections.abc import Iterator

import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import Cancelled
from napari_mamamia.io.files.foreign import reads


@reads("two numbers", "correct them")
def numbers(texts: list[str]) -> Iterator[float]:
    """Yield numbers; what is none ends it in the middle."""
    for text in texts:
        yield float(text)


def test_a_reader_that_yields_is_guarded_while_it_is_read_from() -> None:
    readings = numbers(["1", "two"])
    assert next(readings) == 1
    with pytest.raises(FormatError, match="expected two numbers at 1, but could not convert"):
        next(readings)


def test_what_its_caller_does_between_two_values_is_not_its_failure() -> None:
    def invert_all() -> list[float]:
        return [1 / number for number in numbers(["0", "1"])]

    with pytest.raises(ZeroDivisionError):
        invert_all()


def test_a_stop_passes_a_reader_that_yields() -> None:
    @reads("a number", "correct it")
    def stopped(_: str) -> Iterator[int]:
        yield 1
        raise Cancelled

    with pytest.raises(Cancelled):
        list(stopped("x"))

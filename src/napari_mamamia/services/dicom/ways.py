"""The ways on that a refusal names: each of them as options, in words, and as settings."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from napari_mamamia.core.choices import Clock, Sides
from napari_mamamia.io.exam.selectors import Selector, read_selectors
from napari_mamamia.io.exam.table import spans
from napari_mamamia.services.dicom.finding import ImportSettings

_BRACKETS: Final = re.compile(r"\((--[^()]*)\)")
_SIDES: Final = {
    Sides.JOIN: "join the two breasts into one case",
    Sides.TWO: "two cases, one of each breast",
}
_THIN: Final = "--allow-thin"
_WORDS: Final = {"none": "without number"}


@dataclass(frozen=True, slots=True)
class Way:
    """One answer to a refusal: `text` is what is typed behind the command."""

    text: str

    @property
    def arguments(self) -> tuple[str, ...]:
        """What is typed, argument by argument."""
        return tuple(shlex.split(self.text))

    @property
    def words(self) -> str:
        """The way as a button says it."""
        phrases = [_describe_option(name, value) for name, value in self._list_options()]
        return "; ".join(phrases)[:1].upper() + "; ".join(phrases)[1:]

    @property
    def names_parts(self) -> bool:
        """Whether it says what counts or does not, as the ticks of the table do."""
        return any(name in {"--use", "--leave-out"} for name, _ in self._list_options())

    @property
    def clock(self) -> Clock | None:
        """The clock that it names, None where it is about something else."""
        return next((Clock(v) for name, v in self._list_options() if name == "--clock"), None)

    @property
    def sides(self) -> Sides | None:
        """What it makes of two breasts, None where it is about something else."""
        return next((Sides(v) for name, v in self._list_options() if name == "--sides"), None)

    def applied(self, settings: ImportSettings) -> ImportSettings:
        """Return settings under which the import goes this way."""
        for name, value in self._list_options():
            settings = _set_option(settings, name, value)
        return settings

    def _list_options(self) -> Iterator[tuple[str, str]]:
        left = list(self.arguments)
        while left:
            name = left.pop(0)
            yield name, "" if name == _THIN else left.pop(0)


def ways_of(problem: str) -> tuple[Way, ...]:
    """Return the ways on that the text of a refusal names, none where it names none.

    Examples
    --------
    >>> [way.words for way in ways_of("one is a copy: leave it out (--leave-out series=5,phase=2)")]
    ['Leave out phase 2 of series 5']
    """
    return tuple(
        Way(text) for match in _BRACKETS.finditer(problem) for text in match.group(1).split(", or ")
    )


def _set_option(settings: ImportSettings, name: str, value: str) -> ImportSettings:
    if name == "--use":
        return replace(settings, use=read_selectors([value]))
    if name == "--leave-out":
        return replace(settings, leave_out=(*settings.leave_out, *read_selectors([value])))
    if name == "--clock":
        return replace(settings, clock=Clock(value))
    if name == "--sides":
        return replace(settings, sides=Sides(value))
    return replace(settings, allow_thin=True)


def _describe_option(name: str, value: str) -> str:
    if name == "--clock":
        return f"order by {value}"
    if name == "--sides":
        return _SIDES[Sides(value)]
    if name == _THIN:
        return "take it as it is"
    doing = "use" if name == "--use" else "leave out"
    return f"{doing} {_describe_group(read_selectors([value])[0])}"


def _describe_group(group: tuple[Selector, ...]) -> str:
    """Return what selectors name in words, the most special first.

    Examples
    --------
    >>> _describe_group(read_selectors(["series=5,phase=3,4"])[0])
    'phases 3, 4 of series 5'
    """
    values: dict[str, list[str]] = {}
    for one in group:
        values.setdefault(one.key, []).append(_WORDS.get(one.value, one.value))
    return " of ".join(_in_words(key, names) for key, names in reversed(values.items()))


def _in_words(key: str, values: list[str]) -> str:
    if key == "side":
        return f"the {' and '.join(values)} breast"
    return f"{key}{'s' * (len(values) > 1 and key != 'series')} {_join_values(values)}"


def _join_values(values: list[str]) -> str:
    return spans(sorted(map(int, values))) if all(map(str.isdecimal, values)) else ", ".join(values)

"""One codec: records as plain values and back, wrong ones refused with their file and field."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_mamamia.core.errors import FormatError, ModelError
from napari_mamamia.io.files.record_codec import Form, Layout, NotFinite, RecordCodec


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Inner:
    name: str
    size: float
    parts: "tuple[Inner, ...]" = ()


@dataclass(frozen=True, slots=True)
class Outer:
    number: int
    share: float
    is_on: bool
    colour: Colour
    path: Path
    box: tuple[int, int, int]
    inner: Inner | None = None
    others: tuple[Inner, ...] = ()
    names: list[str] = field(default_factory=list)
    by_name: Mapping[str, float] = field(default_factory=dict)
    setting: bool | int | float | str | None = None
    pairs: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError("its number is below 0")


CODEC = RecordCodec(Outer, "make it again")

inners = st.builds(
    Inner, st.text(), st.floats(), st.tuples(st.builds(Inner, st.text(), st.floats()))
)
outers = st.builds(
    Outer,
    st.integers(min_value=0),
    st.floats(),
    st.booleans(),
    st.sampled_from(Colour),
    st.just(Path("a/b")),
    st.tuples(st.integers(), st.integers(), st.integers()),
    st.none() | inners,
    st.lists(inners, max_size=2).map(tuple),
    st.lists(st.text(), max_size=2),
    st.dictionaries(st.text(), st.floats(), max_size=2),
    st.none() | st.booleans() | st.integers() | st.text(),
    st.lists(st.tuples(st.text(), st.integers()), max_size=2).map(tuple),
)


def plain(**changes):
    record = Outer(1, 0.5, True, Colour.RED, Path("a"), (1, 2, 3), Inner("x", 2.0))
    return {**CODEC.plain(record), **changes}


@given(record=outers)
def test_every_record_comes_back_the_same_through_json(record):
    text = json.dumps(CODEC.plain(record), allow_nan=False)
    assert repr(CODEC.record(json.loads(text), "x.json")) == repr(record)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"number": "3"},
            "expected 'number' of x.json to be a whole number, but found '3': make it",
        ),
        ({"number": True}, "'number' of x.json to be a whole number, but found True"),
        ({"number": 1.0}, "'number' of x.json to be a whole number, but found 1.0"),
        ({"number": -1}, "x.json to be a Outer, but its number is below 0"),
        ({"share": "much"}, "'share' of x.json to be a number, but found 'much'"),
        ({"share": None}, "'share' of x.json to be a number, but found None"),
        ({"is_on": 1}, "'is_on' of x.json to be true or false, but found 1"),
        ({"colour": "green"}, "'colour' of x.json to be one of red, blue, but found 'green'"),
        ({"path": 3}, "'path' of x.json to be a string, but found 3"),
        ({"box": [1, 2]}, r"'box' of x.json to be a list of 3, but found \[1, 2\]"),
        ({"box": "123"}, "'box' of x.json to be a list, but found '123'"),
        ({"inner": {"name": "x"}}, "'inner.size' of x.json to be present, but found nothing"),
        ({"inner": [1]}, r"'inner' of x.json to be an object {...}, but found \[1\]"),
        ({"others": [{"name": "x", "size": 1}, {"name": 2}]}, r"'others\[1\].name' of x.json"),
        ({"by_name": {"a": "b"}}, "'by_name.a' of x.json to be a number, but found 'b'"),
        ({"setting": [1]}, r"'setting' of x.json to be a single value, but found \[1\]"),
        ({"pairs": [["a"]]}, r"'pairs\[0\]' of x.json to be a list of 2"),
        (
            {"further": 1},
            "x.json to be an object with the keys number, .*, but found the unknown key further",
        ),
    ],
)
def test_what_is_not_the_record_is_refused_with_file_and_field(changes, said):
    with pytest.raises(FormatError, match=said):
        CODEC.record(plain(**changes), "x.json")


@pytest.mark.parametrize("content", [None, 3, "x", [], [{}]])
def test_what_is_no_object_is_refused_with_the_file(content):
    with pytest.raises(FormatError, match=r"expected x\.json to be an object \{\.\.\.\}"):
        CODEC.record(content, "x.json")


def test_a_long_value_is_cut_in_the_error():
    with pytest.raises(FormatError) as raised:
        CODEC.record(plain(number="9" * 10_000), "x.json")
    assert len(str(raised.value)) < 200


def test_fields_with_a_default_may_be_missing_unless_the_layout_says_which():
    content = plain()
    del content["setting"], content["names"]
    assert CODEC.record(content, "x.json").names == []
    strict = RecordCodec(Outer, "make it again", [Layout(Outer, later=frozenset({"names"}))])
    with pytest.raises(FormatError, match=r"'setting' of x\.json to be present"):
        strict.record(content, "x.json")


def test_keys_of_a_later_version_are_passed_over_where_that_is_asked_for():
    codec = RecordCodec(Inner, "make it again", passes_unknown=True)
    content = {"name": "x", "size": 1, "colour": "red"}
    assert codec.record(content, "x.json") == Inner("x", 1.0)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("way", [NotFinite.TEXT, NotFinite.OBJECT])
def test_numbers_that_json_lacks_come_back_in_either_way(value, way):
    codec = RecordCodec(Inner, "make it again", not_finite=way)
    text = json.dumps(codec.plain(Inner("x", value)), allow_nan=False)
    assert repr(codec.record(json.loads(text), "x.json").size) == repr(value)


def test_a_text_that_reads_like_a_number_is_none():
    for text in ("1.5", "Infinity", "NaN", "1e5"):
        with pytest.raises(FormatError, match="to be a number"):
            RecordCodec(Inner, "x").record({"name": "x", "size": text}, "x.json")


def test_pairs_can_be_written_as_an_object_and_a_field_in_a_form_of_its_own():
    forms = {"box": Form(lambda box: "x".join(map(str, box)), lambda text: tuple(text.split("x")))}
    codec = RecordCodec(Outer, "make", [Layout(Outer, forms, pairs=frozenset({"pairs"}))])
    record = Outer(1, 0.5, True, Colour.RED, Path("a"), (1, 2, 3), pairs=(("a", 1), ("b", 2)))
    content = codec.plain(record)
    assert (content["box"], content["pairs"]) == ("1x2x3", {"a": 1, "b": 2})
    assert codec.record(content, "x.json").pairs == record.pairs
    with pytest.raises(FormatError, match=r"'box' of x\.json to be as this software writes it"):
        codec.record({**content, "box": 3}, "x.json")


def test_the_error_is_of_the_kind_that_was_asked_for():
    with pytest.raises(ModelError):
        RecordCodec(Inner, "add it again", kind=ModelError).record({}, "x.json")


def test_a_type_without_a_form_is_told_at_the_first_reading():
    @dataclass
    class Odd:
        values: set[int]

    with pytest.raises(TypeError, match="a Form for this type"):
        RecordCodec(Odd, "x").record({"values": [1]}, "x.json")
    codec = RecordCodec(Odd, "x", [Layout(Odd, {"values": Form(list, set)})])
    assert codec.record({"values": [1]}, "x.json") == Odd({1})


def test_anything_may_stand_where_a_field_says_any():
    @dataclass
    class Free:
        value: Any

    assert RecordCodec(Free, "x").record({"value": [1, {"a": 2}]}, "x.json").value == [1, {"a": 2}]


def test_a_whole_number_beyond_every_float_is_refused_as_any_wrong_value():
    codec = RecordCodec(Inner, "make it again")
    assert codec.record({"name": "a", "size": 10**300}, "FILE").size == 1e300
    with pytest.raises(FormatError, match="expected 'size' of FILE to be a number"):
        codec.record({"name": "a", "size": 10**400}, "FILE")


@dataclass(frozen=True, slots=True)
class Plain:
    name: str
    at: int = 0
    is_on: bool = False


@pytest.mark.parametrize(
    "content",
    [
        {"name": "a", "at": 1, "is_on": True},
        {"at": 1, "name": "a", "is_on": True},
        {"name": "a"},
        {"name": "a", "at": True, "is_on": True},
        {"name": "a", "at": 1, "is_on": 1},
        {"name": None, "at": 1, "is_on": True},
        {"name": "a", "at": 1, "is_on": True, "more": 1},
        {"name": "a", "at": 1, "more": True},
        ["a", 1, True],
        {},
    ],
)
def test_records_of_plain_values_are_read_and_refused_as_any_others(content):
    # a field in a form of its own keeps the quick way out
    slow = RecordCodec(Plain, "make", [Layout(Plain, {"name": Form(str, _require_text)})])
    quick = RecordCodec(Plain, "make")
    assert _tell(quick, content) == _tell(slow, content)


def _require_text(value):
    return RecordCodec(Plain, "make").record({"name": value}, "x").name


def _tell(codec, content):
    try:
        return codec.record(content, "x.json")
    except FormatError:
        return "refused"

"""Annotation protocols: what they set, and what is refused with the key in the message."""

import json
from pathlib import Path

import pytest

from napari_mamamia.core.edits import Brush, Tool
from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.workspace.protocol import Protocol, Structure, read_protocol

EXAMPLE = Path(__file__).parents[2] / "docs" / "protocol_example.json"


def saved(tmp_path, content):
    path = tmp_path / "protocol.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_the_example_in_the_docs_is_read_whole():
    protocol = read_protocol(EXAMPLE)
    assert protocol.phase == 1
    assert protocol.brush == Brush(tool=Tool.EVIDENCE, radius_mm=8.0)
    assert protocol.unused == ()
    assert protocol.structures == (Structure(1, "tumour"), Structure(2, "satellite lesion"))
    assert len(protocol.checklist) == 3
    assert protocol.time_limit_s == 600.0


def test_keys_of_the_brush_of_before_are_read_and_reported(tmp_path):
    brush = {"tool": "smartpaint", "radius_mm": 8, "tolerance": 3, "features": "post"}
    protocol = read_protocol(saved(tmp_path, {"name": "old", "brush": brush}))
    assert protocol.brush == Brush(tool=Tool.EVIDENCE, radius_mm=8.0)
    assert protocol.unused == ("tolerance", "features")


def test_a_wrong_value_is_refused_though_nothing_heeds_it_any_more(tmp_path):
    content = {"name": "old", "brush": {"tolerance": 0}}
    with pytest.raises(FormatError, match="'tolerance' of the brush: expected a number above 0"):
        read_protocol(saved(tmp_path, content))


def test_a_name_is_enough(tmp_path):
    assert read_protocol(saved(tmp_path, {"name": "free"})) == Protocol("free")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot read"),
        ([1], r"the protocol is \[1\], not an object"),
        ({}, "the key 'name' is missing"),
        ({"name": " "}, "'name' of the protocol: expected a string, but found ' '"),
        ({"name": "a", "brushes": {}}, "has the key 'brushes', which is not one of name, phase"),
        (
            {"name": "a", "phase": -1},
            "'phase' of the protocol: expected a whole number of 0 or more, but found -1",
        ),
        ({"name": "a", "phase": True}, "'phase' of the protocol: expected a whole number"),
        (
            {"name": "a", "brush": {"radius_mm": 0}},
            "'radius_mm' of the brush: expected a number above 0, but found 0",
        ),
        (
            {"name": "a", "brush": {"radius_mm": "8"}},
            "'radius_mm' of the brush: expected a number, but found '8'",
        ),
        (
            {"name": "a", "brush": {"tool": "pen"}},
            "expected one of smartpaint, learned, sphere, smooth, but found 'pen'",
        ),
        (
            {"name": "a", "structures": [{"value": 1}]},
            "expected a value and a name for each structure",
        ),
        ({"name": "a", "structures": [{"value": 0, "name": "t"}]}, "from 1 to 255, but found 0"),
        (
            {"name": "a", "structures": [{"value": 1, "name": n} for n in "tu"]},
            "two structures have the same value",
        ),
        ({"name": "a", "checklist": "look"}, "'checklist' of the protocol: expected a list"),
        (
            {"name": "a", "time_limit_s": 0},
            "'time_limit_s' of the protocol: expected a number above 0",
        ),
    ],
)
def test_what_is_not_meant_is_refused_with_its_key(tmp_path, content, message):
    path = saved(tmp_path, content)
    with pytest.raises(FormatError, match=message) as refused:
        read_protocol(path)
    assert str(path) in str(refused.value)
    assert "docs/protocol_example.json" in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FormatError, match="cannot read"):
        read_protocol(tmp_path / "absent.json")

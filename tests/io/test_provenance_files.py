import json
import math
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_mamamia.core.errors import FormatError, SaveConflictError
from napari_mamamia.core.provenance import InputFile, Maker, Provenance
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path, write_provenance

ADDED_LATER = ("device", "peak_memory_bytes")
KEYS = [field.name for field in fields(Provenance)]


def example() -> Provenance:
    return Provenance(
        case_id="DUKE_001",
        maker=Maker.MODEL,
        name="kinetic",
        inputs=(InputFile("DUKE_001_0000.nii.gz", "ab" * 32),),
        parameters=(("threshold", 0.8), ("connectivity", 26), ("smooth", True), ("click", None)),
        seconds=1.25,
        note="kinetic threshold, not a trained model",
        created="2026-11-23T19:58:46+00:00",  # made twice, it must not differ by a second
    )


@pytest.mark.parametrize("name", ["A.nii.gz", "A.nii", "A.nrrd", "A.NII.GZ"])
def test_the_sidecar_lies_beside_the_mask(name):
    assert sidecar_path(Path("out") / name) == Path("out/A.json")


def test_a_stem_with_full_stops_keeps_them():
    assert sidecar_path(Path("v1.2_case.nii.gz")) == Path("v1.2_case.json")


def test_every_field_is_written_in_the_order_of_the_record(tmp_path):
    write_provenance(example(), tmp_path / "A.json")
    content = json.loads((tmp_path / "A.json").read_text(encoding="utf-8"))
    assert list(content) == KEYS
    assert content["inputs"] == [{"name": "DUKE_001_0000.nii.gz", "sha256": "ab" * 32}]
    assert content["parameters"] == {
        "threshold": 0.8,
        "connectivity": 26,
        "smooth": True,
        "click": None,
    }
    assert (content["maker"], content["seconds"]) == ("model", 1.25)


whole = st.integers(-(10**19), 10**19)  # our JSON has integers of at most 20 digits
single = st.one_of(st.none(), st.booleans(), whole, st.text(), st.floats(allow_nan=False))
provenances = st.builds(
    Provenance,
    case_id=st.text(),
    maker=st.sampled_from(Maker),
    name=st.text(),
    inputs=st.lists(st.builds(InputFile, st.text(), st.text()), max_size=3).map(tuple),
    parameters=st.dictionaries(st.text(), single, max_size=4).map(lambda d: tuple(d.items())),
    seconds=st.one_of(st.none(), st.floats(allow_nan=False)),
    started_from=st.text(),
    note=st.text(),
    created=st.text(),
    software=st.text(),
)


@settings(deadline=None, max_examples=60)
@given(provenance=provenances)
def test_provenance_comes_back_equal(tmp_path_factory, provenance):
    path = tmp_path_factory.mktemp("sidecar") / "A.json"
    write_provenance(provenance, path)
    back = read_provenance(path)
    assert back == provenance
    types = [type(value) for _, value in provenance.parameters]
    assert [type(value) for _, value in back.parameters] == types


def test_a_parameter_that_is_no_number_comes_back(tmp_path):
    provenance = Provenance("A", Maker.MODEL, "m", parameters=(("x", math.nan), ("y", -math.inf)))
    write_provenance(provenance, tmp_path / "A.json")
    json.loads((tmp_path / "A.json").read_text(), parse_constant=pytest.fail)
    (_, x), (_, y) = read_provenance(tmp_path / "A.json").parameters
    assert math.isnan(x)
    assert y == -math.inf


def test_doubled_parameters_are_refused_before_anything_is_written(tmp_path):
    provenance = Provenance("A", Maker.MODEL, "m", parameters=(("x", 1), ("x", 2)))
    with pytest.raises(FormatError, match="x, x"):
        write_provenance(provenance, tmp_path / "A.json")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_sidecar_is_kept_unless_told(tmp_path):
    path = tmp_path / "A.json"
    path.write_text("old")
    with pytest.raises(SaveConflictError):
        write_provenance(example(), path)
    assert path.read_text() == "old"
    write_provenance(example(), path, overwrite=True)
    assert read_provenance(path) == example()


def test_keys_of_a_later_version_are_passed_over(tmp_path):
    path = tmp_path / "A.json"
    write_provenance(example(), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"licence": "MIT"}))
    assert read_provenance(path) == example()


def test_a_file_of_an_earlier_version_has_no_device_and_no_memory(tmp_path):
    write_provenance(replace(example(), device="cpu", peak_memory_bytes=7), tmp_path / "A.json")
    back = read_provenance(tmp_path / "A.json")
    assert (back.device, back.peak_memory_bytes) == ("cpu", 7)
    content = json.loads((tmp_path / "A.json").read_text())
    del content["device"], content["peak_memory_bytes"]
    (tmp_path / "A.json").write_text(json.dumps(content))
    back = read_provenance(tmp_path / "A.json")
    assert (back.device, back.peak_memory_bytes) == ("", None)


@pytest.mark.parametrize("key", [key for key in KEYS if key not in ADDED_LATER])
def test_a_missing_key_is_refused_with_file_and_key(tmp_path, key):
    path = tmp_path / "A.json"
    write_provenance(example(), path)
    content = json.loads(path.read_text())
    del content[key]
    path.write_text(json.dumps(content))
    with pytest.raises(FormatError, match=rf"(?s)'{key}.*' of .*A\.json"):
        read_provenance(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("case_id", 3),
        ("maker", "ghost"),
        ("inputs", [{"name": "x"}]),
        ("inputs", 3),
        ("parameters", [1]),
        ("parameters", {"x": [1, 2]}),
        ("parameters", {"x": {"other": 1}}),
        ("seconds", "long"),
        ("seconds", True),
        ("note", None),
    ],
)
def test_a_value_of_another_type_is_refused_with_file_and_key(tmp_path, key, value):
    path = tmp_path / "A.json"
    write_provenance(example(), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(FormatError, match=rf"(?s)'{key}.*' of .*A\.json"):
        read_provenance(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "3"])
def test_a_damaged_sidecar_is_refused_by_name(tmp_path, text):
    (tmp_path / "A.json").write_text(text)
    with pytest.raises(FormatError, match=r"A\.json"):
        read_provenance(tmp_path / "A.json")

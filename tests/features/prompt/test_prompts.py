"""Prompts on an image: rounding, slices, thickness, and what is refused."""

import json

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError
from napari_mamamia.features.prompt.segmentation.engine import (
    EngineSettings,
    PlainConnectionError,
)
from napari_mamamia.features.prompt.segmentation.engines import (
    PROMPT_ENGINES,
    check_server,
    find_python,
    is_loopback,
)
from napari_mamamia.features.prompt.segmentation.prompts import (
    Abilities,
    Prompt,
    PromptKind,
    place_prompt,
    read_prompts,
)

SHAPE = (10, 20, 30)
FLAT = Abilities(frozenset(PromptKind))
SOLID = Abilities(frozenset(PromptKind), takes_3d_boxes=True)


def test_a_point_is_the_nearest_voxel_with_halves_up():
    placed = place_prompt(Prompt("point", [(4.5, 5.5, 6.4)]), SHAPE, FLAT)
    assert placed.box == Box((5, 6, 6), (6, 7, 7))  # Python's round gives 4 and 6


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_box_on_a_slice_of_any_plane_is_flat(axis):
    start, stop = [2, 3, 4], [8, 9, 10]
    stop[axis] = start[axis] + 1
    placed = place_prompt(Prompt("box", [start, stop]), SHAPE, FLAT)
    assert placed.box.shape[axis] == 1
    assert placed.voxels is None


def test_a_solid_box_needs_a_model_that_takes_it():
    box = Prompt("box", [(2, 3, 4), (8, 9, 10)])
    assert place_prompt(box, SHAPE, SOLID).box.shape == (6, 6, 6)
    with pytest.raises(CaseError):
        place_prompt(box, SHAPE, FLAT)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_scribble_is_two_voxels_wide_and_one_slice_thick(axis):
    path = np.full((3, 3), 5)
    along, across = [a for a in range(3) if a != axis]
    path[1:, along] = 8
    path[2:, across] = 6
    placed = place_prompt(Prompt("scribble", path.tolist()), SHAPE, FLAT)
    shape = [0, 0, 0]
    shape[axis], shape[along], shape[across] = 1, 5, 3  # a path of 4 x 2 voxels, and one of width
    assert placed.box.shape == tuple(shape)
    assert placed.voxels.dtype == np.uint8
    assert placed.voxels.sum() == 5 * 2 + 2  # two rows of 5, and the end of the path one row on


def test_a_scribble_joins_its_points_without_gaps():
    placed = place_prompt(Prompt("scribble", [(1, 1, 1), (1, 10, 10)]), SHAPE, Abilities(
        frozenset(PromptKind), thickness=(1, 1, 1)
    ))  # fmt: skip
    assert placed.voxels[0].trace() == 10


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_outline_is_filled_on_its_plane(axis):
    corners = np.full((4, 3), 5.0)
    along, across = [a for a in range(3) if a != axis]
    corners[:, along] = [2.6, 7.4, 7.4, 2.6]
    corners[:, across] = [3.6, 3.6, 6.4, 6.4]
    placed = place_prompt(Prompt("outline", corners.tolist()), SHAPE, FLAT)
    assert placed.voxels.sum() == 5 * 3


@pytest.mark.parametrize(
    ("kind", "points"),
    [
        ("point", [(10, 0, 0)]),
        ("point", [(-1, 0, 0)]),
        ("point", [(9.6, 0, 0)]),
        ("box", [(2, 3, 4), (2, 9, 10)]),
        ("box", [(3, 9, 10), (2, 3, 4)]),
        ("box", [(2, 3, 4), (3, 9, 31)]),
        ("scribble", [(2, 3, 4), (2, 25, 4)]),
        ("outline", [(2, 3, 4), (3, 5, 4), (4, 7, 9)]),
        ("outline", [(2, 3, 4), (2, 3, 6), (2, 3, 9)]),
        ("outline", [(2, 3, 4), (2, 3, 40), (2, 9, 9)]),
    ],
)
def test_a_prompt_outside_the_image_or_an_empty_one_is_refused(kind, points):
    with pytest.raises(CaseError):
        place_prompt(Prompt(kind, points), SHAPE, SOLID)


@pytest.mark.parametrize(
    ("kind", "points", "include"),
    [
        ("circle", [(1, 1, 1)], True),
        ("point", [(1, 1)], True),
        ("point", [(float("nan"), 1, 1)], True),
        ("point", [], True),
        ("box", [(1, 1, 1)], True),
        ("point", [(1, 1, 1)], "yes"),
    ],
)
def test_what_is_no_prompt_is_refused(kind, points, include):
    with pytest.raises(CaseError):
        Prompt(kind, points, include)


def test_prompts_are_read_from_a_file(tmp_path):
    path = tmp_path / "prompts.json"
    path.write_text(json.dumps([{"kind": "point", "points": [[1, 2, 3]], "include": False}]))
    assert read_prompts(path) == (Prompt("point", [(1, 2, 3)], False),)
    for text in ("", "{}", "[]", "[1]", '[{"kind": "point"}]', '[{"kind":"point","points":3}]'):
        path.write_text(text)
        with pytest.raises(CaseError):
            read_prompts(path)


def test_plain_http_beyond_this_computer_needs_a_second_yes():
    for server in (
        "http://127.0.0.1:1527",
        "http://[::1]:1527/",
        "http://localhost",
        "https://a.b",
    ):
        assert check_server(server) == server.rstrip("/")
    with pytest.raises(PlainConnectionError) as refusal:
        check_server("http://127.0.0.1.example.org:1527")
    assert refusal.value.remedies[0].option == "allow_plain_http"
    assert check_server("http://ward:1527", allow_plain_http=True) == "http://ward:1527"
    for wrong in ("", "ward", "ftp://ward", "http://", "https://a:b@ward", "http://ward:99999"):
        with pytest.raises(CaseError):
            check_server(wrong)
    assert is_loopback("http://127.8.0.1:3")
    assert not is_loopback("http://10.0.0.1")


def test_what_leaves_the_computer_is_said():
    leaves = PROMPT_ENGINES["remote"].leaves(EngineSettings(server="https://ward:1527"))
    assert "https://ward:1527" in leaves
    assert PROMPT_ENGINES["local"].leaves(EngineSettings()) == ""


def test_a_missing_environment_or_model_has_a_remedy(tmp_path, monkeypatch):
    monkeypatch.delenv("MAMAMIA_PROMPT_ENVIRONMENT", raising=False)
    with pytest.raises(CaseError) as refusal:
        find_python(None)
    assert refusal.value.remedies[0].option == "environment"
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.touch()
    assert find_python(tmp_path) == python
    monkeypatch.setenv("MAMAMIA_PROMPT_ENVIRONMENT", str(tmp_path))
    assert find_python(None) == python
    with pytest.raises(CaseError) as refusal:
        PROMPT_ENGINES["local"].make(EngineSettings(model=tmp_path))
    assert refusal.value.remedies[0].option == "model"

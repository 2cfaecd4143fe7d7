"""The learned brush: its network, and what a stroke promises whatever the network proposes."""

import sys
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from tests.smartpaint.test_evidence import MIDDLE, SHAPE, ball, empty, images_of

from napari_mamamia.core.edits import Action, Brush, Tool
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.evidence import stroke
from napari_mamamia.smartpaint.evidence.marks import unpack_marks
from napari_mamamia.smartpaint.evidence.stroke import (
    prepare_stroke,
    preview_stroke,
    settle_stroke,
    window_mm,
)
from napari_mamamia.smartpaint.learned.network import Network, load_network, parse_weights
from napari_mamamia.smartpaint.learned.patch import CHANNELS, REACH, SIDE, place_cube
from napari_mamamia.smartpaint.session.session import EditingSession

ADD = Brush(tool=Tool.LEARNED, radius_mm=6.0)
ERASE = ADD.inverted()
WEIGHTS = files("napari_mamamia.smartpaint.learned").joinpath("brush.safetensors")
TRAINING = Path(__file__).parents[2] / "tools/train_brush"


class Constant(Network):
    """A network that proposes the same everywhere."""

    def __init__(self, odds):
        super().__init__({}, "0" * 64)
        object.__setattr__(self, "odds", odds)

    def predict(self, patch):
        return np.full(patch.shape[1:], self.odds, np.float32)


def draw(images, labels, words, brush, *path):
    settled = settle_stroke(prepare_stroke(images, labels, words, brush, path or (MIDDLE,)))
    labels[settled.box.slices] = settled.labels
    words[settled.box.slices] = settled.words
    return settled


@pytest.fixture
def greedy(monkeypatch):
    """A network that would fill its cube, and one that would empty it for a stroke that erases."""
    odds = {True: Constant(9.0), False: Constant(-9.0)}
    wanted = [True]
    monkeypatch.setattr(stroke, "load_network", lambda: odds[wanted[0]])
    return wanted


def test_numpy_computes_what_torch_computes(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(TRAINING))
    from network import EditNetwork

    monkeypatch.delitem(sys.modules, "network")
    weights = parse_weights(WEIGHTS.read_bytes())
    network = EditNetwork()
    network.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    for seed in range(3):
        patch = np.random.default_rng(seed).normal(0, 1.5, (CHANNELS, SIDE, SIDE, SIDE))
        patch = patch.astype(np.float32)
        with torch.no_grad():
            expected = network(torch.from_numpy(patch)[None])[0].numpy()
        assert expected.std() > 0.1
        np.testing.assert_allclose(load_network().predict(patch), expected, atol=1e-4)


def test_the_weights_are_small_and_known_by_their_hash():
    content = WEIGHTS.read_bytes()
    assert len(content) <= 1_000_000
    assert load_network().sha256 == sha256(content).hexdigest()


def test_a_press_in_a_bright_ball_finds_the_ball():
    lesion = ball(MIDDLE, 10.0)
    labels, words = empty()
    for middle in (MIDDLE, (9.0, 22.0, 24.0), (15.0, 26.0, 24.0)):
        draw(images_of(lesion), labels, words, replace(ADD, radius_mm=9.0), middle)
    both = np.count_nonzero((labels > 0) & lesion)
    assert 2 * both / (np.count_nonzero(labels) + np.count_nonzero(lesion)) > 0.85


def test_points_of_a_cube_lie_in_their_places():
    z, y, x = np.meshgrid(*(np.arange(n) for n in (30, 40, 50)), indexing="ij")
    cube = place_cube((30, 40, 50), (15.0, 20.0, 25.0), 6.0, (2.0, 1.0, 1.0))
    offsets = np.linspace(-REACH, REACH, SIDE) * 6.0
    for axis, (values, centre, step) in enumerate(((z, 15, 2), (y, 20, 1), (x, 25, 1))):
        sampled = np.moveaxis(cube.sample(values), axis, 0)
        np.testing.assert_allclose(sampled[:, 3, 4], centre + offsets / step, atol=0.1)
        back = np.moveaxis(cube.spread(cube.sample(values)), axis, 0)[:, 2, 3]
        rows = cube.near[axis]
        np.testing.assert_allclose(back, np.arange(rows.start, rows.stop), atol=0.1)


@pytest.mark.parametrize("is_adding", [True, False])
def test_nothing_changes_outside_the_window_and_only_as_the_sign_says(greedy, is_adding):
    greedy[0] = is_adding
    brush = ADD if is_adding else ERASE
    labels, words = empty()
    labels[ball((12.0, 24.0, 36.0), 9.0)] = 1
    labels[ball((12.0, 10.0, 10.0), 3.0)] = 2
    before, marked = labels.copy(), words.copy()
    path = (MIDDLE, (12.0, 24.0, 32.0))
    draw(images_of(before == 1), labels, words, brush, *path)
    changed = labels != before
    assert changed.any()
    assert (labels[changed] == (1 if is_adding else 0)).all()
    assert not is_adding or not (before[changed] == 1).any()
    z, y, x = np.indices(SHAPE)
    away = np.sqrt(((z - 12) * 2) ** 2 + (y - 24) ** 2 + (x - np.clip(x, 24, 32)) ** 2)
    beyond = away > window_mm(brush) + 0.01
    assert not (changed & beyond).any()
    assert not ((words != marked) & beyond).any()


def test_what_was_erased_does_not_come_back_with_a_stroke_beside_it(greedy):
    labels, words = empty()
    labels[ball(MIDDLE, 10.0)] = 1
    images = images_of(labels > 0)
    greedy[0] = False
    erased_at = (12.0, 24.0, 32.0)
    draw(images, labels, words, replace(ERASE, radius_mm=3.0), erased_at)
    erased = (unpack_marks(words).hold < 0) & ~ball((12.0, 24.0, 22.0), 6.0)
    assert erased.any()
    greedy[0] = True
    labels[:] = 0
    draw(images, labels, words, ADD, (12.0, 24.0, 22.0))
    assert not labels[erased].any()
    assert labels[12, 20, 29] == 1


def test_a_locked_label_is_not_painted_over(greedy):
    labels, words = empty()
    labels[ball((12.0, 24.0, 28.0), 4.0)] = 2
    work = prepare_stroke(images_of(labels > 0), labels, words, ADD, (MIDDLE,), frozenset({2}))
    settled = settle_stroke(work)
    assert (settled.labels[work.labels == 2] == 2).all()
    assert (settled.labels == 1).any()


def test_the_middle_is_obeyed_where_the_network_refuses(greedy):
    greedy[0] = False  # it says that nothing belongs to the lesion
    labels, words = empty()
    draw(images_of(labels > 0), labels, words, ADD)
    assert labels[ball(MIDDLE, 3.0)].all()


def test_the_same_stroke_gives_the_same_bits_and_a_preview_close_to_them():
    lesion = ball(MIDDLE, 10.0)
    labels, words = empty()
    work = prepare_stroke(images_of(lesion), labels, words, ADD, (MIDDLE, (12.0, 24.0, 27.0)))
    first, second = settle_stroke(work), settle_stroke(work)
    assert first.labels.tobytes() == second.labels.tobytes()
    assert first.words.tobytes() == second.words.tobytes()
    preview = preview_stroke(work).mask
    assert np.count_nonzero(preview != (first.labels > 0)) < 0.1 * np.count_nonzero(first.labels)


def test_a_step_records_the_weights_and_a_stroke_of_evidence_does_not():
    lesion = ball(MIDDLE, 10.0)
    session = EditingSession(
        "A",
        Grid(SHAPE, np.diag([1.0, 1.0, 2.0, 1.0])),
        np.zeros(SHAPE, np.uint8),
        images_of(lesion),
    )
    steps = []
    for brush in (ADD, replace(ADD, tool=Tool.EVIDENCE)):
        session.press(MIDDLE, brush)
        steps.append(dict(session.release().edit.parameters))
    assert steps[0]["weights sha256"] == load_network().sha256
    assert "weights sha256" not in steps[1]


def test_a_stroke_for_the_whole_lesion_is_settled_by_the_image():
    lesion = ball(MIDDLE, 10.0)
    labels, words = empty()
    labels[ball(MIDDLE, 8.0)] = 1
    others = labels.copy(), words.copy()
    whole = replace(ADD, whole=True, action=Action.ADD)
    settled = draw(images_of(lesion), labels, words, whole, (12.0, 24.0, 32.0))
    same = draw(images_of(lesion), *others, replace(whole, tool=Tool.EVIDENCE), (12.0, 24.0, 32.0))
    assert settled.weights == ""
    assert (settled.labels == same.labels).all()

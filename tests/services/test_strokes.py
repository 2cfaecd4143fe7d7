"""What is said of a SmartPaint stroke, worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Action, Brush, Tool
from napari_mamamia.core.grid import Grid
from napari_mamamia.services.refine.strokes import advise_whole, describe_stroke

GRID = Grid((4, 10, 10), np.diag([1.0, 2.0, 3.0, 1.0]))
BOX = Box((1, 2, 2), (3, 8, 8))
ADD = Brush(Tool.EVIDENCE, radius_mm=5.0)


def described(before, after, brush=ADD, notes=(), path=((2.0, 5.0, 5.0),), others=()):
    """Return what is said where the label had `before` voxels of its box, and has `after`."""
    locked = frozenset(label for _, label in others)
    work = SimpleNamespace(
        brush=brush, box=BOX, path=path, labels=mask(before)[BOX.slices], locked=locked
    )
    now = mask(after)
    for place, label in others:
        now[place] = label
    return describe_stroke(work, SimpleNamespace(notes=notes), now, GRID)


def mask(n_voxels):
    labels = np.zeros(GRID.shape, np.uint8)
    labels[2, 5, 2 : 2 + n_voxels] = 1
    return labels


def test_voxels_and_volume_are_those_that_changed():
    """3 voxels of 1 x 2 x 3 mm are 18 mm3."""
    change = described(1, 4)
    assert change.text == "+3 voxels, 0.02 ml."
    assert (change.added.sum(), change.removed.sum(), change.volume_mm3) == (3, 0, 18.0)
    assert described(2, 1).text == "−1 voxel, 0.01 ml."
    # spacing along (z, y, x) is 3, 2, 1 mm
    assert change.where == (6.0, 10.0, 5.0)


def test_a_stroke_that_changed_nothing_says_what_to_do():
    assert "has more weight" in described(2, 2).text
    erase = ADD.inverted()
    assert "has more weight" in described(2, 2, erase).text
    assert described(0, 0, erase).text == "Your mask has no voxels at this point."


def test_a_stroke_onto_another_lesion_says_that_it_stays():
    onto = described(0, 0, others=[((2, 5, 5), 2)])
    assert "Lesion 2" in onto.text
    assert "has more weight" not in onto.text
    assert described(0, 2, others=[((2, 5, 5), 2)]).text.startswith("+2 voxels")
    assert "Lesion" not in described(0, 0, others=[((2, 6, 5), 2)]).text


def test_a_first_stroke_that_made_a_speck_asks_for_a_larger_circle():
    """A ball of 5 mm has 524 mm3, a fifth of it is 105 mm3; 6 voxels of 6 mm3 are less."""
    assert described(0, 6).text.endswith("larger than the tumour, and press again.")
    assert "larger" not in described(0, 6, Brush(Tool.EVIDENCE, radius_mm=3.0)).text
    assert "larger" not in described(1, 6).text


def test_notes_of_a_stroke_are_sentences():
    assert described(1, 2, notes=("they look alike",)).text.endswith("ml. They look alike.")


@pytest.mark.parametrize(
    ("before", "now", "is_advised"),
    [
        ({}, {}, True),
        ({"path": ((2.0, 5.0, 9.0),)}, {}, True),  # 4 mm away
        ({"path": ((0.0, 5.0, 5.0),)}, {}, False),  # 6 mm away, beyond the radius
        ({"brush": ADD.inverted()}, {}, False),
        ({}, {"brush": Brush(Tool.EVIDENCE, Action.ADD, 5.0, whole=True)}, False),
    ],
)
def test_the_whole_lesion_is_offered_after_two_strokes_in_vain_at_one_place(
    before, now, is_advised
):
    assert advise_whole(described(1, 1, **before), described(1, 1, **now)) is is_advised


def test_the_whole_lesion_is_not_offered_where_a_stroke_changed_much():
    """A ball of 5 mm has 524 mm3, a twentieth of it is 26 mm3: 5 voxels of 6 mm3 are more."""
    little, much = described(1, 5), described(0, 5)
    assert advise_whole(little, little)
    assert not advise_whole(much, little)
    assert not advise_whole(little, much)
    assert not advise_whole(None, little)

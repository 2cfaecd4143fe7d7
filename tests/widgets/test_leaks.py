"""Leaks in the window: a click takes a part away, a line cuts one off, and growing obeys."""

import numpy as np
import pytest
from tests.widgets.test_painting import RIGHT, Mouse, mask_of

from napari_mamamia.core.box import Box
from napari_mamamia.smartpaint.evidence.marks import unpack_marks
from napari_mamamia.smartpaint.grow.grow import Grown
from napari_mamamia.widgets.refine.state import PaintTool


@pytest.fixture
def refining(qtbot, opened):
    """An own mask made from nothing."""
    opened.show_page("Refine")
    opened.refine_page.from_nothing.click()
    qtbot.waitUntil(lambda: opened.measure.images is not None)
    return opened


@pytest.fixture
def mouse(refining):
    return Mouse(refining)


def write(dock, *blocks):
    """Make the mask consist of blocks, each ((z, y, x), (z, y, x)), as one step."""
    live = dock.editing.live
    mask = np.zeros(live.grid.shape, dtype=bool)
    for start, stop in blocks:
        mask[tuple(slice(a, b) for a, b in zip(start, stop, strict=True))] = True
    dock.editing.mask.apply("write", Box.whole(live.grid.shape), mask)
    return mask


def use(qtbot, dock, mouse, tool, *places, button=None):
    dock.painting.set_tool(tool)
    mouse.stroke(*places, **({} if button is None else {"button": button}))
    qtbot.waitUntil(lambda: not dock.growing.is_busy)


LESION = ((1, 4, 3), (4, 12, 10))
ISLAND = ((2, 4, 14), (3, 6, 16))
BRIDGE = ((2, 7, 10), (3, 8, 13))
LOBE = ((1, 5, 13), (4, 10, 16))


def block(mask, part):
    return mask[tuple(slice(a, b) for a, b in zip(*part, strict=True))]


def test_a_click_takes_an_island_away_for_good_and_one_key_brings_it_back(qtbot, refining, mouse):
    before = write(refining, LESION, ISLAND)
    use(qtbot, refining, mouse, PaintTool.PART, (2, 5, 15))
    after = mask_of(refining) > 0
    assert not block(after, ISLAND).any()
    np.testing.assert_array_equal(block(after, LESION), block(before, LESION))
    live = refining.editing.live
    assert live.steps[-1].name == "remove part"
    hold = unpack_marks(live.state.words(1)).hold
    assert (block(hold, ISLAND) == -1).all()
    assert np.count_nonzero(hold) == block(hold, ISLAND).size
    assert "Removed a separate part" in refining.refine_page.tools.stroke_note.text()
    refining.editing.mask.undo()
    np.testing.assert_array_equal(mask_of(refining) > 0, before)
    assert not unpack_marks(live.state.words(1)).hold.any()


@pytest.mark.parametrize("button", [None, RIGHT])
def test_a_line_cuts_off_what_lies_behind_it_in_all_slices(qtbot, refining, mouse, button):
    write(refining, LESION, BRIDGE, LOBE)
    use(qtbot, refining, mouse, PaintTool.CUT, (2, 5, 11), (2, 9, 11), button=button)
    after = mask_of(refining) > 0
    assert not block(after, LOBE).any()
    assert block(after, LESION).all()
    assert refining.editing.live.steps[-1].name == "cut"
    assert refining.marks.is_empty


def test_what_cannot_be_removed_is_said_and_changes_nothing(qtbot, refining, mouse):
    before = write(refining, LESION)
    position = refining.editing.live.position
    note = refining.refine_page.tools.stroke_note
    use(qtbot, refining, mouse, PaintTool.PART, (2, 8, 6))
    assert "main part" in note.text()
    use(qtbot, refining, mouse, PaintTool.PART, (2, 2, 16))
    assert "no mask under the pointer" in note.text()
    use(qtbot, refining, mouse, PaintTool.CUT, (2, 1, 14), (2, 3, 16))
    assert "does not cross" in note.text()
    np.testing.assert_array_equal(mask_of(refining) > 0, before)
    assert refining.editing.live.position == position


def test_the_tools_lie_in_the_fold_and_show_that_they_are_held(qtbot, refining):
    page = refining.refine_page
    page.more.fold.click()
    for tool in (PaintTool.PART, PaintTool.CUT):
        control = page.tools.tools[tool]
        assert control.isVisibleTo(page)
        assert control.toolTip()
        assert control.objectName()
        control.click()
        assert refining.painting.state.tool is tool
        assert control.isChecked()
    page.tools.tools[PaintTool.CUT].click()
    assert refining.painting.state.tool is PaintTool.NONE


def test_an_open_outline_says_that_it_was_closed(refining, mouse):
    refining.painting.set_tool(PaintTool.OUTLINE)
    mouse.stroke((2, 4.5, 5.5), (2, 4.5, 12.5), (2, 12.5, 12.5), (2, 12.5, 5.5))
    assert "had a gap of" in refining.refine_page.tools.stroke_note.text()


def test_a_closed_outline_says_nothing(refining, mouse):
    refining.painting.set_tool(PaintTool.OUTLINE)
    mouse.stroke((2, 4.5, 5.5), (2, 4.5, 12.5), (2, 12.5, 12.5), (2, 12.5, 5.5), (2, 4.5, 5.5))
    assert refining.refine_page.tools.stroke_note.text() == ""


def test_a_second_outline_takes_the_place_of_what_growing_put_there(qtbot, refining, mouse):
    live = refining.editing.live
    refining.painting.set_tool(PaintTool.OUTLINE)
    mouse.stroke((2, 4.5, 5.5), (2, 4.5, 12.5), (2, 12.5, 12.5), (2, 12.5, 5.5))
    first = mask_of(refining)[2] > 0
    given = []
    everything = Grown(Box.whole(live.grid.shape), np.ones(live.grid.shape, dtype=bool))
    refining.growing._services = refining.growing._services.replacing(
        grow=lambda images, grid, seeds, more: given.append(seeds) or everything
    )
    for _ in range(2):
        refining.growing.grow()
        qtbot.waitUntil(lambda: not refining.growing.is_busy)
        assert (mask_of(refining) > 0).all()
        # the reader's first outline is handed over as it was drawn, however often it grew
        np.testing.assert_array_equal(given[-1][0].mask, first)
    mouse.stroke((1, 5.5, 6.5), (1, 5.5, 9.5), (1, 9.5, 9.5), (1, 9.5, 6.5))
    second = np.zeros_like(first)
    second[6:10, 7:10] = True
    np.testing.assert_array_equal(mask_of(refining)[1] > 0, second)
    assert (mask_of(refining)[3] > 0).all()
    for _ in range(2):
        refining.growing.grow()
        qtbot.waitUntil(lambda: not refining.growing.is_busy)
        np.testing.assert_array_equal(given[-1][0].mask, first)
        np.testing.assert_array_equal(given[-1][1].mask, second)

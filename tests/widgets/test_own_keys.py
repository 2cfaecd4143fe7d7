"""Keys changed in the table of keys."""

import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QWidget

from napari_mamamia.core.errors import SaveError
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.keys.key_choice import remapped
from napari_mamamia.widgets.refine.state import PaintTool


@pytest.fixture
def keys(dock):
    dock.pages.toggle_keys()
    return dock.keys_panel


def give(panel, action, key, modifier=Qt.KeyboardModifier.NoModifier):
    control = panel.buttons[action]
    control.click()
    QTest.keyClick(control, key, modifier)
    return control.text()


def bound(viewer):
    return {str(binding) for binding in viewer.keymap}


def test_a_click_and_a_key_give_an_action_another_key_at_once(dock, keys, viewer, world):
    assert give(keys, "smartpaint", Qt.Key.Key_F7) == "F7"
    assert "F7" in bound(viewer)
    assert "Q" not in bound(viewer)
    assert world.preferences.keys == (("smartpaint", "F7"),)
    assert "(key F7)" in dock.refine_page.tools.tools[PaintTool.SMARTPAINT].toolTip()


def test_with_modifiers_it_is_written_as_people_read_it(keys, viewer):
    both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    assert give(keys, "accept", Qt.Key.Key_Return, both) == "Ctrl+Shift+Enter"
    assert "Ctrl+Shift+Enter" in bound(viewer)


@pytest.mark.parametrize(
    ("key", "reason"), [(Qt.Key.Key_W, "other_action"), (Qt.Key.Key_E, "napari")]
)
def test_a_key_that_is_taken_is_refused_with_the_reason(keys, viewer, world, key, reason):
    before = bound(viewer)
    assert give(keys, "smartpaint", key) == "Q"
    assert reason in keys.hint.text()
    assert bound(viewer) == before
    assert world.preferences.keys == ()
    give(keys, "smartpaint", Qt.Key.Key_F7)
    assert reason not in keys.hint.text()


def test_a_key_given_once_to_an_action_that_is_no_more_is_passed_over():
    table, refused = remapped([("stricter", "Shift+A"), ("smartpaint", "F7")])
    assert refused == ()
    assert next(key.shown for key in table if key.action == "smartpaint") == "F7"


def test_escape_leaves_the_key_as_it_was(keys, world):
    assert give(keys, "smartpaint", Qt.Key.Key_Escape) == "Q"
    assert world.preferences.keys == ()


def test_reset_gives_all_keys_back(dock, keys, viewer, world):
    before = bound(viewer)
    give(keys, "smartpaint", Qt.Key.Key_F7)
    give(keys, "next_case", Qt.Key.Key_F8)
    dock.findChild(object, "keys_reset").click()
    assert bound(viewer) == before
    assert keys.buttons["smartpaint"].text() == "Q"
    assert world.preferences.keys == ()
    assert "(key Q)" in dock.refine_page.tools.tools[PaintTool.SMARTPAINT].toolTip()


def test_the_keys_of_the_mask_are_changed_while_a_tool_is_on(qtbot, opened):
    opened.show_page("Refine")
    opened.refine_page.from_nothing.click()
    qtbot.waitUntil(lambda: opened.editing.live is not None)
    opened.painting.set_tool(PaintTool.SPHERE)
    give(opened.keys_panel, "undo", Qt.Key.Key_F7)
    names = {str(binding) for binding in opened.scene.layer(Role.REFINED).keymap}
    assert "F7" in names
    assert "Ctrl+Z" not in names


def test_keys_that_cannot_be_remembered_are_used_and_said(dock, keys, viewer, monkeypatch):
    def refuse(_preferences):
        raise SaveError("no space left on the disk: free some")

    services = dock.keys._services
    monkeypatch.setattr(type(services), "save_preferences", property(lambda _: refuse))
    give(keys, "smartpaint", Qt.Key.Key_F7)
    assert "F7" in bound(viewer)
    assert "not saved" in dock.header.message.text()


def test_what_is_written_later_names_the_key_in_force(qtbot, opened):
    opened.pages.toggle_keys()
    panel = opened.keys_panel
    give(panel, "hide_masks", Qt.Key.Key_F7)
    give(panel, "projection", Qt.Key.Key_H)  # the letter that is free now
    opened.header_flow.show()
    chip = opened.header._chips[Role.REFERENCE]
    assert chip.toolTip().endswith("(key F7)")
    opened.header.set_refusal("go back to slices first  (key I)")
    assert opened.header.refusal.text() == "go back to slices first  (key H)"
    button = opened.view_panel.findChild(QWidget, "view_image_projection")
    assert button.toolTip().endswith("(key H)")
    assert button.accessibleDescription() == button.toolTip()

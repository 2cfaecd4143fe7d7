import pytest
from napari.layers import Image, Labels
from napari.settings import get_settings
from qtpy.QtWidgets import QWidget

from napari_mamamia.widgets.base.keys import KEYS, bind_keys, with_key


@pytest.fixture
def pressed(qtbot, viewer):
    """A viewer whose keys write down what they would do."""
    window = QWidget()
    qtbot.addWidget(window)
    done = []
    actions = {
        key.action: (lambda *held, name=key.action: done.append((name, *held))) for key in KEYS
    }
    bind_keys(viewer, window, actions)
    return viewer, done


def _names(keymap):
    return {str(binding) for binding in keymap}


_BEHIND_A_LAYERS = {"Ctrl+Z", "Ctrl+Shift+Z"}
"""Keys on the viewer that napari binds on labels layers, where they come first."""


def test_every_key_of_the_table_is_bound_once(pressed):
    viewer, _ = pressed
    assert len(viewer.keymap) == sum(
        not key.by_qt and (not key.on_mask or key.everywhere) for key in KEYS
    )
    assert len({key.binding for key in KEYS}) == len(KEYS)


def test_no_key_of_ours_is_one_of_naparis_for_the_viewer_labels_or_images(pressed):
    viewer, _ = pressed
    ours = _names(viewer.keymap)
    elsewhere = ("points", "shape", "vertex", "direct", "select", "vectors", "tracks", "surface")
    elsewhere += ("rectangle", "path", "polygon", "plane_normal")
    taken = {
        str(binding)
        for action, bindings in get_settings().shortcuts.shortcuts.items()
        if not any(word in action for word in elsewhere)
        for binding in bindings
    }
    assert len(taken) > 30
    assert ours & taken == set()


def test_no_key_of_ours_hides_one_that_a_layer_class_binds(pressed):
    viewer, _ = pressed
    # napari binds these once a window was opened; they turn a plane that is cut in 3-D only
    plane_normals = {"O", "X", "Y", "Z"}
    # napari drops a polygon with Escape: a layer's keys come before the viewer's and stay
    shared = {"Escape", *_BEHIND_A_LAYERS}
    for layer_class in (Labels, Image, type(viewer)):
        theirs = _names(layer_class.class_keymap) - plane_normals - shared
        assert _names(viewer.keymap) & theirs == set()


def test_a_pressed_key_does_its_action(pressed):
    viewer, done = pressed
    for binding, function in viewer.keymap.items():
        if str(binding) == "N":
            function(viewer)
    assert done == [("next_case",)]


def test_a_held_key_acts_at_press_and_at_release(pressed):
    viewer, done = pressed
    held = next(function for binding, function in viewer.keymap.items() if str(binding) == "H")
    during = held(viewer)
    next(during)
    assert done == [("hide_masks", True)]
    next(during, None)
    assert done == [("hide_masks", True), ("hide_masks", False)]


def test_a_missing_action_is_refused(qtbot, viewer):
    window = QWidget()
    qtbot.addWidget(window)
    with pytest.raises(KeyError):
        bind_keys(viewer, window, {})


def test_tooltips_name_the_key():
    assert with_key("Shows all shortcuts.", "keys") == "Shows all shortcuts  (key ?)"

import numpy as np
from qtpy.QtWidgets import QWidget

from napari_mamamia.widgets.base.layers import Role, array_of, tag_of


def press(viewer, key):
    next(function for binding, function in viewer.keymap.items() if str(binding) == key)(viewer)


def shown_phase(dock):
    layer = dock.scene.layer(Role.SUBTRACTION)
    return None if layer is None else tag_of(layer).phase


def test_the_key_shows_the_phase_minus_phase_0_and_then_the_phases_again(qtbot, opened, viewer):
    press(viewer, "D")
    qtbot.waitUntil(lambda: shown_phase(opened) == 1)
    difference = array_of(opened.scene.layer(Role.SUBTRACTION))
    signal = opened.session.case.signal.astype(np.float32)
    np.testing.assert_array_equal(difference, signal[1] - signal[0])
    assert not opened.scene.layer(Role.PHASE).visible
    press(viewer, "D")
    assert shown_phase(opened) is None
    assert opened.scene.layer(Role.PHASE).visible


def test_the_subtraction_follows_the_phase(qtbot, opened, viewer):
    press(viewer, "D")
    qtbot.waitUntil(lambda: shown_phase(opened) == 1)
    press(viewer, ".")
    qtbot.waitUntil(lambda: shown_phase(opened) == 2)


def test_before_contrast_the_first_phase_after_it_is_subtracted(qtbot, opened, viewer):
    opened.scene.go_to_phase(0)
    press(viewer, "D")
    qtbot.waitUntil(lambda: shown_phase(opened) == 1)


def test_another_case_starts_with_its_phases(qtbot, opened, viewer):
    press(viewer, "D")
    qtbot.waitUntil(lambda: shown_phase(opened) == 1)
    press(viewer, "N")
    qtbot.waitUntil(lambda: opened.session.case_id == "A_2")
    assert shown_phase(opened) is None
    assert opened.scene.layer(Role.PHASE).visible


def test_a_deleted_subtraction_gives_the_phases_back(qtbot, opened, viewer):
    press(viewer, "D")
    qtbot.waitUntil(lambda: shown_phase(opened) == 1)
    viewer.layers.remove(opened.scene.layer(Role.SUBTRACTION))
    assert opened.scene.layer(Role.PHASE).visible


def test_without_a_case_the_keys_do_no_harm(dock, viewer):
    for key in (",", ".", "D", "Shift+H", "G", "N", "Shift+N"):
        press(viewer, key)
    assert isinstance(dock, QWidget)

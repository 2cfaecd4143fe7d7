"""napari's sliders below the picture: their numbers are whole, whatever case comes after which."""

import nibabel as nib
import numpy as np
import pytest
from one_window import wait_open
from qtpy.QtWidgets import QLabel

from napari_mamamia.phantom import PhantomSpec, Side, TumourSpec, make_phantom
from napari_mamamia.services.case.show_case import centre_of_largest_part
from napari_mamamia.widgets.adapter.adapter import main_view
from napari_mamamia.widgets.base.layers import Role, tag_for

pytestmark = [pytest.mark.window, pytest.mark.one_window]


def test_the_number_of_slices_is_whole_as_ranges_change_behind_a_case(
    qtbot, docked, small_data_set
):
    docked.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, docked, "A_1")
    dims = docked.viewer.dims
    before = dims.range
    for last in (9, 99, 59, 159, 59):
        dims.range = (before[0], (0, last, 1), *before[2:])
        qtbot.wait(50)
        totals = [one.totslice_label for one in main_view(docked.viewer).dims.slider_widgets]
        for total in totals:
            assert isinstance(total, QLabel)
            if total.isVisible():
                assert total.width() >= total.sizeHint().width(), total.text()
    dims.range = before


@pytest.fixture
def thin_and_thick(tmp_path):
    """Two exams with a reference: slices of 1.2 mm, then of 5 mm."""
    tumour = TumourSpec(longest_mm=30.0, side=Side.RIGHT)
    for case_id, shape, mm in (("A_1", (120, 80, 90), 1.2), ("A_2", (28, 80, 90), 5.0)):
        phantom = make_phantom(
            PhantomSpec(case_id, 4, shape=shape, spacing_mm=(mm, 3.5, 3.5), tumours=(tumour,))
        )
        affine = phantom.case.grid.affine
        folder = tmp_path / "images" / case_id
        folder.mkdir(parents=True)
        for k, phase in enumerate(phantom.case.signal):
            image = nib.Nifti1Image(phase.transpose(), affine)
            nib.save(image, folder / f"{case_id}_{k:04d}.nii.gz")
        expert = tmp_path / "segmentations" / "expert"
        expert.mkdir(parents=True, exist_ok=True)
        mask = phantom.reference.array.astype(np.uint8).transpose()
        nib.save(nib.Nifti1Image(mask, affine), expert / f"{case_id}.nii.gz")
    return tmp_path


def test_the_next_case_opens_at_its_tumour_behind_an_own_mask_with_thinner_slices(
    qtbot, docked, thin_and_thick
):
    docked.open_data_set(thin_and_thick, "A_1")
    wait_open(qtbot, docked, "A_1")
    case = docked.session.case
    own = np.zeros(case.grid.shape, np.uint8)
    own[50:70, 30:40, 30:40] = 1
    docked.scene.show_mask(tag_for(case, Role.REFINED), own)
    docked.cases_flow.open_neighbour(1)
    wait_open(qtbot, docked, "A_2")
    qtbot.waitUntil(lambda: docked.scene.layer(Role.REFERENCE) is not None)
    qtbot.waitUntil(lambda: len(docked.viewer.layers) == len(docked.scene.stack.find()))
    qtbot.wait(300)
    reference = docked.session.mask(Role.REFERENCE).buffer
    place = centre_of_largest_part(reference, docked.session.case.grid)
    assert docked.scene.view.slice_shown() == (0, place[0])
    sliders = main_view(docked.viewer).dims.slider_widgets
    assert sliders[1].slider.value() == docked.viewer.dims.current_step[1]

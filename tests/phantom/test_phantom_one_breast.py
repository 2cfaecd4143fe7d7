"""Phantoms of sagittal exams of one breast: what is in view is what makes them hard."""

from dataclasses import replace

import numpy as np
import pytest

from napari_mamamia.core.errors import CaseError
from napari_mamamia.phantom import (
    PhantomMix,
    PhantomSpec,
    Tissue,
    TumourSpec,
    make_phantom,
    write_data_set,
)
from napari_mamamia.phantom.data_set import plan_one_breast

SMALL = PhantomSpec(
    shape=(30, 64, 64), spacing_mm=(4.0, 3.0, 3.0), orientation="PSR", times_s=(0.0, 400.0, 740.0)
)


def of_tissue(phantom, *tissues):
    return np.isin(phantom.tissue, tissues)


def enhancement(phantom, tissue):
    return next(c.enhancement_percent for c in phantom.curves if c.tissue == tissue)


def test_the_eight_exams_are_sagittal_of_three_phases_and_both_sides():
    specs = [plan_one_breast(index, 0).spec for index in range(8)]
    assert {len(spec.times_s) for spec in specs} == {3}
    assert all(spec.spacing_mm[0] == 4.0 for spec in specs)
    assert {spec.orientation[2] for spec in specs} == {"R", "L"}  # slices run across the patient
    assert {tumour.side for spec in specs for tumour in spec.tumours} == {"left", "right"}


@pytest.mark.parametrize("index", [1, 4])
def test_heart_and_lymph_nodes_are_in_view_and_enhance_more_than_the_tumour(index):
    phantom = make_phantom(plan_one_breast(index, 0).spec)
    assert of_tissue(phantom, Tissue.HEART_BLOOD, Tissue.MYOCARDIUM).sum() > phantom.lesions.sum()
    assert of_tissue(phantom, Tissue.NODE).any()
    tumour = enhancement(phantom, Tissue.TUMOUR)[1]
    assert enhancement(phantom, Tissue.HEART_BLOOD)[1] > tumour
    assert enhancement(phantom, Tissue.NODE)[1] > tumour


def test_nodes_lie_high_beside_the_chest_and_outside_the_breast_in_front_of_no_skin():
    phantom = make_phantom(replace(SMALL, nodes=4, seed=3))
    nodes = of_tissue(phantom, Tissue.NODE)
    assert nodes.any()
    z, y, x = np.argwhere(nodes).T
    world = phantom.case.grid.affine @ np.array([x, y, z, np.ones_like(x)])
    assert (np.abs(world[0]) > 80).all()
    assert world[2].min() > 25  # the nipples are at 0
    assert not (nodes & (phantom.lesions > 0)).any()


def test_without_nodes_and_border_a_phantom_is_what_it_was():
    with_nodes = make_phantom(replace(SMALL, nodes=2, seed=3))
    without = make_phantom(replace(SMALL, seed=3))
    same = with_nodes.tissue == without.tissue
    assert (with_nodes.tissue[~same] == Tissue.NODE).all()
    assert np.array_equal(with_nodes.lesions, without.lesions)


def test_a_data_set_of_them_is_written_under_their_names(tmp_path):
    root = write_data_set(
        tmp_path / "set", n_cases=2, shape=(12, 32, 32), mix=PhantomMix.ONE_BREAST
    )
    names = sorted(folder.name for folder in (root / "images").iterdir())
    assert names == ["ONE_BREAST_001", "ONE_BREAST_002"]


def test_the_blank_border_is_widest_in_the_corners_and_no_air_elsewhere_is_zeroed():
    plain = make_phantom(replace(SMALL, seed=3))
    framed = make_phantom(replace(SMALL, seed=3, blank_border_mm=24.0))
    blank = (framed.case.signal == 0).all(axis=0)
    assert blank[:, 32, 0].all()
    assert blank[:, 0].sum() > blank[:, 1].sum()
    assert blank[:, 0, :12].sum() > blank[:, 32, :12].sum()
    assert np.array_equal(framed.case.signal[:, ~blank], plain.case.signal[:, ~blank])


@pytest.mark.parametrize("wrong", [{"nodes": 7}, {"blank_border_mm": 41.0}])
def test_a_number_out_of_range_is_refused(wrong):
    with pytest.raises(CaseError, match=r"expected .* from"):
        PhantomSpec(tumours=(TumourSpec(),), **wrong)

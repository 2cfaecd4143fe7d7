"""Registration of phases against motion that is known, made by scipy and never by SimpleITK."""

import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from scipy import ndimage
from tests.stepped import Stepped

from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.choices import Interpolation, TransformKind
from napari_mamamia.core.errors import CaseError, GridMismatchError, MissingExtraError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.kinetics.registration import registration as registration_resampling
from napari_mamamia.kinetics.registration import registration as registration_tries
from napari_mamamia.kinetics.registration.itk import Warp
from napari_mamamia.kinetics.registration.quality import (
    Fit,
    jacobian_determinant,
    normalised_mutual_information,
    residual_percent,
    verdict_of,
)
from napari_mamamia.kinetics.registration.registration import register_phases, resample
from napari_mamamia.kinetics.registration.settings import RegistrationSettings, Verdict

SPACING = np.array((2.5, 2.0, 2.0))
SHAPE = (28, 64, 72)
RIGID = RegistrationSettings(transform=TransformKind.RIGID)
BSPLINE = RegistrationSettings()
TUMOUR_MM = np.array((35.0, 70.0, 45.0))


def places_mm(shape=SHAPE):
    axes = (np.arange(n) * mm for n, mm in zip(shape, SPACING, strict=True))
    return np.stack(np.meshgrid(*axes, indexing="ij"))


def tissue(places):
    """A body of fat with smooth gland and an edge, at any places in mm; no air noise."""
    rng = np.random.default_rng(4)
    half = np.array(SHAPE) * SPACING / 2
    ball = ((places - half[:, None, None, None]) / (0.85 * half)[:, None, None, None]) ** 2
    body = 1 / (1 + np.exp(20 * (ball[1] + ball[2] + 0.3 * ball[0] - 1)))
    gland = np.zeros(places.shape[1:])
    for _ in range(40):
        middle = half + rng.uniform(-0.6, 0.6, 3) * half
        width = rng.uniform(5, 14)
        square = ((places - middle[:, None, None, None]) ** 2).sum(axis=0)
        gland += rng.choice((-70, 90)) * np.exp(-square / (2 * width**2))
    return body * np.clip(200 + gland, 40, 500)


def tumour(places, radius_mm=9.0):
    away = np.sqrt(((places - TUMOUR_MM[:, None, None, None]) ** 2).sum(axis=0))
    return 1 / (1 + np.exp((away - radius_mm) / 0.8))


def case_of(moves, uptake=1.5, shape=SHAPE, dtype=np.int16):
    """A case whose phase k shows at each place what lies at ``moves[k](places)``."""
    rng = np.random.default_rng(1)
    places = places_mm(shape)
    rises = (0.0, uptake, 0.8 * uptake, 0.6 * uptake)
    phases = []
    for move, rise in zip(moves, rises, strict=False):
        at = move(places)
        image = tissue(at) * (1 + 0.04 * rise + rise * tumour(at))
        phases.append(image + rng.normal(0, 6, shape))
    z, y, x = (float(mm) for mm in SPACING)
    grid = Grid(shape, np.diag([-x, y, z, 1.0]), b"header")
    signal = np.maximum(np.rint(phases), 0).astype(dtype)
    times = (0.0, 90.0, 240.0, 480.0)
    return Case("A", grid, signal, tuple(Phase(k, times[k]) for k in range(len(moves))))


def still(places):
    return places


def turned(places):
    """2.5 degrees about z around the middle, then 3, -2.5 and 4 mm along z, y, x."""
    angle = np.deg2rad(2.5)
    half = (np.array(SHAPE) - 1) / 2 * SPACING
    z, y, x = places - half[:, None, None, None]
    turned_y, turned_x = (
        np.cos(angle) * y - np.sin(angle) * x,
        np.sin(angle) * y + np.cos(angle) * x,
    )
    shift = (half + np.array((3.0, -2.5, 4.0)))[:, None, None, None]
    return np.stack([z, turned_y, turned_x]) + shift


def waved(places):
    """A smooth field of up to 5 mm, as breathing and a relaxing muscle might make."""
    z, y, x = places
    return np.stack(
        [
            z + 1.5 * np.sin(2 * np.pi * y / 140),
            y + 4.0 * np.sin(2 * np.pi * x / 150 + 1),
            x + 3.0 * np.cos(2 * np.pi * y / 130),
        ]
    )


def inverse(move, points):
    """Where a place of the case lies in a phase moved by `move`, by fixed-point iteration."""
    found = points.copy()
    for _ in range(60):
        found += points - move(found.T[..., None, None])[..., 0, 0].T
    return found


def landmarks():
    """Places well inside the body, mm (n, 3)."""
    steps = [np.linspace(0.3, 0.7, n) for n in (4, 6, 6)]
    share = np.stack(np.meshgrid(*steps, indexing="ij")).reshape(3, -1).T
    return share * (np.array(SHAPE) - 1) * SPACING


def errors_mm(found, move):
    points = landmarks()
    return np.linalg.norm(found.places(points) - inverse(move, points), axis=1)


@pytest.fixture(scope="module")
def rigid():
    """Phase 0 turned and shifted, phase 2 as phase 1; both the case and what was found."""
    case = case_of((turned, still, still))
    return case, register_phases(case, RIGID)


@pytest.fixture(scope="module")
def mask():
    return (tumour(places_mm()) > 0.5).astype(np.uint8)


@pytest.fixture(scope="module")
def deformed(mask):
    case = case_of((waved, still))
    return case, register_phases(case, BSPLINE, mask)


@pytest.fixture(scope="module", params=[2, pytest.param(3, marks=pytest.mark.night)])
def unmoved(request):
    """Nothing moved, and the tumour rises to two and a half times its signal.

    By day the phase before contrast alone: it differs most from the one that is kept.
    """
    case = case_of((still,) * request.param)
    return case, register_phases(case, BSPLINE)


def test_a_turn_and_a_shift_are_found_within_0_3_mm_and_0_3_degrees(rigid):
    _, found = rigid
    motion = found.motions[0]
    assert (motion.verdict, motion.applied) == (Verdict.BETTER, "rigid")
    assert np.percentile(errors_mm(found.warps[0], turned), 95) < 0.3
    # `turned` turns y towards x, and the phase shows what lies at turned places: places of the case
    # lie turned back in it, from x towards y, which counts as positive
    assert motion.rotation_deg == pytest.approx((2.5, 0, 0), abs=0.3)


def test_a_phase_that_fits_already_keeps_its_own_voxels(rigid):
    case, found = rigid
    assert found.motions[2].verdict is Verdict.UNCHANGED
    assert found.motions[2].applied == "none"
    assert found.changed == (0,)
    np.testing.assert_array_equal(found.case.signal[1:], case.signal[1:])


def test_the_moved_phase_shows_what_the_unmoved_one_would(rigid):
    _, found = rigid
    truth = case_of((still, still, still)).signal[0].astype(float)
    inside = (slice(6, -6), slice(16, -16), slice(16, -16))
    off = np.abs(found.case.signal[0].astype(float) - truth)[inside]
    assert off.mean() < 8  # noise of 6 in both, smoothed in one; 29 before


def test_times_grid_type_and_the_reference_phase_are_as_they_were(rigid):
    case, found = rigid
    assert found.case.grid is case.grid
    assert found.case.grid.nifti_header == b"header"
    assert found.case.times_s == case.times_s
    assert found.case.signal.dtype == np.int16
    assert "phase 0 was registered" in found.case.warnings[-1]


def test_voxels_from_outside_are_filled_and_counted(rigid):
    case, found = rigid
    # a slab of 3 mm of 2.5 mm slices along z comes from outside, and edges along y and x
    slab = case.grid.shape[1] * case.grid.shape[2]
    assert slab * 0.5 < found.motions[0].outside < case.signal[0].size / 3
    assert found.case.signal[0].min() >= 0


def test_a_smooth_deformation_is_found_to_less_than_a_voxel(deformed):
    _, found = deformed
    motion = found.motions[0]
    assert motion.applied == "rigid + B-spline"
    assert motion.after.residual_percent < 0.5 * motion.before.residual_percent
    assert np.percentile(errors_mm(found.warps[0], waved), 95) < 2.0
    assert motion.after.nmi > motion.before.nmi
    assert 0.5 < motion.jacobian_min <= motion.jacobian_max < 2.0


def test_contrast_is_not_taken_for_motion(unmoved):
    _, found = unmoved
    moved = (0, 2)[: len(found.motions) - 1]
    for index in moved:
        assert found.motions[index].verdict is Verdict.UNCHANGED
        assert found.motions[index].displacement.p95_mm < 0.5
        off = found.warps[index].places(TUMOUR_MM[None]) - TUMOUR_MM
        assert np.linalg.norm(off) < 0.5


def test_the_volume_that_enhances_stays_where_contrast_rises_strongly(unmoved, mask):
    case, found = unmoved
    pre, post = found.case.signal[:2].astype(float)
    volume = np.count_nonzero((post > 1.7 * pre) & (ndimage.binary_dilation(mask, iterations=3)))
    pre, post = case.signal[:2].astype(float)
    before = np.count_nonzero((post > 1.7 * pre) & (ndimage.binary_dilation(mask, iterations=3)))
    assert volume == pytest.approx(before, rel=0.1)


def test_two_runs_give_the_same_voxels(rigid):
    case, found = rigid
    again = register_phases(case, RIGID)
    np.testing.assert_array_equal(again.case.signal, found.case.signal)


def test_cancel_ends_the_thread_and_changes_nothing():
    case = case_of((turned, still))
    before = case.signal.copy()
    job = Stepped(register_phases, case, BSPLINE)
    while "rigid" not in next(job).text:
        pass
    job.close()
    np.testing.assert_array_equal(case.signal, before)
    assert not [one for one in threading.enumerate() if one.name == "registration"]


def test_progress_rises_to_its_total(rigid):
    case, _ = rigid
    steps = list(
        Stepped(
            register_phases, replace(case, signal=case.signal[:2], phases=case.phases[:2]), RIGID
        )
    )
    assert steps[-1].done == steps[-1].total
    assert max(step.total for step in steps) == 100


def test_another_reference_phase_can_be_chosen():
    case = case_of((turned, still))
    found = register_phases(case, replace(RIGID, reference=0))
    np.testing.assert_array_equal(found.case.signal[0], case.signal[0])
    assert found.changed == (1,)


def plain(shape=(6, 12, 12), n_phases=2, dtype=np.int16):
    values = np.random.default_rng(0).integers(50, 900, (n_phases, *shape)).astype(dtype)
    phases = tuple(Phase(k) for k in range(n_phases))
    return Case("B", Grid(shape, np.diag([-2.0, 2.0, 2.0, 1.0])), values, phases)


def test_one_phase_is_an_error():
    with pytest.raises(CaseError, match="at least 2"):
        register_phases(plain(n_phases=1))


def test_a_phase_with_nan_is_an_error_that_names_it():
    case = plain(dtype=np.float32)
    case.signal[1, 2, 3, 4] = np.nan
    with pytest.raises(CaseError, match=r"phase 1 of B .* found 1 voxel with NaN"):
        register_phases(case)


def test_two_slices_are_an_error():
    with pytest.raises(CaseError, match=r"\(2, 12, 12\)"):
        register_phases(plain(shape=(2, 12, 12)))


def test_a_constant_phase_is_an_error():
    case = plain()
    case.signal[0] = 7
    with pytest.raises(CaseError, match=r"phase 0 of B .* every voxel has the value 7"):
        register_phases(case)


def test_a_reference_phase_that_is_not_there_is_an_error():
    with pytest.raises(CaseError, match="from 0 to 1, but got 4"):
        register_phases(plain(), RegistrationSettings(reference=4))


def test_sheared_axes_are_an_error():
    affine = np.diag([-2.0, 2.0, 2.0, 1.0])
    affine[1, 2] = 0.5
    case = replace(plain(), grid=Grid((6, 12, 12), affine))
    with pytest.raises(CaseError, match="sheared"):
        register_phases(case)


def test_a_mask_of_another_shape_is_an_error():
    with pytest.raises(GridMismatchError, match=r"\(2, 2, 2\)"):
        register_phases(plain(), mask=np.ones((2, 2, 2)))


def test_without_simpleitk_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "SimpleITK", None)
    with pytest.raises(MissingExtraError, match=r"napari-mamamia\[register\]"):
        register_phases(plain())


def test_the_residual_of_a_scaled_phase_is_zero_and_that_of_a_shifted_one_is_not():
    reference = np.arange(100, dtype=np.float32)
    assert residual_percent(3 * reference + 7, reference, 50.0) == pytest.approx(0, abs=1e-9)
    # 100 values; the tenth of them 40 higher, which a robust fit does not follow: 4 on average
    off = reference.copy()
    off[::10] += 40
    assert residual_percent(off, reference, 50.0) == pytest.approx(100 * 4 / 50, rel=0.1)


def test_mutual_information_of_a_volume_with_itself_is_2_and_with_noise_about_1():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 200_000)).astype(np.float32)
    assert normalised_mutual_information(a, a) == pytest.approx(2)
    assert normalised_mutual_information(a, b) == pytest.approx(1, abs=0.01)


def test_the_determinant_of_a_stretch_is_its_volume_and_of_a_mirror_negative():
    z, y, x = np.meshgrid(*(np.arange(n) * 2.0 for n in (3, 4, 5)), indexing="ij")
    stretch = np.stack([0.1 * z, 0 * y, 0.2 * x])
    np.testing.assert_allclose(jacobian_determinant(stretch, (2.0, 2.0, 2.0)), 1.1 * 1.2)
    mirror = np.stack([-2 * z, 0 * y, 0 * x])
    np.testing.assert_allclose(jacobian_determinant(mirror, (2.0, 2.0, 2.0)), -1)


def test_verdicts_by_hand():
    before = Fit(10.0, 1.2)
    assert verdict_of(before, Fit(9.4, 1.2)) is Verdict.BETTER
    assert verdict_of(before, Fit(9.6, 1.2)) is Verdict.UNCHANGED
    assert verdict_of(before, Fit(10.3, 1.2)) is Verdict.WORSE
    assert verdict_of(before, Fit(9.0, 1.19)) is Verdict.WORSE  # information is lost
    assert verdict_of(before, Fit(float("nan"), float("nan"))) is Verdict.WORSE


def moved_by_half_a_voxel(volume, interpolation):
    """A volume (slices 0 to 9) moved by half a voxel along x, away from its ends, by SimpleITK."""
    import SimpleITK as sitk  # noqa: N813 - as its users write it

    grid = Grid(volume.shape, np.diag([-2.0, 2.0, 2.0, 1.0]))
    case = Case("C", grid, np.stack([volume, volume]), (Phase(0), Phase(1)))
    warp = Warp(sitk.TranslationTransform(3, (1.0, 0.0, 0.0)), (0,) * 3, (0, 0, 1), (0,) * 3, 1.0)
    out = np.empty_like(volume)
    outside = resample(case, 0, warp, interpolation, out)
    return out, outside


@pytest.mark.parametrize(("interpolation", "order"), [("bspline", 3), ("linear", 1)])
def test_a_phase_is_read_between_its_voxels_as_scipy_reads_it(interpolation, order):
    volume = np.random.default_rng(3).integers(100, 900, (9, 20, 24)).astype(np.float32)
    found, outside = moved_by_half_a_voxel(volume, Interpolation(interpolation))
    wanted = ndimage.shift(volume.astype(float), (0, 0, -0.5), order=order, mode="mirror")
    wanted = np.clip(wanted, volume.min(), volume.max())
    np.testing.assert_allclose(found[..., :-1], wanted[..., :-1], atol=1e-3)
    np.testing.assert_array_equal(found[..., -1], volume[..., -1])  # from outside: the edge
    assert outside == 9 * 20


def test_what_a_spline_overshoots_is_cut_at_the_phase_s_own_values():
    step = np.zeros((6, 8, 30), np.uint8)
    step[..., 15:] = 250  # a cubic B-spline reaches 275 and -25: 19 and 231 in this type
    found, _ = moved_by_half_a_voxel(step, Interpolation.BSPLINE)
    assert found.dtype == np.uint8
    assert found[..., :13].max() < 50
    assert found[..., 16:].min() > 200
    assert (found.min(), found.max()) == (0, 250)


def test_slabs_of_a_large_phase_meet_without_a_seam(monkeypatch):
    volume = np.random.default_rng(5).integers(0, 900, (9, 20, 24)).astype(np.int16)
    whole, _ = moved_by_half_a_voxel(volume, Interpolation.BSPLINE)
    monkeypatch.setattr(registration_resampling, "_SLAB_VOXELS", 2 * 20 * 24)
    slabs, _ = moved_by_half_a_voxel(volume, Interpolation.BSPLINE)
    np.testing.assert_array_equal(slabs, whole)


def test_the_way_of_reading_is_part_of_the_method_s_name():
    assert RegistrationSettings().name.endswith("cubic B-spline interpolation")
    linear = RegistrationSettings(interpolation=Interpolation.LINEAR)
    assert linear.name.endswith("linear interpolation")


def found_as(monkeypatch, name, warp):
    """Let a step of the registration find `warp`, whatever the phases show."""

    def find(levels, *_others):
        report_progress(0, 1)
        return warp

    monkeypatch.setattr(registration_tries, name, find)


def test_a_phase_that_would_get_worse_is_left_as_it_was(monkeypatch):
    import SimpleITK as sitk  # noqa: N813 - as its users write it

    away = sitk.TranslationTransform(3, (0.0, 9.0, 0.0))
    found_as(monkeypatch, "find_rigid", Warp(away, (0, 0, 0), (0, 9, 0), (0, 0, 0), 1.0))
    case = case_of((still, still))
    found = register_phases(case, RIGID)
    assert found.motions[0].verdict is Verdict.WORSE
    assert found.motions[0].note == "left unchanged"
    assert found.case is case


def test_a_b_spline_that_folds_gives_way_to_rigid(monkeypatch):
    import SimpleITK as sitk  # noqa: N813 - as its users write it

    mirror = sitk.AffineTransform(3)
    mirror.SetMatrix((1, 0, 0, 0, 1, 0, 0, 0, -1))
    warp = Warp(mirror, (0, 0, 0), (0, 0, 0), (0, 0, 0), 1.0, True, (40.0, 40.0, 40.0))
    found_as(monkeypatch, "find_bspline", warp)
    found = register_phases(case_of((turned, still)), BSPLINE)
    assert found.motions[0].applied == "rigid"
    assert "folds" in found.motions[0].note

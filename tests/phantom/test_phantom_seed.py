"""The same spec gives the same bits; changing one part leaves the others alone."""

import hashlib
import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
from scipy import ndimage

from napari_mamamia.core.progress import listening
from napari_mamamia.phantom import (
    PhantomSpec,
    Tissue,
    TumourKind,
    TumourSpec,
    make_phantom,
    make_phantom_job,
)

SPEC = PhantomSpec(
    seed=21,
    shape=(22, 50, 76),
    spacing_mm=(6.5, 4.0, 4.0),
    tumours=(TumourSpec(30.0, TumourKind.RIM, spicules=10),),
    times_s=(0.0, 120.0, 400.0),
    motion_mm=((1.0, 0.0, 0.5), (0.0, 0.0, 0.0), (0.0, 2.0, 0.0)),
    fat_suppression_failure_mm=25.0,
)


@cache
def made_once():
    """Return the phantom of SPEC; no test changes it."""
    return make_phantom(SPEC)


PROGRAM = """
import hashlib
from napari_mamamia.phantom import *
spec = {spec!r}
phantom = make_phantom(spec)
parts = (phantom.case.signal, phantom.tissue, phantom.lesions, phantom.breast)
print(hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest())
"""


def digest(phantom):
    parts = (phantom.case.signal, phantom.tissue, phantom.lesions, phantom.breast)
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def test_the_same_spec_gives_the_same_bits_in_a_fresh_process():
    program = PROGRAM.format(spec=SPEC)
    for name in ("TumourKind.RIM", "CurveType.WASHOUT", "Side.LEFT", "Breasts.BOTH"):
        kind, member = name.split(".")
        program = program.replace(f"<{name}: '{member.lower()}'>", f"{kind}.{member}")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == digest(made_once())


def test_another_seed_gives_another_patient():
    other = make_phantom(replace(SPEC, seed=22))
    assert not np.array_equal(other.tissue, made_once().tissue)


def test_noise_and_coil_do_not_change_the_anatomy():
    one = made_once()
    other = make_phantom(replace(SPEC, contrast_to_noise=3.0, bias_percent=30.0))
    assert np.array_equal(one.tissue, other.tissue)
    assert np.array_equal(one.lesions, other.lesions)


def test_a_second_tumour_leaves_the_rest_in_its_place():
    one = made_once()
    two = make_phantom(replace(SPEC, tumours=(*SPEC.tumours, TumourSpec(14.0))))
    assert np.array_equal(two.lesions == 1, one.lesions == 1)
    changed = two.tissue != one.tissue
    new = ndimage.binary_dilation(two.lesions == 2, iterations=2) | (two.tissue == Tissue.VESSEL)
    assert not (changed & ~new).any()


def test_density_does_not_change_skin_and_chest():
    one, other = made_once(), make_phantom(replace(SPEC, breast_density="d", tumours=()))
    for tissue in (Tissue.AIR, Tissue.LUNG, Tissue.LIVER):
        assert np.array_equal(one.tissue == tissue, other.tissue == tissue)


def test_the_job_reports_progress_from_start_to_end():
    seen = []
    with listening(seen.append):
        make_phantom_job(SPEC)
    assert seen[0].done == 0
    assert seen[-1].done == seen[-1].total
    fractions = [progress.fraction for progress in seen]
    assert fractions == sorted(fractions)
    assert len(set(fractions)) > 3


def test_truth_arrays_are_read_only_and_the_record_names_the_case():
    phantom = made_once()
    for array in (phantom.tissue, phantom.lesions, phantom.breast, phantom.reference.array):
        assert not array.flags.writeable
    assert phantom.record.case_id == phantom.case.case_id == "PHANTOM_001"
    assert phantom.record.acquisition_times_s == phantom.case.times_s
    assert phantom.record.breast_density == "b"
    assert phantom.reference.provenance.maker == "phantom"

"""Each protocol of a breast study gets its verdict: its phases in order, or a refusal that asks."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np
import pytest
from tests.halves import sixth_by_day
from tests.printed_remedies import as_printed, refuses

from napari_mamamia.cli.remedies import name_remedies
from napari_mamamia.core.choices import Clock
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.io.clinical.clinical import read_clinical
from napari_mamamia.io.dicom.headers import read_slices
from napari_mamamia.io.exam.inconsistencies import loss_warnings
from napari_mamamia.io.exam.selectors import read_selectors
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.dicom.dicom import import_dicom
from napari_mamamia.services.dicom.finding import ImportSettings

pytest.importorskip("pydicom")

_SPEC = importlib.util.spec_from_file_location(
    "dicom_hostile", Path(__file__).parents[1] / "dicom_hostile.py"
)
hostile = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(hostile)
protocols = hostile.protocols


def imported(source, out, *use, **settings):
    wanted = ImportSettings(use=read_selectors(use), **settings)
    return import_dicom(source, out, "P1", wanted).imported[0]


def volumes_of(out):
    files = sorted((out / "images" / "P1").iterdir())
    return [np.asarray(nibabel.load(file).dataobj).T[:, ::-1] for file in files]


def outcome_of(protocol, folder):
    """Return the imported case, or None and the refusal's text."""
    protocol.write(folder / "in")
    try:
        return imported(folder / "in", folder / "out", *protocol.use), ""
    except MamamiaError as error:
        return None, as_printed(error)


@pytest.mark.parametrize(
    "protocol",
    sixth_by_day([*protocols.PROTOCOLS, *hostile.HOSTILE]),
    ids=lambda one: one.name,
)
def test_a_protocol_gets_its_verdict(tmp_path, protocol):
    case, refusal = outcome_of(protocol, tmp_path)
    if case is None:
        assert protocol.or_refused or not protocol.phases, refusal
        assert protocol.said in refusal
        assert not (tmp_path / "out").exists()
        return
    assert protocol.phases, f"accepted: {case.times_s}"
    found = volumes_of(tmp_path / "out")
    assert len(found) == len(protocol.phases)
    for values, k in zip(found, protocol.phases, strict=True):
        if k is None:
            continue
        number, seed = k if isinstance(k, tuple) else (k, 0)
        assert np.array_equal(values, protocols.volume(number, seed=seed))
    assert case.times_s == protocol.times
    printed = (w.text + name_remedies(w.remedies) for w in case.warnings)
    assert protocol.said in " ".join(printed)


@pytest.mark.parametrize(
    "write",
    [
        hostile.numbers_that_jump(100),
        hostile.numbers_that_jump(8),
        hostile.shared_by_water_and_fat,
        *sixth_by_day([p.write for p in protocols.PROTOCOLS if p.phases and not p.said]),
    ],
)
def test_no_loss_is_told_of_whole_studies(tmp_path, write):
    write(tmp_path / "in")
    images = [read_slices(path) for path in sorted((tmp_path / "in").rglob("*.dcm"))]
    slices = [piece for image in images if isinstance(image, tuple) for piece in image]
    series = {piece.header.series_uid: piece for piece in slices}
    n_places = len({piece.position_mm for piece in slices})
    stacks = [[piece] * n_places for piece in series.values()]
    assert loss_warnings(images, slices, stacks) == ()


@pytest.mark.parametrize(
    ("clock", "elements", "times"),
    [
        (Clock.CONTENT_TIME, {"ContentTime": lambda k, _: hostile.clock(hostile.TIMES[k] + 60)},
         hostile.TIMES),
        (Clock.TEMPORAL_POSITION, {"TemporalPositionIdentifier": lambda k, _: k + 1}, None),
    ],
)  # fmt: skip
def test_the_clock_that_a_refusal_offers_keeps_two_phases_of_one_acquisition_time(
    tmp_path, clock, elements, times
):
    hostile.two_phases_of_one_time(**elements)(tmp_path / "in")
    with refuses(MamamiaError, f"--clock {clock}"):
        imported(tmp_path / "in", tmp_path / "out")
    case = imported(tmp_path / "in", tmp_path / "out", clock=clock)
    assert case.times_s == times
    for k, values in enumerate(volumes_of(tmp_path / "out")):
        assert np.array_equal(values, protocols.volume(k))


# ---- the real unilateral exam


@pytest.fixture(scope="module")
def ispy1(real_data, tmp_path_factory):
    """Return the import of the whole exam of ISPY1_1002, without options, by the command."""
    out = tmp_path_factory.mktemp("ispy1")
    done = subprocess.run(
        [sys.executable, "-c", "from napari_mamamia.cli import main; main()", "import",
         str(real_data("ispy1_1002.zip")), "--out", str(out), "--case", "ISPY1_1002"],
        capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.real
@pytest.mark.door
def test_a_plain_import_of_a_real_sagittal_exam_is_the_case_that_mama_mia_published(
    ispy1, real_data
):
    table = real_data("clinical") / "clinical_and_imaging_info.xlsx"
    published = next(r for r in read_clinical(table).records if r.case_id == "ISPY1_1002")
    case = load_case(find_data_set(ispy1).case("ISPY1_1002"))
    assert case.times_s == published.acquisition_times_s == (0, 423, 768)
    assert case.signal.shape[:2] == (3, published.other["num_slices"])
    assert case.grid.spacing_mm == pytest.approx((2.0, 0.78125, 0.78125))
    (row,) = read_clinical(ispy1 / "clinical_and_imaging_info.csv").records
    assert row.other["field_strength"] == 1.5


@pytest.mark.real
@pytest.mark.door
def test_the_provenance_says_what_each_series_of_the_real_exam_is(ispy1):
    info = json.loads((ispy1 / "patient_info_files" / "ISPY1_1002.json").read_text())
    roles = {row["number"]: (row["role"], row["use"]) for row in info["import"]["series"]}
    assert roles == {
        1: ("echo-train", "left out"),
        2: ("echo-train", "left out"),
        3: ("phase", "used"),
        4: ("localiser", "left out"),
        5: ("diffusion", "left out"),
        6: ("diffusion", "left out"),
        31000: ("map", "left out"),
        31001: ("map", "left out"),
        None: ("no-image", "left out"),
    }

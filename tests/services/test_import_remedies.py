"""Every refusal of an import leads on: what it recommends is typed as it stands, and helps."""

import importlib.util
import json
from pathlib import Path

import nibabel
import numpy as np
import pytest
from tests.cli.warm_program import mamamia
from tests.halves import sixth_by_day
from tests.printed_remedies import printed_options

from napari_mamamia.core.choices import Clock, Sides
from napari_mamamia.core.errors import Remedy
from napari_mamamia.io.exam.selectors import read_selectors
from napari_mamamia.services.dicom.dicom import import_dicom
from napari_mamamia.services.dicom.finding import ImportSettings, find_studies
from napari_mamamia.services.dicom.remedies import SETTINGS, apply_remedy

pydicom = pytest.importorskip("pydicom")

_SPEC = importlib.util.spec_from_file_location(
    "dicom_hostile", Path(__file__).parents[1] / "dicom_hostile.py"
)
hostile = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(hostile)
protocols = hostile.protocols

_MOST_STEPS = 4
NO_DYNAMIC = {"DTI only", "inversion times", "magnetisation transfer"}
"""Studies of which no part has two phases: nothing can be named that counts."""
ASKED = [
    one
    for one in (*protocols.PROTOCOLS, *hostile.HOSTILE)
    if (not one.phases or one.or_refused)
    and one.name not in NO_DYNAMIC | {"two patients", "two birth dates"}
]
"""Of two patients in one series none can be told from the other: that one is no question."""
WITHOUT_PRE = ("no scan before contrast", "phase 0 is not pre-contrast",
               "check that phase 0 is pre-contrast", "no enhancement is visible",
               "whether the pre-contrast series is missing")  # fmt: skip
"""What says of an import that its first phase is not before contrast."""
BAD_PHASE = {
    "a phase again in the series": "series=5,phase=6",
    "noise as last phase": "series=5,phase=6",
    "zeros as last phase": "series=5,phase=6",
    "last phase lacks a slice inside": "series=5,phase=6",
    "last phase lacks end slices": "series=5,phase=6",
    "fat in the series": "series=5,phase=6,7,8,9,10,11",
    "numberless series, one again": "series=none,phase=6",
    "last phase in another matrix": "series=5,phase=6",
    "last phase was cut": "series=5,phase=6",
}


def refused(source, settings):
    return [study for study in studies_of(source, settings) if study.exam is None]


def studies_of(source, settings):
    return find_studies(source, source, "P1", settings)


def is_after_contrast(stack):
    """Whether the heart of a phantom, darker than its fat before contrast, is brighter."""
    plane = pydicom.dcmread(stack[len(stack) // 2].file).pixel_array.astype(float)
    plane = plane if plane.ndim == 2 else plane[0]
    rows, columns = plane.shape
    heart = plane[int(0.72 * rows) : int(0.78 * rows), int(0.54 * columns) : int(0.59 * columns)]
    fat = plane[int(0.48 * rows) : int(0.6 * rows), int(0.1 * columns) : int(0.2 * columns)]
    return heart.mean() > 1.4 * fat.mean() > 0


def require_dynamic(exam, problem):
    """Phases before and after contrast, or a word that it is otherwise, before it was written."""
    if len(exam.stacks) == 1:
        assert "there is only one phase" in " ".join(warning.text for warning in exam.warnings)
        assert "(1 phase)" in problem
    if is_after_contrast(exam.stacks[0]):
        told = " ".join((problem, *(warning.text for warning in exam.warnings)))
        assert any(word in told for word in WITHOUT_PRE), (problem, exam.warnings)


@pytest.mark.parametrize("protocol", sixth_by_day(ASKED), ids=lambda one: one.name)
def test_every_way_that_a_refusal_names_leads_to_an_import_and_none_in_a_circle(tmp_path, protocol):
    protocol.write(tmp_path)
    waiting = [((), ImportSettings(), study) for study in refused(tmp_path, ImportSettings())]
    assert waiting or protocol.or_refused
    while waiting:
        path, settings, study = waiting.pop()
        problem = study.problem
        assert study.remedies, f"{path} ends at: {problem}"
        assert len(path) < _MOST_STEPS, f"{path} goes on: {problem}"
        for remedy in study.remedies:
            assert remedy.option in SETTINGS
            went = apply_remedy(settings, remedy)
            found = studies_of(tmp_path, went)
            for exam in (study.exam for study in found if study.exam is not None):
                require_dynamic(exam, problem)
            again = [study for study in found if study.exam is None]
            assert problem not in [study.problem for study in again], f"{remedy} changes nothing"
            waiting += [((*path, remedy), went, study) for study in again]


@pytest.mark.parametrize("name", sorted(NO_DYNAMIC))
def test_a_study_without_two_phases_is_refused_without_a_way_to_a_case_of_one(tmp_path, name):
    every = (*protocols.PROTOCOLS, *hostile.HOSTILE)
    next(one for one in every if one.name == name).write(tmp_path)
    (study,) = refused(tmp_path, ImportSettings())
    assert "choose the folder of the DCE series" in study.problem
    assert study.remedies == ()


@pytest.mark.parametrize("settings", [
    {"leave_out": read_selectors(["series=5,phase=0"])},
    {"use": read_selectors(["series=5,phase=1,2,3"])},
    {"leave_out": read_selectors(["series=5,phase=0,1"])},
    {"phases": (1, 2, 3)},
    {"phases": (2,)},
], ids=str)  # fmt: skip
def test_whoever_leaves_the_scan_before_contrast_out_is_told(tmp_path, settings):
    hostile.five(tmp_path)
    (study,) = studies_of(tmp_path, ImportSettings(**settings))
    assert any(
        "is not pre-contrast, and all enhancement" in told.text for told in study.exam.warnings
    )


def test_whoever_leaves_one_of_two_scans_before_contrast_out_is_not_warned(tmp_path):
    protocols.series(tmp_path, 4, 0, hostile.breast(0, seed=3), -75)
    hostile.five(tmp_path)
    (study,) = studies_of(tmp_path, ImportSettings(leave_out=read_selectors(["series=4"])))
    assert study.exam.warnings == ()


@pytest.mark.parametrize(("day", "person", "is_told"), [
    ("20200101", "A1", True), ("20200102", "A1", False), ("20200101", "B2", False),
], ids=str)  # fmt: skip
def test_two_studies_of_one_patient_day_and_place_name_each_other(tmp_path, day, person, is_told):
    for k, own in enumerate(({}, {"AcquisitionDate": day, "PatientID": person})):
        protocols.dynamic(tmp_path, 5 + k, first=2 * k, times=protocols.TIMES[: 2 + 4 * k],
                          **{"StudyInstanceUID": f"2.25.{k + 1}", "PatientID": "A1", **own}
                          )  # fmt: skip
    told = [
        " ".join(warning.text for warning in study.exam.warnings)
        for study in studies_of(tmp_path, ImportSettings())
    ]
    assert ["P1_002 has the same patient" in told[0],
            "P1_001 has the same patient" in told[1]] == [is_told] * 2  # fmt: skip


@pytest.mark.parametrize("name", BAD_PHASE)
def test_one_bad_phase_of_a_series_is_left_out_by_the_option_that_the_refusal_names(tmp_path, name):
    one = next(p for p in hostile.BAD_PHASES if p.name == name)
    one.write(tmp_path / "in")
    (study,) = refused(tmp_path / "in", ImportSettings())
    first = study.remedies[0]
    assert first == Remedy("leave_out", (BAD_PHASE[name],))
    import_dicom(tmp_path / "in", tmp_path / "out", "P1", apply_remedy(ImportSettings(), first))
    require_the_others(tmp_path / "out", name)


@pytest.mark.door
def test_the_command_takes_the_option_that_its_own_refusal_prints(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    name = "last phase lacks a slice inside"
    next(p for p in hostile.BAD_PHASES if p.name == name).write(tmp_path / "in")
    command = ("import", tmp_path / "in", "--out", tmp_path / "out", "--case", "P1")
    asked = mamamia(*command)
    assert asked.returncode == 1
    options = printed_options(" ".join(asked.stderr.split()))[0]
    done = mamamia(*command, *options)
    assert done.returncode == 0, done.stderr
    require_the_others(tmp_path / "out", name)


def require_the_others(out, name):
    """The six phases of the dynamic, their times, and in the record what was left out."""
    files = sorted((out / "images" / "P1").iterdir())
    found = [np.asarray(nibabel.load(file).dataobj).T[:, ::-1] for file in files]
    assert len(found) == len(protocols.TIMES)
    for k, values in enumerate(found):
        assert np.array_equal(values, protocols.volume(k))
    info = json.loads((out / "patient_info_files" / "P1.json").read_text())
    assert tuple(info["imaging_data"]["acquisition_times"]) == protocols.TIMES
    gone = [row for row in info["import"]["series"] if row["use"] == "left out"]
    assert [row["fate"] for row in gone] == ["left out: not chosen"]
    assert gone[0]["selector"].endswith(BAD_PHASE[name].partition(",")[2].replace(",", ",phase="))


# ---- what was said and means nothing in this study


def judged(source, **settings):
    return find_studies(source, source, "P1", ImportSettings(**settings))


@pytest.mark.parametrize(
    ("option", "idle"),
    [
        ({"leave_out": ["series=55"]}, "series=55"),
        ({"leave_out": ["phase=6"]}, "phase=6"),
        ({"leave_out": ["series=5,side=left"]}, "side=left"),
        ({"use": ["series=5,9"]}, "series=9"),
        ({"use": ["series=5", "echo=3"]}, "echo=3"),
    ],
    ids=str,
)
def test_a_selector_that_fits_nothing_is_refused_and_the_table_is_shown(tmp_path, option, idle):
    protocols.dynamic(tmp_path)
    groups = {name: read_selectors(texts) for name, texts in option.items()}
    (study,) = judged(tmp_path, **groups)
    assert f"but {idle} match" in study.problem
    assert "nothing in the study" in study.problem
    assert study.rows


def test_a_selector_that_fits_one_of_several_studies_is_taken(tmp_path):
    for number, uid in ((5, "2.25.1"), (6, "2.25.2")):
        protocols.dynamic(tmp_path / uid, number, StudyInstanceUID=uid)
    assert [s.problem for s in judged(tmp_path, leave_out=read_selectors(["phase=5"]))] == ["", ""]
    left = judged(tmp_path, leave_out=read_selectors(["series=6,phase=5"]))
    assert [len(study.exam.stacks) for study in left] == [6, 5]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"allow_thin": True},
            ("stacks of fewer than 3 slices were allowed, but there is no such stack"),
        ),
        ({"sides": Sides.TWO}, "the phases are not two sagittal stacks"),
        ({"sides": Sides.JOIN}, "the phases are not two sagittal stacks"),
    ],
)
def test_what_was_allowed_or_chosen_for_nothing_is_told(tmp_path, settings, said):
    protocols.dynamic(tmp_path)
    (study,) = judged(tmp_path, **settings)
    assert any(said in warning.text for warning in study.exam.warnings)


def test_a_clock_named_for_one_phase_is_told(tmp_path):
    protocols.dynamic(tmp_path, times=(0,))
    (study,) = judged(tmp_path, clock=Clock.ACQUISITION_TIME)
    assert any("there is only one phase" in warning.text for warning in study.exam.warnings)

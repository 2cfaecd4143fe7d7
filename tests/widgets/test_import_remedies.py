"""One refusal of each kind: command line, library and window offer the same remedies."""

import importlib.util
from pathlib import Path

import pytest
from qtpy.QtWidgets import QAbstractButton
from tests.cli.warm_program import mamamia
from tests.printed_remedies import printed_options

import napari_mamamia as mm
from napari_mamamia.core.errors import Remedy
from napari_mamamia.io.exam.selectors import read_selectors
from napari_mamamia.services.dicom.finding import ImportSettings, look_into
from napari_mamamia.services.dicom.inspection import look_at_source
from napari_mamamia.widgets.dicom.choice import first_choice
from napari_mamamia.widgets.dicom.page import StudyView
from napari_mamamia.widgets.dicom.text import remedy_text

pytest.importorskip("pydicom")

_SPEC = importlib.util.spec_from_file_location(
    "dicom_hostile", Path(__file__).parents[1] / "dicom_hostile.py"
)
hostile = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(hostile)
protocols = hostile.protocols
STUDIES = {one.name: one.write for one in (*protocols.PROTOCOLS, *hostile.HOSTILE)}


def two_slices(folder):
    protocols.dynamic(folder)
    for file in folder.rglob("*.dcm"):
        if not file.stem.endswith(("_001", "_002")):
            file.unlink()


def one_unreadable_file(folder):
    protocols.dynamic(folder)
    file = next(folder.rglob("*.dcm"))
    file.write_bytes(file.read_bytes()[:200])


STUDIES |= {"two slices": two_slices, "an unreadable file": one_unreadable_file}
REFUSED = {
    "another echo time midway": {
        "--use series=5,6,7": "Use series 5-7",
        "--use series=10,8,9": "Use series 8-10",
    },
    "left and right": {
        "--sides join": "join the two breasts into one case",
        "--sides two": "Make two cases, left and right",
        "--use side=left": "Use the left breast",
        "--use side=right": "Use the right breast",
    },
    "two phases of one time, by ContentTime": {
        "--leave-out series=5,phase=3": "Leave out phase 3 of series 5",
        "--leave-out series=5,phase=2": "Leave out phase 2 of series 5",
        "--clock ContentTime": "Order by ContentTime",
    },
    "pre of another day": {
        "--use series=4,5": "Use series 4, 5",
        "--leave-out series=4": "Leave out series 4",
    },
    "a tumour before the rest": {
        "--use role=phase,earlier-pre": "Use roles phase, earlier-pre",
        "--leave-out series=5,phase=0": "Leave out phase 0 of series 5",
    },
    "two contrast times": {
        "--leave-out series=5,phase=3,4,5": "Leave out phases 3-5 of series 5",
        "--leave-out series=5,phase=0,1,2": "Leave out phases 0-2 of series 5",
    },
    "last phase lacks a slice inside": {
        "--leave-out series=5,phase=6": "Leave out phase 6 of series 5",
    },
    "last phase was cut": {"--leave-out series=5,phase=6": "Leave out phase 6 of series 5"},
    "fMRI only": {"--use series=14": "Use series 14"},
    "two slices": {"--allow-thin": "Accept the small number of slices"},
    "an unreadable file": {"--leave-out role=unreadable": "Leave out unreadable files"},
}
"""For each kind of refusal its remedies: as they are typed, and on which control they stand."""


def as_argument(option):
    """Return a typed option as the argument of `import_dicom`."""
    name, _, value = option.removeprefix("--").partition(" ")
    return f'{name.replace("-", "_")}="{value}"' if value else f"{name.replace('-', '_')}=True"


@pytest.mark.parametrize("name", REFUSED)
def test_command_library_and_window_offer_the_same_remedies(tmp_path, qtbot, name):
    STUDIES[name](tmp_path)
    expected = REFUSED[name]
    (study,) = look_into(tmp_path)
    assert "--" not in study.problem

    asked = mamamia("import", tmp_path, "--out", tmp_path / "out", "--case", "P1")
    assert asked.returncode == 1
    printed = printed_options(" ".join(asked.stderr.split()))
    assert [" ".join(options) for options in printed] == list(expected)

    problem = mm.inspect_dicom(tmp_path, progress=False)["problem"][0]
    arguments = ", or ".join(map(as_argument, expected))
    assert problem == f"{study.problem} ({arguments})"

    view = StudyView()
    qtbot.addWidget(view)
    view.show_choice(first_choice(look_at_source(tmp_path).studies[0]))
    controls = [*view.remedies.findChildren(QAbstractButton), view.join, view.part]
    texts = [control.text() for control in controls if control.isVisibleTo(view)]
    assert sorted(texts) == sorted(expected.values())
    assert "--" not in view.problem.text()


def test_a_selector_that_fits_nothing_leads_to_the_table_of_the_study(tmp_path):
    protocols.dynamic(tmp_path)
    (study,) = look_into(tmp_path, "P1", ImportSettings(leave_out=read_selectors(["series=55"])))
    assert study.remedies == (Remedy("dry_run"),)
    asked = mamamia("import", tmp_path, "--out", tmp_path / "o", "--leave-out", "series=55")
    assert (asked.returncode, "(--dry-run)" in asked.stderr) == (1, True)
    with pytest.raises(mm.MamamiaError, match=r"\(mm\.inspect_dicom\(\.\.\.\)\)"):
        mm.import_dicom(tmp_path, tmp_path / "o", leave_out="series=55", progress=False)


def test_a_phase_that_is_not_there_leads_to_the_table_of_the_study(tmp_path):
    protocols.dynamic(tmp_path / "in")
    asked = mamamia("import", tmp_path / "in", "--out", tmp_path / "o", "--phases", "0,9")
    assert (asked.returncode, "(--dry-run)" in asked.stderr) == (1, True)


@pytest.mark.parametrize(
    ("remedy", "text"),
    [
        (Remedy("use", ("series=5,6",)), "Use series 5, 6"),
        (
            Remedy("leave_out", ("series=5,phase=1", "series=9")),
            "Leave out phase 1 of series 5; leave out series 9",
        ),
        (Remedy("sides", ("two",)), "Make two cases, one for each breast"),
        (Remedy("use", ("series=none,side=left",)), "Use the left breast of series without number"),
        (Remedy("dry_run"), ""),
    ],
)
def test_a_button_says_what_its_remedy_does(remedy, text):
    assert remedy_text(remedy) == text

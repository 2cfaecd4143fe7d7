"""Layouts proposed from names: folders as tools and trials write them, that no known layout fits.

The expected patients, visits and phases were written down before the proposals were tried.
"""

import nibabel
import numpy as np
import pytest
from tests.dicom_phantoms import write_phase

from napari_mamamia.core.errors import ProposedLayoutError
from napari_mamamia.io.layouts.find import find_data_set


def save(path, n_frames=1, mask=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (3, 3, 2) if n_frames == 1 else (3, 3, 2, n_frames)
    values = np.zeros(shape, np.uint8) + 1 if mask else np.zeros(shape, np.int16)
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), path)


XNAT = "PROJ/{p}/{p}_MR1/scans/{n}-{d}/resources/NIFTI/files/{d}"
SERIES = [(6, "DYN_PRE"), (7, "DYN_POST1"), (8, "DYN_POST2")]
LAYOUTS = {
    # name: (patients, visits, sides, phases, masks, other files)
    "xnat": (
        ("S01", "S02"),
        ("",),
        ("",),
        [XNAT.replace("{n}", str(n)).replace("{d}", d) for n, d in SERIES],
        [],
        ["PROJ/{p}/{p}_MR1/scans/3-AX_T2/resources/NIFTI/files/AX_T2"],
    ),
    "series-numbers": (
        ("P01", "P02"),
        ("",),
        ("",),
        ["{p}/6_ax_dyn_pre", "{p}/7_ax_dyn_post1", "{p}/8_ax_dyn_post2"],
        [],
        ["{p}/3_ax_t2_fs", "{p}/9_sub_post1"],
    ),
    "numbered-contrast": (
        ("B001", "B002"),
        ("",),
        ("",),
        ["cases/{p}/{p}_pre", "cases/{p}/{p}_C1", "cases/{p}/{p}_C2"],
        [],
        [],
    ),
    "dates-and-series-numbers": (
        ("sub01", "sub02"),
        ("",),
        ("",),
        [f"{{p}}/20190412_{3 + k:02}_t1_dyn_{k}" for k in range(3)],
        [],
        [],
    ),
    "passes": (
        ("Breast_MRI_001", "Breast_MRI_002"),
        ("",),
        ("",),
        ["{p}/ax_dyn_pre", "{p}/ax_dyn_1st_pass", "{p}/ax_dyn_2nd_pass"],
        [],
        ["{p}/ax_t1"],
    ),
    "flat": (
        ("Breast_MRI_001", "Breast_MRI_002"),
        ("",),
        ("",),
        ["{p}_pre", "{p}_post_1", "{p}_post_2"],
        ["{p}_mask"],
        [],
    ),
    "visits": (
        ("ISPY2-102011", "ISPY2-102212"),
        ("T0", "T1", "T2"),
        ("",),
        [f"{{p}}/{{v}}/{{p}}_{{v}}_DCE_{k}" for k in range(3)],
        ["{p}/{v}/{p}_{v}_tumor_mask"],
        ["{p}/{v}/{p}_{v}_ADC", "{p}/{v}/{p}_{v}_SER"],
    ),
    "slicer": (
        ("",),
        ("",),
        ("",),
        ["6 AX DYN PRE", "7 AX DYN POST 1", "8 AX DYN POST 2"],
        ["Segmentation"],
        [],
    ),
    "dates": (
        ("P1", "P2"),
        ("2020-01-05", "2020-03-07"),
        ("",),
        ["{p}/{v}/Pre", "{p}/{v}/Post_1", "{p}/{v}/Post_2"],
        [],
        [],
    ),
    "dates-of-the-us": (
        ("BR-01", "BR-02"),
        ("11-20-2018", "01-05-2019"),
        ("",),
        [f"{{p}}/{{v}}/ph{k}" for k in range(5)],
        [],
        [],
    ),
    "weeks": (
        ("pat1", "pat2"),
        ("baseline", "week12"),
        ("",),
        [f"{{p}}/{{v}}/P{k}" for k in range(3)],
        [],
        [],
    ),
    "visits-first": (
        ("pat1", "pat2"),
        ("baseline", "mid", "presurgery"),
        ("",),
        [f"{{v}}/{{p}}/phase_{k}" for k in range(3)],
        [],
        [],
    ),
    "sides": (("pat1", "pat2"), ("",), ("L", "R"), ["{p}/{s}/Pre", "{p}/{s}/Post_1"], [], []),
    "flat-sides": (
        ("B001", "B002"),
        ("",),
        ("left", "right"),
        ["nii/{p}_{s}_pre", "nii/{p}_{s}_post1"],
        ["labels/{p}_{s}"],
        [],
    ),
    "times": (
        ("pat1", "pat2"),
        ("",),
        ("",),
        [f"{{p}}/DCE_t{k:03}s" for k in (0, 90, 180, 270)],
        ["{p}/lesion"],
        [],
    ),
    "flip-angles": (
        ("QIN-01", "QIN-02"),
        ("",),
        ("",),
        [f"{{p}}/dce/dce_{k:03}" for k in range(4)],
        [],
        [f"{{p}}/t1map/fa_{k}" for k in (2, 4, 6)] + [f"{{p}}/dwi/b{k}" for k in (0, 50, 800)],
    ),
    "phases-as-folders": (
        ("pat1", "pat2"),
        ("",),
        ("",),
        ["pre/{p}", "post1/{p}", "post2/{p}"],
        ["mask/{p}"],
        [],
    ),
    "images-below-patients": (
        ("pat1", "pat2"),
        ("",),
        ("",),
        [f"{{p}}/images/P{k}" for k in range(3)],
        ["{p}/masks/tumor"],
        [],
    ),
    "images-of-all-patients": (
        ("pat1", "pat2"),
        ("",),
        ("",),
        [f"images/{{p}}_P{k}" for k in range(3)],
        ["masks/{p}"],
        [],
    ),
    "flywheel": (
        ("ex1", "ex2"),
        ("20190304", "20190909"),
        ("",),
        ["lab/proj/{p}/{v}/5 - DYN pre/dyn_pre", "lab/proj/{p}/{v}/6 - DYN post1/dyn_post1"],
        [],
        [],
    ),
    "dcm2niix": (
        ("A01", "A02"),
        ("",),
        ("",),
        ["{p}/dyna_pre_20190401_8", "{p}/dyna_post1_20190401_9", "{p}/dyna_post2_20190401_10"],
        [],
        ["{p}/t2_tirm_20190401_4"],
    ),
    "contrast-words": (
        ("Pt-7", "Pt-8"),
        ("",),
        ("",),
        ["{p}/T1_precontrast", "{p}/T1_postcontrast1", "{p}/T1_postcontrast2"],
        ["{p}/ROI_lesion1", "{p}/ROI_lesion2"],
        [],
    ),
    "visits-in-names": (
        ("S-01", "S-02"),
        ("V1", "V2", "V3"),
        ("",),
        ["{p}_{v}/pre", "{p}_{v}/post1"],
        [],
        [],
    ),
    "years": (
        ("0012", "0345"),
        ("2015", "2016"),
        ("",),
        ["{p}/{v}/DCE_0", "{p}/{v}/DCE_1"],
        [],
        [],
    ),
    "sides-first": (
        ("N1", "N2"),
        ("",),
        ("left", "right"),
        ["{s}_breast/{p}/ph1", "{s}_breast/{p}/ph2"],
        [],
        [],
    ),
    "frames-flat": (("pat1", "pat2"), ("",), ("",), ["{p}*3"], ["{p}_mask"], []),
    "words-as-folders": (
        ("p010001", "p020003"),
        ("",),
        ("",),
        ["dce/pre_contrast/{p}", "dce/wash_in/{p}", "dce/wash_out/{p}"],
        [],
        [],
    ),
    "liver-phases": (
        ("MR745", "MR1872"),
        ("",),
        ("",),
        ["C-pre/{p}_-1", "C+A/{p}_-1", "C+V/{p}_-1", "C+Delay/{p}_-1"],
        [],
        ["DWI/{p}_-1", "T2WI/{p}_-1"],
    ),
    "glued-words": (
        ("TCGA-AO-A03M", "TCGA-AR-A1AX"),
        ("",),
        ("",),
        ["{p}/t1pre", "{p}/t1c1", "{p}/t1c2"],
        [],
        ["{p}/t2"],
    ),
    "contrast-numbers": (
        ("P-7", "P-12"),
        ("",),
        ("L", "R"),
        ["cohort/{p}_{s}/scan-pre", "cohort/{p}_{s}/scan-ce1", "cohort/{p}_{s}/scan-ce2"],
        ["rois/{p}_{s}_final"],
        ["cohort/{p}_{s}/scan-t2"],
    ),
    "frames-with-a-word": (
        ("101", "102"),
        ("",),
        ("",),
        ["site1/image___{p}*3"],
        ["site1/mask___{p}"],
        [],
    ),
    "frames-of-visits": (
        ("pat1", "pat2"),
        ("V1", "V2"),
        ("",),
        ["{p}/{v}/dce*3"],
        ["{p}/{v}/tumor_mask"],
        ["{p}/{v}/t2"],
    ),
    "frames-of-sessions": (
        ("A", "B"),
        ("{p}_MR1", "{p}_MR2"),
        ("",),
        ["{p}/{v}/scans/9/NIFTI/9_dyn*3"],
        [],
        ["{p}/{v}/scans/4/NIFTI/4_t2"],
    ),
}
SIDES = {"L": "left", "R": "right"}


def fill(template, patient, visit, side):
    return f"{template.format(p=patient, v=visit, s=side)}.nii.gz"


@pytest.mark.parametrize("name", LAYOUTS)
def test_proposal_gives_patients_visits_sides_phases_and_masks(tmp_path, name):
    patients, visits, sides, phases, masks, others = LAYOUTS[name]
    root = tmp_path / "set"
    expected = {}
    for patient in patients:
        for visit, side in ((visit, side) for visit in visits for side in sides):
            place = (patient, visit.format(p=patient), side)
            paths = []
            for phase in phases:
                path, star, n_frames = phase.partition("*")
                n_frames = int(n_frames) if star else 1
                save(root / fill(path, *place), n_frames)
                paths += [fill(path, *place)] * n_frames
            for path in masks:
                save(root / fill(path, *place), mask=True)
            for path in others:
                save(root / fill(path, *place))
            exam = (patient or "set", place[1], SIDES.get(side, side))
            expected[exam] = (paths, sorted(fill(path, *place) for path in masks))
    with pytest.raises(ProposedLayoutError) as refused:
        find_data_set(root)
    assert [(remedy.command, remedy.values[0]) for remedy in refused.value.remedies] == [
        ("layouts", str(root)),
        ("", "proposed"),
        ("", "FILE"),
    ]
    data_set = find_data_set(root, "proposed")
    assert {
        (case.patient, case.visit.name if case.visit else "", case.side): (
            [phase.files[0].relative_to(root).as_posix() for phase in case.phases],
            sorted(mask.path.relative_to(root).as_posix() for mask in case.masks),
        )
        for case in data_set.cases
    } == expected
    assert not [problem for case in data_set.cases for problem in case.problems]
    by_patient = {}
    for case in data_set.cases:
        by_patient.setdefault(case.patient, []).append(case.visit and case.visit.index)
    if visits != ("",) and name != "frames-of-sessions":
        assert set(map(tuple, by_patient.values())) == {tuple(range(len(visits)))}


def test_image_that_is_no_phase_is_reported_and_not_hidden(tmp_path):
    root = tmp_path / "set"
    for patient in ("P1", "P2"):
        for phase in ("pre", "post1", "post2", "hires"):
            save(root / patient / f"dce_{phase}.nii.gz")
    data_set = find_data_set(root, "proposed")
    assert [len(case.phases) for case in data_set.cases] == [3, 3]
    assert [path.name for path in data_set.leftover] == ["dce_hires.nii.gz"] * 2
    assert data_set.warnings


def test_cases_of_one_image_each_are_no_series(tmp_path):
    root = tmp_path / "set"
    for number in (1, 2, 3):
        save(root / f"imagesTr/liver_{number}.nii.gz")
        save(root / f"labelsTr/liver_{number}.nii.gz", mask=True)
    with pytest.raises(ValueError, match="no case") as refused:
        find_data_set(root)
    assert not isinstance(refused.value, ProposedLayoutError)


@pytest.mark.parametrize(
    "names",
    [
        ["flair", "t1", "t2", "t1ce"],
        ["T1", "T1_1mm", "T1_IR", "T2_FLAIR"],
        ["t2w", "adc", "hbv", "cor", "sag"],
        ["mt/mt0", "mt/mt1", "t1/t1", "t2/t2"],
        ["dwi/b0", "dwi/b50", "dwi/b800"],
        ["scan_01_02_2019", "scan_03_08_2019"],
    ],
)
def test_images_of_different_kinds_are_no_series(tmp_path, names):
    root = tmp_path / "set"
    for patient in ("001-Glioma-AYEY", "002-Metastasis-BRUW"):
        for name in names:
            save(root / patient / f"{name}.nii.gz")
    with pytest.raises(ValueError, match="no case") as refused:
        find_data_set(root)
    assert not isinstance(refused.value, ProposedLayoutError)


DICOM = {
    # name: (visits, folder of a phase, whether files have a suffix)
    "series": (("",), "{p}/SER{k}", True),
    "xnat": (("",), "{p}/{p}_MR1/scans/{k}/resources/DICOM/files", True),
    "media": (("",), "DICOM/{p}/ST000001/SE{k:06}", False),
    "visits": (("baseline", "followup"), "{p}/{v}/dyn{k}", True),
}


@pytest.mark.parametrize("name", DICOM)
def test_proposal_finds_the_folders_of_dicom_studies_by_their_headers(tmp_path, name):
    visits, folder, has_suffix = DICOM[name]
    root = tmp_path / "set"
    for number, patient in enumerate(("PA1", "PA2")):
        for place, visit in enumerate(visits):
            for phase in range(3):
                study = f"1.2.{number + 1}.{place + 1}"
                write_phase(
                    root / folder.format(p=patient, v=visit, k=phase),
                    phase,
                    StudyInstanceUID=study,
                    SeriesInstanceUID=f"{study}.{phase + 1}",
                    SeriesNumber=phase + 1,
                    AcquisitionTime=f"10{phase:02d}00",
                )
    if not has_suffix:
        for path in list(root.rglob("*.dcm")):
            path.rename(path.with_suffix(""))
    with pytest.raises(ProposedLayoutError):
        find_data_set(root)
    found = [
        (case.patient, case.visit.name if case.visit else "", len(case.phases), case.problems)
        for case in find_data_set(root, "proposed").cases
    ]
    assert found == [(patient, visit, 3, ()) for patient in ("PA1", "PA2") for visit in visits]


@pytest.mark.parametrize(
    ("folders", "is_reference"),
    [(("ROI",), True), (("auto_mask",), False), (("roi_a", "roi_b"), False)],
)
def test_the_only_masks_are_proposed_as_the_reference_unless_a_model_made_them(
    tmp_path, folders, is_reference
):
    for patient in ("S01", "S02"):
        for name in ("dyn_pre", "dyn_post1", "dyn_post2"):
            save(tmp_path / "scans" / patient / f"{name}.nii.gz")
        for folder in folders:
            save(tmp_path / folder / f"{patient}_mask.nii.gz", mask=True)
    cases = find_data_set(tmp_path, "proposed").cases
    assert len(cases) == 2
    assert [case.reference is not None for case in cases] == [is_reference] * 2

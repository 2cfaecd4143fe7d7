"""Tables, JSON of every kind, journals, tags, manifests, whole data sets: examples and readers."""

import json
import os
import zipfile
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import numpy as np
from harness import Format
from made import from_tests

CLINICAL = (
    (
        "patient_id",
        "dataset",
        "age",
        "menopause",
        "breast_density",
        "tumor_subtype",
        "pcr",
        "acquisition_times",
        "site",
    ),
    ("DUKE_001", "DUKE", 51, "pre", "b", "luminal", 0, "[0, 90, 180]", "x"),
    ("DUKE_002", "DUKE", 63.5, "post", "c", "her2", 1, "[0, 95]", 7),
)
FOREIGN = (
    ("Registry 2024",),
    ("Subject number", "Age at diagnosis (y)", "Menopausal", "Response pCR"),
    ("DUKE_001", 51, "pre", 0),
    ("DUKE_002", 63.5, "post", 1),
)
CLASSIFIED = (("id", "y", "m"), ("A", 0, 0.2), ("B", 1, "0,9"), ("C", "no", ""))
SCORES = (("case_id", "dsc", "norm_hd"), ("A", 0.8, 0.1), ("B", "", 0.25), ("C", 0.5, ""))
LONG = (
    ("algorithm", "case", "value", "site"),
    *((name, case, 0.5 + 0.1 * at, "X") for at, name in enumerate("ab") for case in "AB"),
)
WIDE = (("case", "a", "b"), ("A", 0.5, 0.75), ("B", "", 0.25))
DRAWS = (("A", "A", "B"), ("B", "B", "B"))
RANKING = {
    "tables": [
        {
            "metric": "dsc",
            "methods": {"mean-then-rank": {"A": 1, "B": 2}},
            "scores": {"mean-then-rank": {"A": 0.75, "B": None}},
            "stability": {
                "mean-then-rank": {"rank_interval": {"A": [1, 1.5]}, "first": {"A": 0.75}}
            },
            "filled": {"A": 0, "B": 1},
        }
    ],
    "overall": {},
}
RANKING_DETAILS = {
    "settings": {"missing": "value:0"},
    "notes": ["seven"],
    "tables": [{"task": "", "metric": "dsc", "site": "", "larger_is_better": True, "n_cases": 7}],
}
BOXES = (
    ("case_id", "x1", "x2", "y1", "y2", "z1", "z2", "score", "risk", "centre"),
    ("A", 0, 10.5, 0, 10, 0, 10, 0.9, 0.5, "x"),
    ("B", 5, 6, 5, 6, 5, 6, 0.3, 0.25, "y"),
)
RESPONSES = (("patient_id", "pcr", "score"), ("A", 0, 0.2), ("B", 1, 0.9))


def _sheet(rows, name: str):
    def make(folder: Path) -> Path:
        from napari_mamamia.io.tables.spreadsheets import write_sheet

        write_sheet(rows, folder / name, name="data")
        return folder / name

    return make


def _texts(name: str, content: object):
    def make(folder: Path) -> Path:
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text)
        return folder / name

    return make


def _calls(module: str, *functions: str):
    """Return what reads a path with each of the functions of a module."""

    def read(path: Path) -> object:
        from importlib import import_module

        found = None
        for function in functions:
            found = getattr(import_module(f"napari_mamamia.{module}"), function)(path)
        return found

    return read


def _read_case_columns(path: Path) -> object:
    from napari_mamamia.features.challenge.io.ranking_tables import read_case_columns

    return read_case_columns(path, ())


def _case_scores(folder: Path) -> Path:
    from napari_mamamia.core.records import CaseScore, ScoreStatus
    from napari_mamamia.io.tables.tables import write_case_scores

    numbers = {f.name: 0.5 for f in fields(CaseScore) if f.type in (float, "float")}
    texts = {f.name: "" for f in fields(CaseScore) if f.type in (str, "str")}
    row = CaseScore(**{**numbers, **texts, "case_id": "A", "status": ScoreStatus.OK})
    write_case_scores([row, replace(row, case_id="B")], folder / "s.csv")
    return folder / "s.csv"


def _ods(folder: Path) -> Path:
    names = "".join(
        f' xmlns:{n}="urn:oasis:names:tc:opendocument:xmlns:{n}:1.0"'
        for n in ("office", "table", "text")
    )
    rows = "".join(
        "<table:table-row>"
        + "".join(
            '<table:table-cell office:value-type="string"><text:p>'
            f"{cell}</text:p></table:table-cell>"
            for cell in row
        )
        + '<table:table-cell table:number-columns-repeated="99"/></table:table-row>'
        for row in CLINICAL
    )
    with zipfile.ZipFile(folder / "c.ods", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(
            "content.xml",
            f'<office:document-content{names}><table:table table:name="s">{rows}</table:table>'
            "</office:document-content>",
        )
    return folder / "c.ods"


def _read_clinical(*fixed: tuple[str, str]):
    """Return what reads a table as the commands do: what its columns may be, and its cases."""

    def read(path: Path) -> object:
        from napari_mamamia.core.errors import MamamiaError
        from napari_mamamia.io.clinical.clinical import read_clinical
        from napari_mamamia.io.clinical.columns import ColumnChoice
        from napari_mamamia.io.clinical.overview import overview_job

        with suppress(MamamiaError):
            overview_job(path)
        return read_clinical(path, ColumnChoice(fixed))

    return read


def _read_named(path: Path) -> object:
    from napari_mamamia.io.data_set.named_columns import read_named_columns

    table = read_named_columns(path)
    for column in table.columns:
        table.ids(column), table.yes_no(column), table.numbers(column), table.texts(column)
    return table


_NAMED = ("io.data_set.named_columns.read_named_columns",)


def _read_detection(path: Path) -> object:
    from napari_mamamia.core.errors import MamamiaError
    from napari_mamamia.features.classifiers.io.detection_files import (
        DetectionCases,
        read_detection_cases,
        read_lesions,
        read_predicted_boxes,
    )

    cases = DetectionCases(("A", "B"))
    for reader in (read_detection_cases, partial(read_lesions, cases=cases)):
        with suppress(MamamiaError):
            reader(path)
    return read_predicted_boxes(path, cases)


_CLINICAL = (
    "io.clinical.clinical.read_clinical",
    "io.clinical.clinical.read_clinical",
    "io.clinical.overview.overview_job",
    "io.tables.spreadsheets.read_sheets",
)
_SCORES = ("io.data_set.score_files.read_score_table", "io.data_set.score_files.read_score_table")
_BOXES = tuple(
    f"features.classifiers.io.detection_files.{name}"
    for name in ("read_detection_cases", "read_lesions", "read_predicted_boxes")
)
_RESPONSES = (
    "io.data_set.score_files.read_response_table",
    "io.data_set.score_files.read_response_table",
)

TABLES = (
    Format(
        "clinical-xlsx",
        _sheet(CLINICAL, "c.xlsx"),
        _read_clinical(),
        _CLINICAL,
        share=2,
    ),
    Format("clinical-csv", _sheet(CLINICAL, "c.csv"), _read_clinical(), _CLINICAL),
    Format(
        "clinical-foreign-csv",
        _sheet(FOREIGN, "f.csv"),
        _read_clinical(("case_id", "Subject number")),
        _CLINICAL,
        share=0.5,
    ),
    Format("clinical-ods", _ods, _read_clinical(), _CLINICAL),
    Format(
        "clinical-columns",
        _texts("columns.json", {"case_id": "Patient", "age": "Age (y)", "breast_density": None}),
        _calls("io.clinical.columns", "read_columns"),
        ("io.clinical.columns.read_columns",),
        share=0.5,
    ),
    Format(
        "scores-xlsx",
        _sheet(SCORES, "s.xlsx"),
        _calls("io.data_set.score_files", "read_score_table"),
        _SCORES,
    ),
    Format(
        "scores-csv",
        _sheet(SCORES, "s.csv"),
        _calls("io.data_set.score_files", "read_score_table"),
        _SCORES,
    ),
    Format("boxes-csv", _sheet(BOXES, "b.csv"), _read_detection, _BOXES),
    Format("boxes-xlsx", _sheet(BOXES, "b.xlsx"), _read_detection, _BOXES, share=0.5),
    Format(
        "ranking-long-csv",
        _sheet(LONG, "l.csv"),
        _calls("features.challenge.io.ranking_tables", "read_value_tables"),
        ("features.challenge.io.ranking_tables.read_value_tables",),
        share=0.5,
    ),
    Format(
        "ranking-wide-xlsx",
        _sheet(WIDE, "w.xlsx"),
        _calls("features.challenge.io.ranking_tables", "read_value_tables"),
        ("features.challenge.io.ranking_tables.read_value_tables",),
        share=0.5,
    ),
    Format(
        "ranking-one-csv",
        _sheet((("case_id", "dsc"), ("A", 0.5), ("B", 0.75)), "o.csv"),
        _read_case_columns,
        ("features.challenge.io.ranking_tables.read_case_columns",),
        share=0.5,
    ),
    Format(
        "ranking-draws-csv",
        _sheet(DRAWS, "d.csv"),
        _calls("features.challenge.io.ranking_tables", "read_draws"),
        ("features.challenge.io.ranking_tables.read_draws",),
        share=0.5,
    ),
    Format(
        "ranking-file",
        _texts("rank.json", RANKING),
        _calls("io.data_set.rank_files", "read_rank_file"),
        ("io.data_set.rank_files.read_rank_file",),
        share=0.5,
    ),
    Format(
        "ranking-details",
        _texts("rank_details.json", RANKING_DETAILS),
        _calls("io.data_set.rank_files", "read_rank_details"),
        ("io.data_set.rank_files.read_rank_details",),
        share=0.3,
    ),
    Format(
        "ranking-cases-csv",
        _texts("case_values.csv", "task,metric,site,case,A,B\n,dsc,,c1,0.5,\n,dsc,,c2,1,0.25\n"),
        _calls("io.data_set.rank_files", "read_case_numbers"),
        ("io.data_set.rank_files.read_case_numbers",),
        share=0.3,
    ),
    Format(
        "responses-csv",
        _sheet(RESPONSES, "r.csv"),
        _calls("io.data_set.score_files", "read_response_table"),
        _RESPONSES,
    ),
    Format(
        "responses-xlsx",
        _sheet(RESPONSES, "r.xlsx"),
        _calls("io.data_set.score_files", "read_response_table"),
        _RESPONSES,
    ),
    Format("named-columns-csv", _sheet(CLASSIFIED, "n.csv"), _read_named, _NAMED, share=0.5),
    Format("named-columns-xlsx", _sheet(CLASSIFIED, "n.xlsx"), _read_named, _NAMED, share=0.5),
    Format(
        "draws",
        _texts("draws.csv", "0,1,2\n2,2,0\n"),
        _calls("io.data_set.named_columns", "read_draws"),
        ("io.data_set.named_columns.read_draws",),
        share=0.3,
    ),
    Format(
        "case-list-csv",
        _sheet([["case_id", "sha256"], ["A", "0" * 64], ["B", ""]], "cases.csv"),
        _calls("io.data_set.case_list", "read_case_list"),
        ("io.data_set.case_list.read_case_list",),
        share=0.5,
    ),
    Format(
        "case-list-text",
        _texts("cases.txt", "# who counts\nA\nB\n"),
        _calls("io.data_set.case_list", "read_case_list"),
        ("io.data_set.case_list.read_case_list",),
        share=0.3,
    ),
    Format(
        "case-scores",
        _case_scores,
        _calls("io.tables.tables", "read_case_scores"),
        ("io.tables.tables.read_case_scores",),
    ),
)


PATIENT = {
    "patient_id": "DUKE_001",
    "primary_lesion": {
        "pcr": 0,
        "breast_coordinates": {f"{a}_{e}": v for a in "xyz" for e, v in (("min", 0), ("max", 2))},
    },
    "imaging_data": {
        "acquisition_times": [0, 90.5],
        "field_strength": 1.5,
        "dataset": "DUKE",
        "bilateral": True,
    },
    "import": {"study_uid_remapped": "2.25.7"},
}
IF_FAT = {"field": "fgt", "values": ["a"]}
PROTOCOL = {
    "name": "Study 1",
    "phase": 1,
    "brush": {"tool": "smartpaint", "radius_mm": 8, "features": "all"},
    "structures": [{"value": 1, "name": "tumour"}],
    "checklist": ["Is the rim inside?"],
    "time_limit_s": 600,
    "form": "breast-mri-2013",
    "questions": [
        {"id": "why", "text": "Why?", "kind": "text", "required_if": [IF_FAT]},
        {"id": "mm", "text": "How far?", "kind": "number", "unit": "mm", "low": 0, "high": 9.5},
    ],
}
LEXICON = {
    "mamamia_lexicon": 1,
    "name": "small",
    "edition": "1",
    "title": "Small",
    "remark": "Ours",
    "fields": [
        {
            "id": "fgt",
            "text": "Fat",
            "kind": "single",
            "terms": [{"id": "a", "text": "fat", "codes": ["SCT:1"], "mask": "needed"}],
            "measure": "side",
            "scope": "lesion",
        },
    ],
}
RULES = {
    "rules": [
        {"source": 1, "target": 1, "name": "tumour"},
        {"source": 2.0, "target": 0, "masks": "Ana"},
    ]
}
TIMES = [{"case_id": "A", "times_s": [0, 82.15]}, {"case_id": "B", "times_s": "[0, 60]"}]


def _read_label_names(path: Path) -> object:
    from napari_mamamia.io.layouts.label_names import find_tumour_label

    return find_tumour_label(path.with_name("A.nii.gz"))


def _move_info(path: Path) -> object:
    from napari_mamamia.core.grid import Grid
    from napari_mamamia.core.reorientation import reorientation_to
    from napari_mamamia.io.data_set.moved_info import write_moved_info

    turn = reorientation_to(Grid((4, 5, 6), np.diag([-1.0, 1.0, 1.0, 1.0])), "RAS")
    return write_moved_info(path, turn, path.with_name("moved.json"))


def _challenge_facts(path: Path) -> object:
    from napari_mamamia.features.challenge.io.handed_in import challenge_facts

    return challenge_facts(path, "X")


def _provenance(folder: Path) -> Path:
    from napari_mamamia.core.provenance import InputFile, Maker, Provenance
    from napari_mamamia.io.workspace.provenance import write_provenance

    made = Provenance(
        "A",
        Maker.MODEL,
        "kinetic",
        (InputFile("A_0000.nii.gz", "ab" * 32),),
        parameters=(("margin", float("inf")), ("n", 3)),
        seconds=1.5,
    )
    write_provenance(made, folder / "A.json")
    return folder / "A.json"


def _preferences(folder: Path) -> Path:
    content = {
        "reader": "Ana",
        "workspaces": [{"data_set": "/d", "workspace": "/w"}],
        "recent": ["/d"],
        "keys": {"undo": "U"},
        "view": {"slab": "3"},
    }
    return _texts("preferences.json", content)(folder)


def _read_preferences(path: Path) -> object:
    from napari_mamamia.io.workspace.preferences import load_preferences

    os.environ["MAMAMIA_CONFIG_DIR"] = str(path.parent)
    found = load_preferences()
    from napari_mamamia.io.workspace.preferences import workspace_for

    return workspace_for(path.parent / "data", found)


NOTE = {"mamamia_workspace": 1, "data_sets": [{"path": "../d", "cases": {"A_1": "0a1b2c"}}]}


def _read_note(path: Path) -> object:
    from napari_mamamia.io.files.sources import CaseFiles, DataSet, LayoutKind, PhaseSource
    from napari_mamamia.io.workspace.place import WorkspaceMark, points_to, relation_to

    case = CaseFiles("A_1", (PhaseSource((path,)),))
    found = relation_to(path.parent, DataSet(path.parent, LayoutKind.MAMA_MIA, (case,)))
    WorkspaceMark(path.parent, {"A_1": "ff"}).write(path.parent)
    return found, points_to(path.parent, path.parent)


def _recipe(folder: Path) -> Path:
    from napari_mamamia.segmentation.model.recipe import Recipe, recipe_text

    text = json.loads(recipe_text(Recipe("x")))
    text["network"] = {
        "channels": ["pre"],
        "labels": {"tumour": 1},
        "output": "logits",
        "patch": [8, 8, 8],
        "architecture": {
            "network_class_name": "a.B",
            "arch_kwargs": {"n": 1},
            "_kw_requires_import": [],
        },
    }
    return _texts("mamamia_model.json", text)(folder)


def _make_form(folder: Path) -> Path:
    from napari_mamamia.io.forms.form_file import form_text, parse_form

    (folder / "form.json").write_text(form_text(parse_form("", PROTOCOL["questions"][1:], "p")))
    return folder / "form.json"


def _make_queue(folder: Path) -> Path:
    from napari_mamamia.features.review.core.quality import Queue, QueuePlace
    from napari_mamamia.features.review.io.quality_files import queue_text

    queue = Queue((QueuePlace("A", True, 2, 1), QueuePlace("B", False, 1, 2, "Dice 0.1")), 3)
    (folder / "queue.json").write_text(queue_text(queue))
    return folder / "queue.json"


SIGNS = """case_id,missed_lesions,doubt,other_side,site,error
A,1,0.5,yes,S1,no
B,,,,,
"""
_FORM = ("io.forms.form_file.read_form",)
JSONS = (
    Format(
        "patient-info",
        _texts("p.json", PATIENT),
        _calls("io.data_set.patient_info", "read_patient_info"),
        ("io.data_set.patient_info.read_patient_info",),
    ),
    Format(
        "times",
        _texts("times.json", TIMES),
        _calls("io.data_set.patient_info", "read_times_file"),
        ("io.data_set.patient_info.read_times_file",),
    ),
    Format(
        "moved-info",
        _texts("p.json", PATIENT),
        _move_info,
        ("io.data_set.moved_info.write_moved_info",),
    ),
    Format(
        "challenge-info",
        _texts("p.json", PATIENT),
        _challenge_facts,
        ("features.challenge.io.handed_in.challenge_facts",),
    ),
    Format(
        "protocol",
        _texts("p.json", PROTOCOL),
        _calls("io.workspace.protocol", "read_protocol_text", "read_protocol"),
        ("io.workspace.protocol.read_protocol", "io.workspace.protocol.read_protocol_text"),
    ),
    Format(
        "lexicon",
        _texts("lexicon.json", LEXICON),
        _calls("io.forms.form_file", "read_lexicon"),
        ("io.forms.form_file.read_lexicon",),
    ),
    Format(
        "queue",
        _make_queue,
        _calls("features.review.io.quality_files", "read_queue"),
        ("features.review.io.quality_files.read_queue",),
    ),
    Format(
        "quality-signs",
        _texts("signs.csv", SIGNS),
        _calls("features.review.io.quality_files", "read_marks", "read_signs"),
        (
            "features.review.io.quality_files.read_signs",
            "features.review.io.quality_files.read_marks",
        ),
    ),
    Format("form", _make_form, _calls("io.forms.form_file", "read_form"), _FORM),
    Format(
        "label-names",
        _texts("dataset.json", {"labels": {"background": 0, "breast": 1, "tumour": 2}}),
        _read_label_names,
        ("io.layouts.label_names.find_tumour_label",),
    ),
    Format(
        "prompts",
        _texts(
            "prompts.json",
            [
                {"kind": "point", "points": [[1, 2, 3]], "include": False},
                {"kind": "box", "points": [[0, 0, 0], [2, 3, 4.5]]},
            ],
        ),
        _calls("features.prompt.segmentation.prompts", "read_prompts"),
        ("features.prompt.segmentation.prompts.read_prompts",),
    ),
    Format(
        "prompt-recipe",
        _texts(
            "mamamia_prompt.json",
            {
                "format": "napari-mamamia prompt recipe",
                "version": 1,
                "title": "Fuzz",
                "file": "network.ts",
                "patch": [8, 8, 8],
                "inputs": [
                    {"kind": "channels", "channels": ["image", "mask", "include", "exclude"]},
                    {"kind": "points"},
                    {"kind": "point labels", "type": "int64"},
                ],
                "points": {"axes": "xyz", "box": [2, 3]},
                "percentiles": [0.5, 99.5],
            },
        ),
        _calls("features.prompt.segmentation.recipe", "read_prompt_recipe"),
        ("features.prompt.segmentation.recipe.read_prompt_recipe",),
    ),
    Format(
        "label-map",
        _texts("l.json", RULES),
        _calls("io.data_set.label_map", "read_label_rules"),
        ("io.data_set.label_map.read_label_rules",),
    ),
    Format(
        "provenance",
        _provenance,
        _calls("io.workspace.provenance", "read_provenance"),
        ("io.workspace.provenance.read_provenance",),
    ),
    Format(
        "workspace-note",
        _texts("mamamia_workspace.json", NOTE),
        _read_note,
        ("io.workspace.place._read_entries", "io.workspace.place.relation_to"),
    ),
    Format(
        "preferences",
        _preferences,
        _read_preferences,
        ("io.workspace.preferences.load_preferences",),
    ),
    Format(
        "recipe",
        _recipe,
        _calls("segmentation.model.recipe", "read_recipe"),
        ("segmentation.model.recipe.read_recipe",),
    ),
)


def _journal(folder: Path) -> Path:
    tests = from_tests("io/test_journal")
    path = folder / "A.journal"
    from napari_mamamia.core.edits import Turn
    from napari_mamamia.io.workspace.journal import Saved

    tests.written(
        path, tests.opened(), tests.step(1), Turn.UNDO, Turn.REDO, tests.step(2), Saved("ab", 3)
    )
    return path


def _read_journal(path: Path) -> object:
    """Read the journal and make its mask again, as `mamamia replay` does."""
    from napari_mamamia.io.workspace.journal import read_journal
    from napari_mamamia.services.refine.replay import replay_journal

    read_journal(path)
    return replay_journal(path, path.with_name("again.nii.gz"))


def _tags(folder: Path) -> Path:
    from napari_mamamia.io.workspace.case_tags import append_tag

    for reader in ("Ana", "Ben"):
        for name, on in (("odd", True), ("sure", True), ("odd", False)):
            append_tag(folder, reader, "A", name, on=on)
    return folder


def _measurements(folder: Path) -> Path:
    from napari_mamamia.core.measurement import MeasureKind, Measurement
    from napari_mamamia.io.workspace.measurements import append_measurement, take_back_measurement

    for reader in ("Ana", "Ben"):
        for n in range(3):
            ends = ((float(n), -2.5, 3.25), (10.0, 0.0, 3.25))
            drawn = Measurement("A", MeasureKind.RULER, ends, "axial", 1, reader=reader)
            drawn = append_measurement(folder, drawn)
        take_back_measurement(folder, drawn)
    return folder


def _findings(folder: Path) -> Path:
    from napari_mamamia.core.answers import Landmark, MarkedPoint, Side
    from napari_mamamia.io.workspace.findings import FindingsChange, append_findings

    mark = MarkedPoint(Landmark.NIPPLE, Side.LEFT, (-90.5, 60.0, 1.25))
    form = {"name": "breast-mri-2013", "edition": "2013", "sha256": "0" * 64}
    for reader in ("Ana", "Ben"):
        answers = {"finding@1": "mass", "volume@1": {"number": "12.5", "unit": "mm3"}}
        change = FindingsChange(form, answers, ("volume@1",), centres={"1": (1.0, 2.0, 3.0)})
        append_findings(folder, reader, "A", change)
        append_findings(folder, reader, "A", FindingsChange(removed=("finding@1",)))
        append_findings(folder, reader, "A", FindingsChange(points=(mark,)))
    return folder


def _bundle(folder: Path) -> Path:
    from napari_mamamia.core.grid import Grid
    from napari_mamamia.io.data_set.bundle import CaseEntry, Manifest, describe_file, write_manifest
    from napari_mamamia.io.data_set.volumes import write_volume

    grid = Grid((3, 6, 5), np.diag([-0.7, 0.7, 2.0, 1.0]))
    mask = np.zeros(grid.shape, np.uint8)
    mask[1, 2:4, 1:3] = 1
    (folder / "masks").mkdir()
    write_volume(mask, grid, folder / "masks" / "A.nii.gz")
    file = describe_file(
        folder, folder / "masks" / "A.nii.gz", "mask", case_id="A", masks="expert", grid=grid
    )
    case = CaseEntry("A", 4.0, "good", (file,))
    made = Manifest(
        "s 1", "2026", "d", "ras", ("nifti",), ("expert",), ((1, "tumour"),), (case,), (), ("note",)
    )
    write_manifest(made, folder)
    return folder


def _verify(folder: Path) -> object:
    from napari_mamamia.services.export.verify import verify_bundle

    return verify_bundle(folder)


def _data_set(folder: Path) -> Path:
    from napari_mamamia.core.grid import Grid
    from napari_mamamia.io.data_set.volumes import write_volume

    grid = Grid((3, 6, 5), np.diag([-0.7, 0.7, 2.0, 1.0]))
    for k in range(2):
        place = folder / "images" / "A" / f"A_000{k}.nii.gz"
        place.parent.mkdir(parents=True, exist_ok=True)
        write_volume(np.full(grid.shape, 10 * k, np.int16), grid, place)
    for name in ("segmentations/expert", "patient_info_files"):
        (folder / name).mkdir(parents=True)
    write_volume(
        np.ones(grid.shape, np.uint8), grid, folder / "segmentations" / "expert" / "A.nii.gz"
    )
    _texts("a.json", PATIENT)(folder / "patient_info_files")
    _texts("times.json", TIMES)(folder)
    _texts("train_test_splits.csv", "train_split,test_split\nA,B\n")(folder)
    _sheet(CLINICAL, "clinical_and_imaging_info.csv")(folder)
    return folder


def _open(folder: Path) -> object:
    """What opening a data set in the window reads: listing, clinical table, the case."""
    from napari_mamamia.services.case.data_set import open_data_set
    from napari_mamamia.services.case.open_case import load_case

    opened = open_data_set(folder, folder.with_name("fuzz-workspace"))
    for case in opened.data_set.cases:
        load_case(case)
    return opened


LAYOUT = """
[mine]
title = "Mine"
image = [{path = "{patient}/{visit:%Y-%m-%d}/dce_{phase:n}"}]
mask = [{path = "masks/{patient}", name = "m", label = 3, reference = true}]
other = [{path = "**/*T2*", role = "T2"}]
table = {path = "t.csv", key = "id", times = "times"}
split = [{path = "train.txt", name = "train"}]
rename = {patient = ["-", "_"]}
"""
_LAYOUT_FILES = {
    "bids": {
        "sub-1/ses-A/anat/sub-1_ses-A_run-1_T1w.json": '{"AcquisitionTime": "10:00:00"}',
        "sub-1/ses-A/anat/sub-1_ses-A_run-2_T1w.json": '{"AcquisitionTime": "10:01:30"}',
        "sub-1/sub-1_sessions.tsv": "session_id\tacq_time\nses-A\t2001-01-01\n",
        "participants.tsv": "participant_id\tage\nsub-1\t50\n",
    },
    "monai": {"dataset.json": {"training": [{"image": ["v/a/pre.nrrd", "v/a/post1.nrrd"]}]}},
    "grand-challenge": {"input/inputs.json": [{"image": {"name": "CASE_1.mha"}}]},
    "nnunet": {
        "D1/dataset.json": {"channel_names": {"0": "pre", "1": "post1"}},
        "D1/splits_final.json": [{"train": ["c"], "val": ["d"]}],
    },
    "p0-pn": {"train.txt": "a\nb\n", "metadata.csv": "File Location\n.\\C\\P\\S\n"},
}
_LAYOUT_IMAGES = {
    "bids": [f"sub-1/ses-A/anat/sub-1_ses-A_run-{k}_T1w.nii.gz" for k in (1, 2)],
    "monai": ["v/a/pre.nrrd", "v/a/post1.nrrd"],
    "grand-challenge": [f"input/images/{k}-contrast-mri/x.mha" for k in ("pre", "post")],
    "nnunet": ["D1/imagesTr/c_0000.nrrd", "D1/imagesTr/c_0001.nrrd"],
    "p0-pn": ["a/P0.nrrd", "a/P1.nrrd"],
}


def _checked_lines(folder: Path) -> Path:
    from napari_mamamia.io.files.append_file import CheckedLines

    with CheckedLines(folder / "results.jsonl", keep=False) as lines:
        for k in range(3):
            lines.add({"case_id": "A", "n": k})
    return folder / "results.jsonl"


def _read_checked_lines(path: Path) -> object:
    from napari_mamamia.io.files.append_file import read_checked_lines

    return list(read_checked_lines(path))


def _layouts(folder: Path) -> Path:
    for name, contents in _LAYOUT_FILES.items():
        for path, content in contents.items():
            (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
            _texts(Path(path).name, content)((folder / name / path).parent)
        for path in _LAYOUT_IMAGES[name]:  # names alone matter: no image is opened
            (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / path).touch()
    return folder


def _find_layouts(folder: Path) -> object:
    from napari_mamamia.core.errors import MamamiaError
    from napari_mamamia.io.layouts.find import find_data_set

    refused = None
    for name in _LAYOUT_FILES:
        try:
            find_data_set(folder / name, name)
        except MamamiaError as error:
            refused = error
    if refused is not None:
        raise refused
    return folder


_RUN = {
    "command": "score",
    "parameters": {"profile": "clinical", "n": 3},
    "software": "s",
    "started": "2026-01-01T00:00:00+00:00",
}


def _run_file(folder: Path) -> Path:
    _texts("run.json", _RUN)(folder)
    return folder


def _resume(folder: Path) -> object:
    from napari_mamamia.core.errors import SaveConflictError
    from napari_mamamia.services.batch.output_folder import Existing, claim_folder, run_in

    run_in(folder)
    with suppress(SaveConflictError):  # it tells who made the files
        claim_folder(folder, "score", (), Existing.REFUSE)
    return claim_folder(folder, "score", (("profile", "clinical"), ("n", 3)), Existing.RESUME)


def _imported(folder: Path) -> Path:
    _texts("A.json", PATIENT)(_below(folder / "patient_info_files"))
    return folder


def _below(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _import_again(folder: Path) -> object:
    from napari_mamamia.io.data_set.imported_case import write_info

    return write_info(folder, "A", {"patient_id": "A"})


_JOURNAL = (
    "io.workspace.journal.read_journal",
    "io.workspace.journal.scan_journal",
    "services.refine.replay.replay_journal",
)


def _challenge(folder: Path) -> Path:
    from napari_mamamia.core.choices import Task
    from napari_mamamia.features.challenge.io.challenge_file import (
        Challenge,
        ChallengePlaces,
        FrozenCase,
        FrozenFile,
        write_challenge,
    )

    cases = (FrozenCase("A", FrozenFile("A.nii.gz", "0" * 64)), FrozenCase("B"))
    made = Challenge(
        "c", Task.BOTH, "clinical", 1, "", 42, 9, ("dsc",), cases, ("A",), FrozenFile("t.csv", "0")
    )
    write_challenge(folder, made, ChallengePlaces("../reference"))
    return folder


_CUP = """
name = "cup"
version = 1
truth = {table = "truth.csv", id = "case", columns = {"" = "n"}}
answer = {kind = "probabilities", file = "p.csv", id = "case", classes = ["no", "yes"]}
measures = [{id = "a", of = "class.auc", better = "high", args = {target = 1}}]
ranking = {by = "score", score = "(a + 1) / 2"}
"""


def _defined(folder: Path) -> Path:
    import numpy as np

    from napari_mamamia.features.challenge.io.definition import definition_named, freeze_definition
    from napari_mamamia.features.challenge.services.challenge.answers import (
        load_models,
        measure_folder,
        write_values,
    )

    (folder / "cup.toml").write_text(_CUP)
    (folder / "truth.csv").write_text("case,n\nA,1\nB,0\n")
    (folder / "p.csv").write_text("case,no,yes\nA,0.2,0.8\nB,0.7,0.3\n")
    _texts("A.json", {"left": {"no": 0.5, "yes": 0.5}, "right": {"no": 0.1, "yes": 0.9}})(folder)
    np.savez(folder / "w.npz", conv0=np.ones((2, 3)), bias0=np.zeros(2))
    definition = definition_named(str(folder / "cup.toml"))
    freeze_definition(definition, folder)
    models = load_models({}, folder)
    write_values(measure_folder(definition, folder, folder, ("A", "B"), models), folder)
    return folder


def _defined_yaml(folder: Path) -> Path:
    import tomllib

    import yaml

    changed = {"extends": "mama-mia-2025-task1", **tomllib.loads(_CUP)}
    del changed["answer"], changed["truth"]
    path = folder / "cup.yaml"
    path.write_text(yaml.safe_dump(changed))
    return path


def _read_defined_yaml(path: Path) -> object:
    from napari_mamamia.features.challenge.io.definition import definition_named

    return definition_named(str(path))


def _read_defined(folder: Path) -> object:
    from dataclasses import replace

    from napari_mamamia.features.challenge.io import answer_files
    from napari_mamamia.features.challenge.io.definition import definition_named, read_frozen
    from napari_mamamia.features.challenge.services.challenge.answers import (
        load_models,
        measure_folder,
        read_values,
        require_measures,
    )

    definition = definition_named(str(folder / "cup.toml"))
    require_measures(definition)
    read_frozen(folder / "definitions" / "cup.json")
    read_values(folder / "answers" / "cup.json")
    answer_files.read_weights(str(folder / "w.npz"))
    answer_files.read_answer(folder, replace(definition.answer, file="{id}.json"), "A")
    return measure_folder(definition, folder, folder, ("A", "B"), load_models({}, folder))


def _ledger(folder: Path) -> Path:
    from napari_mamamia.features.challenge.io.ledger import AttemptOutcome, LedgerWriter

    with LedgerWriter(folder, "0" * 64) as writer:
        for team in ("a", "b"):
            event = writer.begin(team, "1" * 64, "masks")
            writer.end(event, AttemptOutcome.SCORED, "", (("s.csv", "2" * 64),))
    return folder


def _read_ledger(folder: Path) -> object:
    from napari_mamamia.features.challenge.io.ledger import read_ledger

    return read_ledger(folder, "0" * 64)


def _sealed(folder: Path) -> Path:
    from napari_mamamia.features.challenge.io.challenge_file import FrozenFile
    from napari_mamamia.features.challenge.io.file_list import write_file_list
    from napari_mamamia.features.challenge.io.handed_in import (
        Manifest,
        SubmissionKind,
        write_manifest,
    )

    files = (FrozenFile("A.nii.gz", "0" * 64),)
    write_manifest(Manifest("a", SubmissionKind.MASKS, "1" * 64, files, ("x is a link",)), folder)
    (folder / "x.csv").write_text("x")
    write_file_list(folder, ("x.csv",), "../challenge")
    return folder


def _read_sealed(folder: Path) -> object:
    from napari_mamamia.features.challenge.io.file_list import read_file_list
    from napari_mamamia.features.challenge.io.handed_in import read_manifest

    return read_manifest(folder), read_file_list(folder)


def _site(folder: Path) -> Path:
    from napari_mamamia.features.challenge.io.site_file import (
        SiteFile,
        SiteModel,
        SiteNumber,
        SiteRow,
        site_key,
        write_site_file,
    )

    site_key(folder / "s.key")
    numbers = (SiteNumber("a", "dsc", 12, 0.5, 0.1, 0.4, 0.5, 0.6),)
    rows = (SiteRow("0" * 32, "a", (0.5,)),)
    models = (SiteModel("a", "0" * 64),)
    made = SiteFile(
        "S", "clinical", 1, "0", "worst-score", "cases", 12, ("dsc",), models, numbers, rows
    )
    write_site_file(made, folder / "s.json")
    return folder


def _merge(folder: Path) -> object:
    from napari_mamamia.features.challenge.io.site_file import read_site_file, site_key

    site_key(folder / "s.key")
    return read_site_file(folder / "s.json")


def _board(folder: Path) -> Path:
    from napari_mamamia.features.challenge.io.leaderboard_file import (
        Board,
        BoardRow,
        Leaderboard,
        write_leaderboard,
    )

    row = BoardRow("a", 1, 0.5, 0.5, None, 9, 1, (("missing", 1),), 7, 7, "masks", "0" * 64)
    boards = (Board("segmentation", "ranking score", (row,)),)
    made = Leaderboard("c", "0" * 64, ".", ("1" * 64,), "clinical", "", False, boards, ("n",))
    write_leaderboard(made, folder)
    _texts("rank.json", {"methods": {"composite": {"a": 1.0}}})(folder)
    return _challenge(folder)


def _prove(folder: Path) -> object:
    from napari_mamamia.features.challenge.services.challenge.verify import verify_challenge

    return verify_challenge(folder, is_quick=True)


def _handed_in(folder: Path) -> Path:
    team = folder / "a"
    team.mkdir()
    _sheet(RESPONSES, "r.csv")(team)
    _sheet(SCORES, "s.csv")(team)
    _texts("mamamia_submission.json", {"image": "i@sha256:0"})(team)
    with zipfile.ZipFile(folder / "b.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("in/A.nii", "mask")
        made.writestr("in/B.nii", "mask")
    return folder


def _take(folder: Path) -> object:
    """Seal what teams handed in and look inside, as a run does."""
    from napari_mamamia.core.errors import MamamiaError
    from napari_mamamia.features.challenge.io.challenge_file import ChallengeLimits
    from napari_mamamia.features.challenge.io.handed_in import (
        digest_of,
        find_submissions,
        look_inside,
        seal_submission,
    )
    from napari_mamamia.io.files.own_paths import own_folder

    limits = ChallengeLimits(submission_bytes=1 << 20)
    refused = []
    for team in find_submissions(folder).teams:
        try:
            digest_of(team.path, limits)
            with own_folder(folder.parent) as temporary:
                seal_submission(team.path, temporary / "sealed", limits)
                look_inside(temporary / "sealed")
        except MamamiaError as error:
            refused.append(error)
    if refused:
        raise refused[0]
    return None


def _review_study(folder: Path) -> Path:
    from napari_mamamia.features.review.io.keys import make_key
    from napari_mamamia.features.review.io.store import FolderStore

    double = from_tests("review_study")
    study = double.made(folder)
    store = FolderStore(study, folder / "home", host="H", session="1")
    store.put_mask(double.MASK)
    store.claim("c0001.1.ana", "ana")
    store.append("ana", {"act": "claim", "case": "c0001", "round": 1})
    make_key(study / "key.json", "correct horse")
    return study


def _open_review(study: Path) -> object:
    from napari_mamamia.core.errors import FormatError
    from napari_mamamia.features.review.io import keys
    from napari_mamamia.features.review.io.store import FolderStore
    from napari_mamamia.features.review.io.study_file import read_case_list
    from napari_mamamia.features.review.rules.replay import replay_events

    with suppress(FormatError):
        keys.sign_with(study / "key.json", "correct horse", b"x")
    with suppress(FormatError):
        keys.read_public_key(study / "key.json")
    with suppress(FormatError):
        keys.require_whole_key(study / "key.json")
    with suppress(FormatError):
        keys.read_passphrase(study / "key.json")
    with suppress(FormatError):
        read_case_list(study / "key.json")
    store = FolderStore(study, study.parent / "other", host="G", session="2")
    for mask in store.read().masks:
        with suppress(FormatError):
            store.get_mask(mask)
    chains = store.read().chains.values()
    replay_events(store.study, store.origin, chains, lambda _: True, keys.signature_fits)
    return store.list_claims()


_REVIEW = (
    "features.review.io.study_file.read_study",
    "features.review.io.study_file.hash_study",
    "features.review.io.study_file.read_case_list",
    "features.review.io.keys.read_passphrase",
    "features.review.io.keys.read_public_key",
    "features.review.io.keys.sign_with",
    "features.review.io.keys.require_whole_key",
    "features.review.io.store.read_mask",
    "features.review.io.store._read_claim",
    "io.workspace.event_store.read_events",
)

RECORDS = (
    Format("review-study", _review_study, _open_review, _REVIEW, share=0.5),
    Format(
        "challenge",
        _challenge,
        _calls("features.challenge.io.challenge_file", "read_challenge"),
        ("features.challenge.io.challenge_file.read_challenge",),
    ),
    Format(
        "defined-challenge",
        _defined,
        _read_defined,
        (
            "features.challenge.io.definition.read_definition_text",
            "features.challenge.io.definition.read_frozen",
            "features.challenge.io.answer_files.read_truth_table",
            "features.challenge.io.answer_files.read_answer",
            "features.challenge.io.answer_files.read_answer_table",
            "features.challenge.io.answer_files.read_weights",
            "features.challenge.services.challenge.answers.read_values",
        ),
        called="definition cup",
    ),
    Format(
        "defined-challenge-yaml",
        _defined_yaml,
        _read_defined_yaml,
        ("features.challenge.io.definition._parse_yaml",),
    ),
    Format("ledger", _ledger, _read_ledger, ("io.workspace.event_store.read_events",)),
    Format(
        "sealed",
        _sealed,
        _read_sealed,
        (
            "features.challenge.io.handed_in.read_manifest",
            "features.challenge.io.file_list.read_file_list",
        ),
    ),
    Format(
        "leaderboard-ranks",
        _texts("rank.json", {"methods": {"composite": {"a": 1.0}}}),
        _calls("features.challenge.services.challenge.verify", "read_ranks"),
        ("features.challenge.services.challenge.verify.read_ranks",),
        share=0.3,
    ),
    Format(
        "leaderboard-page",
        _texts("leaderboard.html", {"<p>": "a leads"}),
        _calls("features.challenge.io.leaderboard_file", "read_page"),
        ("features.challenge.io.leaderboard_file.read_page",),
        share=0.2,
    ),
    Format(
        "leaderboard",
        _board,
        _prove,
        ("features.challenge.io.leaderboard_file.read_leaderboard",),
    ),
    Format(
        "site",
        _site,
        _merge,
        (
            "features.challenge.io.site_file.read_site_file",
            "features.challenge.io.site_file.site_key",
        ),
    ),
    Format(
        "handed-in",
        _handed_in,
        _take,
        (
            "features.challenge.io.handed_in.find_submissions",
            "features.challenge.io.handed_in.digest_of",
            "features.challenge.io.handed_in.seal_submission",
            "features.challenge.io.handed_in.look_inside",
            "features.challenge.io.handed_in._read_asked",
        ),
    ),
    Format(
        "run-json",
        _run_file,
        _resume,
        ("services.batch.output_folder.claim_folder", "services.batch.output_folder.run_in"),
    ),
    Format("imported-info", _imported, _import_again, ("io.data_set.imported_case.write_info",)),
    Format("journal", _journal, _read_journal, _JOURNAL, share=2),
    Format(
        "case-tags",
        _tags,
        _calls("io.workspace.case_tags", "read_tag_notes"),
        ("io.workspace.case_tags.read_tag_notes", "io.workspace.event_store.read_events"),
    ),
    Format(
        "findings",
        _findings,
        _calls("io.workspace.findings", "read_findings"),
        ("io.workspace.findings.read_findings",),
    ),
    Format(
        "measurements",
        _measurements,
        _calls("io.workspace.measurements", "read_measurements"),
        ("io.workspace.measurements.read_measurements",),
    ),
    Format(
        "manifest",
        _bundle,
        _verify,
        ("io.data_set.bundle.read_manifest", "services.export.verify.verify_bundle"),
        share=2,
    ),
    Format("checked-lines", _checked_lines, _read_checked_lines, ()),
    Format(
        "layout-file",
        _texts("mine.toml", LAYOUT),
        _calls("io.layouts.layout", "read_layouts"),
        ("io.layouts.layout.read_layouts", "io.layouts.layout.read_layout_text"),
    ),
    Format(
        "layouts",
        _layouts,
        _find_layouts,
        ("io.layouts.find.find_data_set",),
        touched=(".json", ".tsv", ".txt", ".csv"),
    ),
    Format(
        "data-set",
        _data_set,
        _open,
        ("io.layouts.find.find_data_set", "services.case.open_case.load_case"),
    ),
)

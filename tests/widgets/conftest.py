"""A viewer without a window, a small case, and services that touch no file."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from napari.components import ViewerModel
from tests.quick_napari import accepting_at_once, napari_by_day  # noqa: F401

from napari_mamamia.core.blinding import NOT_BLIND
from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, LabelMap, Mask, Phase
from napari_mamamia.core.cohort import CaseRecord, Cohort
from napari_mamamia.core.edits import EditingSummary
from napari_mamamia.core.errors import SaveConflictError, SaveError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.io.files.sources import CaseFiles, DataSet, LayoutKind, PhaseSource
from napari_mamamia.io.workspace.preferences import Preferences
from napari_mamamia.io.workspace.workspace import FileState, Workspace
from napari_mamamia.segmentation.model.segmenter import Candidate, Prediction
from napari_mamamia.services.case.data_set import CaseRow, OpenDataSet
from napari_mamamia.services.case.refine import SavedMask
from napari_mamamia.services.case.show_case import CaseMasks, OpenMask
from napari_mamamia.services.predict.keep_prediction import KeptPrediction
from napari_mamamia.services.refine.editing import OpenEditing, RecoveredWork
from napari_mamamia.smartpaint.grow.grow import Grown
from napari_mamamia.smartpaint.session.session import EditingSession
from napari_mamamia.widgets.base.service_record import PredictServices, Services
from napari_mamamia.widgets.dock.dock import MamamiaDock

SHAPE = (6, 20, 24)
AXIAL = np.diag([-1.5, 2.0, 3.0, 1.0])
TIMES_S = (0.0, 90.0, 180.0)
BLOB = (slice(2, 4), slice(8, 12), slice(10, 16))


def make_case(case_id="A_1", affine=AXIAL, shape=SHAPE, loaded=True):
    """Return a case whose voxels all differ, with a bright blob after contrast."""
    grid = Grid(shape, affine)
    signal = np.arange(len(TIMES_S) * np.prod(shape), dtype=np.int16) % 97
    signal = signal.reshape(len(TIMES_S), *shape).astype(np.int16)
    signal[1:, *BLOB] += 300
    phases = tuple(Phase(k, t, loaded=loaded or k == 1) for k, t in enumerate(TIMES_S))
    return Case(case_id, grid, signal, phases)


def fake_kinetics(part, **fakes):
    """Let one part of page Kinetics call these in place of its services."""
    known = part._services
    part._services = known.replacing(kinetics=known.kinetics.replacing(**fakes))


def blob_mask(grid, value=1):
    """Return uint8 (z, y, x) with the blob."""
    buffer = np.zeros(grid.shape, np.uint8)
    buffer[BLOB] = value
    return buffer


def label_map(buffer, grid):
    """Return a buffer as the label map that a file would give."""
    box = Box.around(buffer)
    return LabelMap(grid, box, buffer[box.slices].copy())


def done(result, text="Working", steps=2):
    """Report a few steps and return `result`."""
    for step in range(steps + 1):
        report_progress(step, steps, text)
    return result


@pytest.fixture
def viewer():
    """A napari viewer without a window."""
    return ViewerModel()


@pytest.fixture
def new_case():
    """Return `make_case`: a case by id, affine and shape."""
    return make_case


@pytest.fixture
def new_mask():
    """Return `blob_mask`: uint8 (z, y, x) of 2 x 4 x 6 voxels with a value."""
    return blob_mask


@pytest.fixture
def case():
    """A small axial case."""
    return make_case()


class HeldJobs:
    """Holds the results of jobs that start from now on, until `deliver` is called."""

    def __init__(self, jobs, lanes=None):
        self._let, self._lanes = threading.Event(), lanes
        self._jobs, self._start = jobs, jobs.start
        self.lanes = []
        jobs.start = self._start_held

    def _start_held(self, lane, doing, work, then, **options):
        if self._lanes is not None and lane not in self._lanes:
            return self._start(lane, doing, work, then, **options)
        self.lanes.append(lane)

        def held():
            result = work()
            self._let.wait(20)
            return result

        return self._start(lane, doing, held, then, **options)

    def end(self):
        """Hold no job that starts from now on; the held ones stay held."""
        self._jobs.start = self._start

    def deliver(self):
        self.end()
        self._let.set()


class FakeSegmenter:
    """A model that answers what a test puts into it."""

    name = "kinetic"
    title = "Kinetic threshold"
    note = "kinetic threshold, not a trained model"


@dataclass
class World:
    """What the fake services know and what was asked of them."""

    root: Path
    case_ids: tuple = ("A_1", "A_2", "B_1")
    reader: str | None = "Ana"
    affine: np.ndarray = field(default_factory=lambda: AXIAL)
    has_reference: bool = True
    reference_value: int = 1
    problems: dict = field(default_factory=dict)
    refined: dict = field(default_factory=dict)
    accepted: dict = field(default_factory=dict)
    predictions: dict = field(default_factory=dict)
    save_error: Exception | None = None
    edit_error: Exception | None = None
    crashed: dict = field(default_factory=dict)
    journal: object = None
    notes: tuple = ()
    clinical_notes: tuple = ()
    open_error: Exception | None = None
    predict_error: Exception | None = None
    before_predicting: Callable[[], None] = lambda: None
    before_keeping: Callable[[], None] = lambda: None
    calls: list = field(default_factory=list)
    settings: list = field(default_factory=list)
    notes_of_growth: tuple = ("a note",)
    preferences: Preferences = field(default_factory=Preferences)

    def __post_init__(self):
        self.preferences = replace(self.preferences, reader=self.reader)

    # ------------------------------------------------------------ data set

    def files(self, case_id):
        phases = tuple(PhaseSource((self.root / f"{case_id}_{k}.nii.gz",)) for k in range(3))
        reference = self.root / f"{case_id}.nii.gz" if self.has_reference else None
        return CaseFiles(case_id, phases, reference, problems=self.problems.get(case_id, ()))

    def row(self, case_id):
        model = ("kinetic",) if case_id in self.predictions else ()
        readers = tuple(reader for reader, of in self.refined if of == case_id)
        record = CaseRecord(case_id, age=40.0 + self.case_ids.index(case_id))
        accepted = tuple(name for name in readers if self.accepted.get(case_id) == name)
        return CaseRow(self.files(case_id), record, model, readers, accepted)

    def open_data_set(self, path, workspace=None, **hidden):
        cases = tuple(self.files(case_id) for case_id in self.case_ids)
        records = tuple(self.row(case_id).record for case_id in self.case_ids)
        opened = OpenDataSet(
            DataSet(Path(path), LayoutKind.MAMA_MIA, cases),
            Workspace(
                workspace or self.root / "workspace", blinding=hidden.get("blinding", NOT_BLIND)
            ),
            Cohort(records),
            clinical_notes=self.clinical_notes,
        )
        return done(opened, "Listing cases")

    def save_preferences(self, preferences):
        self.preferences = preferences

    # ---------------------------------------------------------------- case

    def open_case(self, files, record=None, first=1):
        self.calls.append(("open", files.case_id))
        report_progress(0, 1, "Reading headers")
        if self.open_error:
            raise self.open_error
        return make_case(files.case_id, self.affine, loaded=False)

    def load_remaining(self, case, files):
        report_progress(0, 1, "Reading phase 0")
        return replace(case, phases=tuple(replace(p, loaded=True) for p in case.phases))

    def open_masks(self, case, files, workspace, reader):
        report_progress(0, 1, "Reading the reference mask")
        masks = []
        if self.has_reference:
            buffer = blob_mask(case.grid)
            raw = blob_mask(case.grid, self.reference_value)
            raw[BLOB[0].start, BLOB[1].start, BLOB[2].start] = 1
            labels = label_map(raw, case.grid)
            masks.append(OpenMask("reference", "expert", labels, buffer, labels.values))
        if files.case_id in self.predictions:
            buffer = self.predictions[files.case_id].copy()
            masks.append(OpenMask("prediction", "kinetic", label_map(buffer, case.grid), buffer))
        if (reader, files.case_id) in self.refined:
            buffer = self.refined[reader, files.case_id].copy()
            saved = SavedMask(self.root / reader / f"{files.case_id}.nii.gz", "sha")
            labels = label_map(buffer, case.grid)
            masks.append(OpenMask("refined", reader, labels, buffer, saved=saved))
        return CaseMasks(tuple(masks))

    # -------------------------------------------------------------- masks

    def predict_case(self, case, segmenter, prompt=None):
        self.calls.append(("predict", case.case_id, prompt))
        report_progress(0, 2, "Searching")
        self.before_predicting()
        if self.predict_error:
            raise self.predict_error
        made = Provenance(case.case_id, Maker.MODEL, "kinetic")
        best = Candidate(1, Box((2, 8, 10), (4, 12, 16)), np.ones((2, 4, 6), bool), 432.0, 2.0)
        other = Candidate(
            2, Box((5, 1, 1), (6, 3, 3)), np.ones((1, 2, 2), bool), 36.0, 1.0, ("small",)
        )
        mask = Mask(case.grid, blob_mask(case.grid).astype(bool), made)
        return Prediction(case.case_id, mask, (best, other), seconds=0.1, notes=("a note",))

    def kept(self, workspace, name, case_id):
        if case_id not in self.predictions:
            return None
        path = workspace.prediction(name, case_id)
        made = datetime(2026, 11, 22, 12, 1, tzinfo=UTC)
        total = int(self.predictions[case_id].sum())
        return KeptPrediction(name, case_id, f"sha{total}", made, FileState(path, total, 0))

    def keep(self, prediction, case, workspace, replaces=None, *, beside=False):
        report_progress(0, 1, "Saving")
        if self.save_error:
            raise self.save_error
        if self.kept(workspace, "kinetic", case.case_id) != replaces and not beside:
            raise SaveConflictError("there is another prediction: say whether it may be replaced")
        report_progress(0, 1, "Saving", binding=True)
        self.before_keeping()
        self.predictions[case.case_id] = prediction.mask.array.astype(np.uint8)
        self.calls.append(("save_prediction", case.case_id, int(prediction.mask.array.sum())))
        return self.kept(workspace, "kinetic 2" if beside else "kinetic", case.case_id)

    def is_begun(self, workspace, reader, case_id):
        return (reader, case_id) in self.refined or (reader, case_id) in self.crashed

    def open_editing(self, case, workspace, reader, start=None, images=None, *, started_from=""):
        report_progress(0, 1, "Opening the mask")
        if self.edit_error:
            raise self.edit_error
        labels = self.refined.get((reader, case.case_id))
        is_saved = labels is not None
        if labels is None:
            labels = np.zeros(case.grid.shape, np.uint8) if start is None else start.dense()
        live = EditingSession(
            case.case_id,
            case.grid,
            labels.copy(),
            images,
            earlier=EditingSummary(started_from=started_from if not is_saved else ""),
        )
        on_disk = label_map(labels, case.grid) if is_saved else None
        if is_saved and start is not None:
            live.apply_labels(started_from, start)
        recovered = self._recover(live, reader)
        saved = SavedMask(self.root / reader / f"{case.case_id}.nii.gz", "sha")
        return OpenEditing(
            case,
            reader,
            workspace,
            live,
            self.journal,
            saved if is_saved else None,
            on_disk,
            recovered,
            self.notes,
            is_as_saved=is_saved and start is None,
        )

    def _recover(self, live, reader):
        crashed = self.crashed.pop((reader, live.case_id), None)
        if crashed is None:
            return None
        found = label_map(crashed, live.grid)
        live.apply_labels("recovered strokes", found)
        return RecoveredWork(12, "2026-11-22T14:02:00+00:00", found)

    def prepare_saving(self, editing, *, accepted=False):
        editing.session.notice_external()
        return partial(self._save, editing, editing.session.labels.copy(), accepted)

    def _save(self, editing, array, accepted):
        report_progress(0, 1, "Saving")
        if self.save_error:
            raise self.save_error
        case_id, reader = editing.case.case_id, editing.reader
        self.refined[reader, case_id] = array
        started_from = editing.session.summary.started_from
        self.calls.append(("save_refined", reader, case_id, int(array.sum()), started_from))
        path = editing.workspace.refined(reader, case_id)
        saved = SavedMask(path, f"sha{array.sum()}", accepted)
        self.accepted.pop(case_id, None)
        if accepted:
            self.accepted[case_id] = reader
        editing.saved = saved
        return saved

    def grow(self, images, grid, outlines, settings=None):
        self.calls.append(("grow", len(outlines)))
        self.settings.append(settings)
        for step in range(5):
            report_progress(step, 5, "Growing")
        return Grown(Box((1, 8, 10), (5, 12, 16)), np.ones((4, 4, 6), bool), self.notes_of_growth)

    def grow_again(
        self, images, grid, labels, words, label, outlines=(), settings=None, edge_mm=None
    ):
        kind = "grow_again" if edge_mm is None else f"tighten by {edge_mm} mm"
        self.calls.append((kind, label, len(outlines), int((words > 0).sum())))
        return Grown(Box((1, 8, 10), (5, 12, 16)), np.ones((4, 4, 6), bool), self.notes_of_growth)

    def grow_from_box(self, images, grid, box, settings=None):
        self.calls.append(("grow_from_box", box))
        return self.grow(images, grid, ())

    def services(self):
        return Services(
            grow=self.grow,
            grow_again=self.grow_again,
            grow_from_box=self.grow_from_box,
            open_data_set=self.open_data_set,
            case_rows=lambda opened: tuple(self.row(case_id) for case_id in self.case_ids),
            case_row=lambda opened, case_id: self.row(case_id),
            open_case=self.open_case,
            load_remaining=self.load_remaining,
            read_ahead=lambda files, record: None,
            open_masks=self.open_masks,
            segmenters=lambda: (FakeSegmenter(),),
            predict_case=self.predict_case,
            newer_prediction=lambda case, workspace, shown: done(None),
            predict=PredictServices(kept=self.kept, keep=self.keep),
            is_begun=self.is_begun,
            open_editing=self.open_editing,
            prepare_saving=self.prepare_saving,
            load_preferences=lambda: self.preferences,
            save_preferences=self.save_preferences,
        )


@pytest.fixture
def world(tmp_path):
    """The data set that the fake services show."""
    return World(tmp_path)


@pytest.fixture
def dressed():
    """Ask for this where colours, fonts or sizes matter: a dock then has its rules."""


@pytest.fixture(autouse=True)
def undressed(request, monkeypatch):
    """Leave the style rules out of docks, but where `dressed` is asked for.

    Qt takes 55 ms to give them to all of a dock's widgets, more than half of making it. Every test
    of a window has them.
    """
    if "dressed" not in request.fixturenames:
        monkeypatch.setattr("napari_mamamia.widgets.dock.dock.style_sheet", lambda _theme: "")


@pytest.fixture
def dock(qtbot, viewer, world):
    """The dock on a viewer without a window, with fake services."""
    made = MamamiaDock(viewer, world.services())
    qtbot.addWidget(made)
    made.resize(360, 900)
    made.show()
    return made


@pytest.fixture
def opened(qtbot, dock):
    """The dock with case A_1 open and all its phases read."""
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    return dock


@pytest.fixture
def disk_full():
    """The error of a full disk."""
    return SaveError("cannot write A_1.nii.gz (No space left on device): free some space")

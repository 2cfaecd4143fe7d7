"""`predict` runs a model on one case, or on every case of a data set."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from html import escape
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from napari_mamamia.core.box import Corners, box_of
from napari_mamamia.core.case import Mask
from napari_mamamia.core.errors import ArgumentError, CaseError
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.library.argument_words import advise_failures, advising_arguments
from napari_mamamia.library.arguments import (
    ExistingName,
    PathLike,
    case_ids_of,
    existing_of,
    path_of,
    place_of,
    seconds_of,
)
from napari_mamamia.library.case import Case
from napari_mamamia.library.data_set import DataSet
from napari_mamamia.library.page import html_of
from napari_mamamia.library.progress import drive
from napari_mamamia.segmentation.model.device import DEVICES, is_device, usual_threads
from napari_mamamia.segmentation.model.segmenter import (
    BoxPrompt,
    Click,
    Prediction,
    Prompt,
    Segmenter,
)
from napari_mamamia.segmentation.run.planned import PlannedSegmenter
from napari_mamamia.segmentation.worker.client import Worker
from napari_mamamia.services.predict.cases import PredictSummary, predict_data_set
from napari_mamamia.services.predict.model_choice import RunChoices, open_model, require_ready
from napari_mamamia.services.predict.predict import predict_case

if TYPE_CHECKING:
    import pandas as pd
DeviceName: TypeAlias = Literal["auto", "cpu", "cuda", "mps"]


@overload
def predict(
    case: Case,
    model: PathLike = "kinetic",
    *,
    click: tuple[int, int, int] | None = None,
    box: Corners | None = None,
    device: DeviceName | str = "auto",
    folds: Iterable[str | int] = (),
    fast: bool = False,
    recipe: str = "",
    time_limit_s: float | None = None,
    probability: bool = False,
    progress: bool = True,
) -> Prediction: ...


@overload
def predict(
    case: DataSet,
    model: PathLike = "kinetic",
    *,
    out: PathLike,
    case_ids: str | Iterable[str] | None = None,
    existing: ExistingName = "refuse",
    workers: int = 0,
    device: DeviceName | str = "auto",
    folds: Iterable[str | int] = (),
    fast: bool = False,
    recipe: str = "",
    time_limit_s: float | None = None,
    probability: bool = False,
    progress: bool = True,
) -> "Predictions": ...


@advising_arguments
def predict(
    case: Case | DataSet,
    model: PathLike = "kinetic",
    *,
    click: tuple[int, int, int] | None = None,
    box: Corners | None = None,
    out: PathLike | None = None,
    case_ids: str | Iterable[str] | None = None,
    existing: ExistingName = "refuse",
    workers: int = 0,
    device: DeviceName | str = "auto",
    folds: Iterable[str | int] = (),
    fast: bool = False,
    recipe: str = "",
    time_limit_s: float | None = None,
    probability: bool = False,
    progress: bool = True,
) -> "Prediction | Predictions":
    """Segment the tumour in a case, or in every case of a data set.

    Parameters
    ----------
    case
        A `Case`, whose prediction is returned, or a `DataSet`, whose masks are written to `out`.
    model
        "kinetic" (a kinetic threshold, which needs no weights and is not trained), the name of an
        added model, or the path of a model.
    click, box
        For one case: a voxel ``(z, y, x)`` in the tumour, or a box around the tumour, as its first
        voxel and the voxel after its last.
    out
        For a data set: the folder in which ``ID.nii.gz`` and ``ID.json`` are written.
    case_ids
        For a data set: the cases to predict; by default all.
    existing
        What to do if `out` is not empty: "refuse", "resume" (keep finished cases) or "overwrite".
    workers
        For a data set: the number of parallel processes; 0 uses only this process.
    device, folds, fast, recipe
        For a trained model: the device, the folds to average, whether to use half precision (which
        changes results slightly), and the recipe for pre- and postprocessing (the name of a preset,
        or a file).
    time_limit_s
        The time limit for each case in seconds.
    probability
        For a trained model: whether to keep the probability map, as ``prediction.probability`` or
        ``out/probability/ID.nii.gz``.
    progress
        Whether to show a progress bar.

    Returns
    -------
    Prediction or Predictions
        For a case, an object with ``.mask``, ``.candidates``, ``.notes`` and ``.probability``. For
        a data set, an object with ``.cases`` (a table), ``.failures`` and ``.folder``, which can be
        passed to `score`.

    Raises
    ------
    ModelError
        If the model does not exist, cannot be run, or could not segment the case.
    MissingExtraError
        If the runtime of the model is not installed.
    CaseError, FormatError
        If the case cannot be opened. In a data set, only that case fails.
    SaveConflictError
        If `out` contains other results.
    ArgumentError
        If an argument has the wrong type, or does not apply to this kind of input.

    Examples
    --------
    >>> mm.predict(data_set["DUKE_001"]).mask.volume_mm3  # doctest: +SKIP
    2140.6
    >>> predictions = mm.predict(data_set, out="kinetic")  # doctest: +SKIP
    >>> mm.score(data_set, predictions).cohort  # doctest: +SKIP
    """
    if not is_device(device):
        devices = ", ".join(f'"{name}"' for name in DEVICES)
        raise ArgumentError(
            f'expected device to be one of {devices} or "cuda:N", but got {device!r}'
        )
    place_of(workers, seconds_of(time_limit_s, "time_limit_s"))
    choices = RunChoices(
        device=device,
        folds=tuple(str(fold) for fold in folds),
        limit_s=time_limit_s,
        fast=fast,
        recipe=recipe,
        threads=max(usual_threads() // max(workers, 1), 1),
        keep_probability=probability,
    )
    if isinstance(case, Case):
        _refuse_arguments("to a data set", "a case", out=out, case_ids=case_ids, workers=workers)
        return _predict_case(case, model, choices, _make_prompt(case, click, box), progress)
    if not isinstance(case, DataSet):
        raise ArgumentError(
            f"expected a case or a data set, but got {type(case).__name__}; pass a data set, "
            'or a case such as `data_set["ID"]`'
        )
    _refuse_arguments("to one case", "a data set", click=click, box=box)
    if out is None:
        raise ArgumentError(
            f"expected out to be a folder for the masks of {len(case)} cases, but got no folder; "
            "pass out=FOLDER"
        )
    folder, how = path_of(out, "out"), existing_of(existing)
    with _open_segmenter(model, choices) as segmenter:
        job = partial(
            predict_data_set,
            case.opened,
            segmenter,
            folder,
            case_ids_of(case_ids),
            how,
            place_of(workers, _limit_of_place(segmenter, workers, time_limit_s)),
            probability=probability,
        )
        summary = drive(job, progress, starts_processes=workers > 0)
        return Predictions(summary, folder, segmenter.note)


class Predictions:
    """A model's masks for a data set: ``.cases`` is a table, and ``["ID"]`` is a mask."""

    def __init__(self, summary: PredictSummary, folder: Path, note: str) -> None:
        self._summary, self._folder, self._note = summary, folder, note

    def __fspath__(self) -> str:
        return str(self._folder)

    def __repr__(self) -> str:
        n, there = len(self._summary.saved), len(self._summary.skipped)
        failed = f", {len(self.failures)} failed" if self.failures else ""
        skipped = f", {there} were already there" if there else ""
        return f"Predictions({n} made{skipped}{failed}, {str(self._folder)!r}; {self._note})"

    def _repr_html_(self) -> str:
        failed = "".join(f"<p>⚠ {escape(f.case_id)}: {escape(f.reason)}</p>" for f in self.failures)
        table = html_of(self.cases)
        return f"<p><b>{escape(self.note)}</b></p>{failed}{table}"

    @property
    def folder(self) -> Path:
        """The folder with the masks."""
        return self._folder

    @property
    def note(self) -> str:
        """A caveat that must be shown with these masks, such as that the model is not trained."""
        return self._note

    @property
    def failures(self) -> tuple[CaseFailure, ...]:
        """The cases that could not be predicted, each with its reason."""
        return advise_failures(self._summary.failures, predict)

    @property
    def cases(self) -> "pd.DataFrame":
        """A table with one row per new mask, by case id: ``volume_ml``, ``seconds``, ``notes``."""
        import pandas as pd

        rows = [
            {"volume_ml": s.volume_mm3 / 1000, "seconds": s.seconds, "notes": "; ".join(s.notes)}
            for s in self._summary.saved
        ]
        ids = pd.Index([s.case_id for s in self._summary.saved], name="case_id", dtype=object)
        return pd.DataFrame(rows, index=ids, columns=["volume_ml", "seconds", "notes"])

    def __getitem__(self, case_id: str) -> Mask:
        """Return the mask of a case; raise `CaseError` if there is no mask."""
        path = self._folder / f"{case_id}.nii.gz"
        if not path.is_file():
            failed = {failure.case_id: failure.reason for failure in self.failures}
            why = failed.get(case_id, "it is not in the folder")
            raise CaseError(
                f"expected the folder {self._folder} to have a prediction for {case_id!r}, but "
                f"{why}; choose a different case"
            )
        return read_labels(path).mask()


def _predict_case(
    case: Case, model: PathLike, choices: RunChoices, prompt: Prompt | None, progress: bool
) -> Prediction:
    with _open_segmenter(model, choices) as segmenter:
        require_ready(segmenter)
        return drive(partial(predict_case, case.read(), segmenter, prompt), progress)


@contextmanager
def _open_segmenter(model: PathLike, choices: RunChoices) -> Iterator[Segmenter]:
    """Open a model for a `with` block; the process of a trained model ends with the block."""
    segmenter = open_model(str(path_of(model, "model")), choices, Worker())
    try:
        yield segmenter
    finally:
        if isinstance(segmenter, PlannedSegmenter):
            segmenter.close()


def _limit_of_place(segmenter: Segmenter, workers: int, limit_s: float | None) -> float | None:
    """Return the time limit that the batch must enforce, or None if the model does so itself.

    A trained model that runs in this process enforces its own limit.
    """
    return None if isinstance(segmenter, PlannedSegmenter) and not workers else limit_s


def _make_prompt(
    case: Case, click: tuple[int, int, int] | None, box: Corners | None
) -> Prompt | None:
    if click is not None and box is not None:
        raise ArgumentError("expected a click or a box, but got both")
    if box is not None:
        return BoxPrompt(box_of(box, case.grid.shape))
    return None if click is None else Click(voxel_of(click, case))


def voxel_of(given: tuple[int, int, int], case: Case) -> tuple[int, int, int]:
    """Check a voxel ``(z, y, x)``; raise `ArgumentError` if it is not in the case."""
    shape = case.grid.shape
    try:
        z, y, x = (index(at) for at in given)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"expected a voxel (z, y, x), but got {given!r}; pass three whole numbers"
        ) from error
    if not all(0 <= at < n for at, n in zip((z, y, x), shape, strict=True)):
        raise ArgumentError(f"expected a voxel (z, y, x) inside {shape}, but got {(z, y, x)}")
    return z, y, x


def _refuse_arguments(whose: str, got: str, **given: Any) -> None:
    """Raise an error if arguments were passed that would have no effect."""
    asked = [
        name
        for name, value in given.items()
        if not (value is None or (isinstance(value, int) and value == 0))
    ]
    if asked:
        raise ArgumentError(
            f"{asked[0]} applies only {whose}, but it was passed with {got}; omit {asked[0]}"
        )

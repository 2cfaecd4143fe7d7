"""`score_detection` scores predicted boxes against lesions, from tables or folders of masks."""

from dataclasses import fields, replace
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from napari_mamamia.core.choices import (
    BoxRule,
    CaseScoreRule,
    CurveReading,
    DuplicateRule,
    LesionMatching,
    LesionOverlap,
    RiskModel,
)
from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.features.classifiers.scoring.detection.detection import (
    score_detection as numbers_of,
)
from napari_mamamia.features.classifiers.scoring.detection.matching import MatchingRule
from napari_mamamia.features.classifiers.scoring.detection.parts import PartRules
from napari_mamamia.features.classifiers.scoring.detection.report import headline, rule_text
from napari_mamamia.features.classifiers.scoring.detection.results import (
    DetectionResult,
    DetectionSettings,
)
from napari_mamamia.features.classifiers.services.detection.inputs import (
    DetectionMasks,
    DetectionTables,
    ReadDetection,
)
from napari_mamamia.features.classifiers.services.detection.output import (
    TABLES,
    detection_content,
)
from napari_mamamia.features.classifiers.services.detection.score_detection import (
    DetectionSummary,
    read_detection,
    save_detection,
)
from napari_mamamia.io.tables.tables import plain_content
from napari_mamamia.library.argument_words import advise_failures, advising_arguments
from napari_mamamia.library.arguments import (
    ExistingName,
    PathLike,
    existing_of,
    label_of,
    name_frames,
    named,
    path_of,
    table_file,
)
from napari_mamamia.library.page import html_of
from napari_mamamia.library.progress import drive

if TYPE_CHECKING:
    import pandas as pd


class Detections:
    """The result of scoring detection: tables ``.lesions``, ``.boxes``, ``.curve``, and numbers.

    Every number depends on the matching rule in ``.rule``. `score_detection` returns this object.
    """

    def __init__(
        self, source: DetectionTables | DetectionMasks, read: ReadDetection, result: DetectionResult
    ) -> None:
        self._source, self._read, self._result = source, read, result

    def __repr__(self) -> str:
        """Return the main result and the matching rule as text."""
        return f"{self.rule}\n{headline(self._result)}"

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>⚠ {escape(text)}</p>" for text in self.warnings)
        head = f"<p><b>{escape(headline(self._result))}</b></p><p>{escape(self.rule)}</p>"
        return f"{head}{notes}{html_of(self.lesions)}"

    @property
    def result(self) -> DetectionResult:
        """Return all results as one object."""
        return self._result

    @property
    def rule(self) -> str:
        """Describe how lesions and boxes are matched, and where the risks come from."""
        return rule_text(self._result)

    @property
    def froc(self) -> float:
        """Return the mean sensitivity at 1/8 to 8 false positives per case; NaN if undefined."""
        return self._result.froc

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """Return the content of ``detection.json``: plain numbers, or None if undefined."""
        content: dict[str, Any] = plain_content(
            detection_content(self._result, self.failures, self._read.warnings)
        )
        return content

    @property
    def lesions(self) -> "pd.DataFrame":
        """Return a table of lesions: size, risk, and the box that found the lesion."""
        return self._make_table("lesions.csv")

    @property
    def boxes(self) -> "pd.DataFrame":
        """Return a table of predicted boxes, each with its outcome: true, false or not counted."""
        return self._make_table("boxes.csv")

    @property
    def curve(self) -> "pd.DataFrame":
        """Return a table of the points of the FROC curve and of the three raFROC curves."""
        return self._make_table("curve.csv")

    @property
    def failures(self) -> tuple[CaseFailure, ...]:
        """Return the rows and files that could not be read, each with the reason."""
        return advise_failures(self._read.failures, score_detection)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return notes on how to interpret the numbers, as sentences."""
        return (*self._read.warnings, *self._result.warnings)

    @advising_arguments
    def save(
        self, folder: PathLike, *, existing: ExistingName = "refuse", progress: bool = True
    ) -> Path:
        """Write the files of ``mamamia score-detection``, and return the folder.

        Parameters
        ----------
        folder
            Output folder.
        existing
            What to do if the folder contains other results: "refuse", "resume" or "overwrite".
        progress
            Whether to show a progress bar.

        Returns
        -------
        pathlib.Path
            The output folder.

        Raises
        ------
        SaveConflictError
            If the folder contains other results and `existing` is "refuse".
        SaveError
            If the operating system does not allow writing.
        """
        out = path_of(folder, "the results")
        policy = existing_of(existing, can_resume=False)
        job = partial(save_detection, self._source, self._read, self._result, out, existing=policy)
        summary: DetectionSummary = drive(job, progress)
        return summary.folder

    def _make_table(self, name: str) -> "pd.DataFrame":
        import pandas as pd

        columns, rows = TABLES[name]
        return pd.DataFrame(rows(self._result), columns=list(columns))


@advising_arguments
def score_detection(
    reference: "PathLike | pd.DataFrame",
    prediction: "PathLike | pd.DataFrame",
    *,
    cases: "PathLike | pd.DataFrame | None" = None,
    probability: PathLike | None = None,
    matching: Literal["greedy-score", "hungarian", "any-overlap"] = "greedy-score",
    iou: float = 0.1,
    duplicates: Literal["false-positive", "ignored"] = "false-positive",
    overlap: Literal["box-iou", "mask-iou", "mask-dice"] = "box-iou",
    box: Literal["tight", "nndetection"] = "tight",
    interpolation: Literal["linear", "step"] = "linear",
    case_score: Literal["max", "noisy-or"] = "max",
    risk: Literal["sopik-2018", "verschraegen-2005"] = "sopik-2018",
    size_cut_mm: float = 20.0,
    label: float | None = None,
    bootstrap: int = 1000,
    seed: int = 42,
    progress: bool = True,
) -> Detections:
    """Score detected lesions, as ``mamamia score-detection`` does.

    Parameters
    ----------
    reference, prediction
        Two tables of boxes in mm (``.csv``, ``.xlsx`` or DataFrames: case_id, x1, x2, y1, y2, z1,
        z2, for the prediction also score, and optionally risk in both); or two folders of masks.
    cases
        The table of all cases, including those without a lesion, optionally with each case's
        centre. It is required for tables. For masks, the cases with a reference are used by
        default.
    probability
        Folder of probability maps; the score of a mask component is the maximum of the map inside
        it. Only for masks.
    matching, iou, duplicates, overlap
        How boxes are matched with lesions, see docs/methods/detection.md; `overlap` is only for
        masks.
    box, label
        How the box of a mask component is defined, and the label value of the tumour; only for
        masks.
    interpolation, case_score, risk, size_cut_mm
        How sensitivity is interpolated between two points, how the score of a case is computed, how
        risk depends on size, and the size that separates small from large lesions.
    bootstrap, seed
        Number of resamples of cases for the 95 % intervals (0: none), and the random seed.
    progress
        Whether to show a progress bar.

    Returns
    -------
    Detections
        The results as tables and numbers.

    Raises
    ------
    ArgumentError
        If an argument has the wrong type, or `cases` is missing for tables.
    FormatError
        If a table or folder cannot be read, or the reference is invalid.

    Examples
    --------
    >>> import pandas as pd
    >>> import napari_mamamia as mm
    >>> box = dict(case_id="A", x1=0, x2=30, y1=0, y2=20, z1=0, z2=20)
    >>> found = mm.score_detection(
    ...     pd.DataFrame([box]), pd.DataFrame([box | {"score": 0.9}]),
    ...     cases=pd.DataFrame({"case_id": ["A", "B"]}), bootstrap=0,
    ... )
    >>> found.froc, found.numbers["n_false_positives"]
    (1.0, 0)
    """
    settings = _make_settings(
        (matching, iou, duplicates), interpolation, case_score, risk, size_cut_mm, bootstrap, seed
    )
    rules = PartRules(
        named(LesionOverlap, overlap, "overlap"), named(BoxRule, box, "box"), label_of(label)
    )
    with (
        table_file(reference, "lesions", "reference") as truth,
        table_file(prediction, "predictions", "prediction") as boxes,
        table_file(cases, "cases", "cases") as listed,
    ):
        source = _find_source(truth, boxes, listed, probability, rules)
        read = drive(partial(read_detection, source, settings), progress)
        if boxes is not prediction:
            failures, notes = name_frames(read.failures, read.warnings, boxes, "prediction")
            read = replace(read, failures=failures, warnings=notes)
    return Detections(source, read, drive(partial(numbers_of, read.data, settings), progress))


def _find_source(
    reference: Any, prediction: Any, cases: Any, probability: Any, rules: PartRules
) -> DetectionTables | DetectionMasks:
    truth, boxes = path_of(reference, "reference"), path_of(prediction, "prediction")
    listed = None if cases is None else path_of(cases, "cases")
    if truth.is_dir() or boxes.is_dir():
        maps = None if probability is None else path_of(probability, "probability")
        return DetectionMasks(truth, boxes, maps, listed, rules)
    if listed is None:
        raise ArgumentError(
            "tables of boxes need `cases`, a table of all cases including those without a lesion, "
            "but it is missing: pass `cases`"
        )
    only_masks = [rule.name for rule in fields(rules) if getattr(rules, rule.name) != rule.default]
    if probability is not None:
        only_masks.append("probability")
    if only_masks:
        words = ", ".join(only_masks)
        raise ArgumentError(
            f"expected folders of masks with {words}, but got tables of boxes: leave out {words}"
        )
    return DetectionTables(listed, truth, boxes)


def _make_settings(
    rule: tuple[str, float, str],
    interpolation: str,
    case_score: str,
    risk: str,
    size_cut_mm: float,
    bootstrap: int,
    seed: int,
) -> DetectionSettings:
    matching, iou, duplicates = rule
    for option, value in (("bootstrap", bootstrap), ("seed", seed)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise ArgumentError(
                f"expected {option} to be a whole number of 0 or above, but it is {value!r}: pass "
                "a number such as 1000"
            )
    for option, size in (("iou", iou), ("size_cut_mm", size_cut_mm)):
        if isinstance(size, bool) or not isinstance(size, int | float):
            raise ArgumentError(
                f"expected {option} to be a number, but it is {size!r}: pass a number"
            )
    try:
        return DetectionSettings(
            MatchingRule(
                named(LesionMatching, matching, "matching"),
                float(iou),
                named(DuplicateRule, duplicates, "duplicates"),
            ),
            named(CurveReading, interpolation, "interpolation"),
            named(CaseScoreRule, case_score, "case_score"),
            named(RiskModel, risk, "risk"),
            float(size_cut_mm),
            bootstrap,
            seed,
        )
    except ValueError as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(
            f"expected all numbers to be within their limits, but {error}"
        ) from error

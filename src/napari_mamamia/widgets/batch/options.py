"""Additional settings of a batch: cases to score, processes, intervals, existing results."""

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from qtpy.QtWidgets import QLabel, QToolButton, QWidget

from napari_mamamia.core.choices import UnusableRule
from napari_mamamia.core.errors import MissingExtraError
from napari_mamamia.core.texts import tr
from napari_mamamia.scoring.cohort.disparities import MINIMUM_GROUP
from napari_mamamia.scoring.statistics.resampling import N_RESAMPLES, SEED
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.work import Place
from napari_mamamia.widgets.controls.controls import (
    column,
    fill_column,
    label,
    row_name,
    set_level,
    tool_button,
)
from napari_mamamia.widgets.controls.form import Browse, Form, option

NAMES: Final = (
    tr("Reference"),
    tr("Masks"),
    tr("Results folder"),
    tr("Time limit"),
    tr("Existing results"),
    tr("Processes"),
    tr("Smallest group"),
)
"""The widest field labels, used to align all fields."""

_CORES: Final = os.cpu_count() or 1
_EXISTING: Final = (
    (Existing.REFUSE, tr("Ask"), tr("Nothing is written before you choose.")),
    (Existing.RESUME, tr("Continue"), tr("Only new, changed and failed cases are scored.")),
    (
        Existing.OVERWRITE,
        tr("Overwrite"),
        tr("Files with the same names are overwritten; others are kept."),
    ),
)
_UNUSABLE: Final = (
    (
        None,
        tr("as the profile defines"),
        tr("The case gets the least favourable or the worst score, as the profile defines."),
    ),
    (
        UnusableRule.REJECT,
        tr("reject the submission"),
        tr("If there is even one such case, no ranking score is computed."),
    ),
    (
        UnusableRule.LEAST_FAVOURABLE,
        tr("least favourable"),
        tr("The case gets the values that make the ranking score lowest."),
    ),
    (
        UnusableRule.WORST_SCORE,
        tr("worst score"),
        tr("The case gets a Dice of 0 and the worst NormHD."),
    ),
    (
        UnusableRule.LEAVE_OUT,
        tr("leave out (no ranking)"),
        tr("The case is not scored, so leaving out difficult cases would improve the score."),
    ),
)


class Where(StrEnum):
    """Where the batch runs: in this program, in processes, or on a cluster."""

    HERE = "in this program"
    WORKERS = "in several processes"
    CLUSTER = "on a cluster"


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """The settings of a batch: cases to score, processes, intervals and existing results."""

    case_list: Path | None = option(
        None,
        tr("Cases"),
        "batch_cases",
        tr(
            "The cases to score, as a file with one id per line or a table with case_id and "
            "optionally sha256; if empty, all cases with a reference."
        ),
        placeholder=tr("all with a reference"),
        browse=Browse(
            "batch_choose_cases",
            tr("Choose a list of cases"),
            tr("Choose a list of cases"),
            tr("Lists of cases (*.txt *.csv *.xlsx *.ods);;All files (*)"),
        ),
    )
    unusable: UnusableRule | None = option(
        None,
        tr("Unusable"),
        "batch_unusable",
        tr("How cases without a usable prediction count."),
        choices=_UNUSABLE,
    )
    where: Where = option(
        Where.HERE,
        tr("Scored"),
        "batch_place",
        tr("Where the cases are scored; the results are the same everywhere."),
        choices=tuple((where, tr(where.value), "") for where in Where),
    )
    workers: int = option(
        _CORES,
        tr("Processes"),
        "batch_workers",
        tr("Number of processes that score at the same time."),
        bounds=(1, _CORES),
        unit=tr(" of {cores}", cores=_CORES),
    )
    scheduler: str = option(
        "",
        tr("Address"),
        "batch_scheduler",
        tr("Address of a dask scheduler, tcp://host:port."),
        placeholder=tr("tcp://host:8786"),
    )
    limit_s: int = option(
        0,
        tr("Time limit"),
        "batch_limit",
        tr("A case that takes longer is stopped and listed as failed."),
        bounds=(0, 86_400),
        unit=" s",
        lowest=tr("none"),
    )
    n_resamples: int = option(
        N_RESAMPLES,
        tr("Bootstrap"),
        "batch_bootstrap",
        tr("Number of bootstrap resamples for the intervals."),
        bounds=(0, 100_000),
        lowest=tr("no intervals"),
    )
    seed: int = option(
        SEED,
        tr("Seed"),
        "batch_seed",
        tr("Seed of resamples and permutations."),
        bounds=(0, 2**31 - 1),
    )
    minimum_group: int = option(
        MINIMUM_GROUP,
        tr("Smallest group"),
        "batch_least_group",
        tr(
            "Smaller groups are listed without intervals, tests or summaries, but count in the "
            "score."
        ),
        bounds=(2, 10_000),
        unit=tr(" cases"),
    )
    existing: Existing = option(
        Existing.REFUSE,
        tr("Existing results"),
        "batch_existing",
        tr("What to do if the output folder already contains results."),
        choices=_EXISTING,
    )

    @property
    def place(self) -> Place | None:
        """The place where the batch runs; None means in this program, without a time limit."""
        limit = float(self.limit_s) or None
        if self.where is Where.WORKERS:
            return Place(workers=self.workers, time_limit_s=limit)
        if self.where is Where.CLUSTER:
            return Place(scheduler=self.scheduler, time_limit_s=limit)
        return Place(time_limit_s=limit) if limit else None


class BatchOptions(QWidget):
    """The settings, collapsed at first; `has_cluster` says if the cluster extra is installed."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("batch_options")
        self._has_cluster = True
        self.more: QToolButton = tool_button(
            "batch_more",
            tr("▸ More: which cases, processes, bootstrap"),
            tr("Shows the settings for the cases to score, the processes and the intervals."),
            self._toggle_body,
        )
        self.more.setCheckable(True)
        self.form = Form(BatchSettings, NAMES)
        self.fields, self.settings = self.form.fields, self.form.settings
        self.place_note = label(
            "batch_place_note", tip=tr("Requirements for running the batch there.")
        )
        rows = list(self.form.rows.values())
        rows.insert(list(self.form.rows).index("limit_s"), self.place_note)
        self.body = column(*rows)
        fill_column(self, self.more, self.body, spacing=4)
        self.fields["where"].currentIndexChanged.connect(lambda _at: self._follow_place())
        self._follow_place()
        self.body.hide()

    def show_cluster(self, installed: bool) -> None:
        """Show whether a run can use a cluster, that is, whether the extra is installed."""
        self._has_cluster = installed
        self._follow_place()

    def problem(self) -> str:
        """Return why a run cannot start with these settings, or "" if it can start."""
        chosen = self.settings()
        if chosen.where is Where.CLUSTER and not self._has_cluster:
            return str(MissingExtraError("distributed", "cluster"))
        if chosen.where is Where.CLUSTER and "://" not in chosen.scheduler:
            return tr(
                "expected the address of a dask scheduler such as tcp://host:8786, but found "
                "{address}: copy the address from the first lines of the scheduler's output",
                address=chosen.scheduler or "nothing",
            )
        return ""

    # -------------------------------------------------------------------- inner

    def _toggle_body(self) -> None:
        on = self.more.isChecked()
        self.body.setVisible(on)
        self.more.setText(self.more.text().replace("▸" if on else "▾", "▾" if on else "▸"))

    def _follow_place(self) -> None:
        where = self.settings().where
        self.form.rows["workers"].setVisible(where is Where.WORKERS)
        self.form.rows["scheduler"].setVisible(where is Where.CLUSTER)
        missing = where is Where.CLUSTER and not self._has_cluster
        if missing:
            self.place_note.setText(str(MissingExtraError("distributed", "cluster")))
        elif where is Where.CLUSTER:
            self.place_note.setText(
                tr(
                    "The machines of the cluster must have this software, and the same folders "
                    "under the same paths."
                )
            )
        self.place_note.setVisible(missing or where is Where.CLUSTER)
        set_level(self.place_note, "warning" if missing else "hint")


def name_of(text: str) -> QLabel:
    """Return the label in front of a field."""
    return row_name(text, NAMES)

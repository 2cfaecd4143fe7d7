"""Further settings of a batch: cases that count, processes, intervals, existing results."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Final

from qtpy.QtCore import Qt
from qtpy.QtWidgets import (
    QComboBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QSpinBox,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.choices import UnusableRule
from napari_mamamia.core.errors import MissingExtraError
from napari_mamamia.core.texts import tr
from napari_mamamia.scoring.cohort.gap_records import MINIMUM_GROUP
from napari_mamamia.scoring.statistics.resampling import N_RESAMPLES, SEED
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.work import Place
from napari_mamamia.widgets.controls.controls import (
    column,
    label,
    named,
    row,
    row_name,
    set_level,
    tool_button,
)

NAMES: Final = (
    tr("Reference"),
    tr("Its masks"),
    tr("Results to"),
    tr("Time limit"),
    tr("Existing results"),
    tr("Processes"),
    tr("Smallest group"),
)
"""The widest labels in front of the fields, so that all fields start at the same position."""

_MOST_SECONDS: Final = 86_400
_MOST_RESAMPLES: Final = 100_000
_MOST_LEAST: Final = 10_000
_MOST_SEED: Final = 2**31 - 1
_EXISTING: Final = (
    (tr("Ask"), Existing.REFUSE, tr("Nothing is written before you choose.")),
    (
        tr("Continue"),
        Existing.RESUME,
        tr("Only new, changed and failed cases are scored."),
    ),
    (
        tr("Overwrite"),
        Existing.OVERWRITE,
        tr("Files with the same names are overwritten; others stay."),
    ),
)
_UNUSABLE: Final = (
    (
        tr("as the profile defines"),
        None,
        tr("Least favourable or worst score, as the profile defines."),
    ),
    (
        tr("reject the submission"),
        UnusableRule.REJECT,
        tr("A single such case, and there is no ranked number."),
    ),
    (
        tr("least favourable"),
        UnusableRule.LEAST_FAVOURABLE,
        tr("The case gets the values that make the ranking score lowest."),
    ),
    (tr("worst score"), UnusableRule.WORST_SCORE, tr("Dice 0 and the worst NormHD.")),
    (
        tr("leave out: not for ranking"),
        UnusableRule.LEAVE_OUT,
        tr("The case does not count, so leaving out hard cases would improve the score."),
    ),
)


class Where(StrEnum):
    """Where the cases are scored."""

    HERE = "in this program"
    WORKERS = "in several processes"
    CLUSTER = "on a cluster"


class BatchOptions(QWidget):
    """The settings, folded at first; `has_cluster`: whether the extra `cluster` is installed."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("batch_options")
        self._has_cluster = True
        self.more: QToolButton = tool_button(
            "batch_more",
            tr("▸ More: which cases, processes, bootstrap"),
            tr(
                "Shows the cases that count, where they are scored, and the settings of the "
                "intervals."
            ),
            self._toggle_body,
        )
        self.more.setCheckable(True)
        self.body = self._make_body()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self.more)
        layout.addWidget(self.body)
        self._follow_place()
        self.body.hide()

    def show_cluster(self, installed: bool) -> None:
        """Show whether processes and clusters can be used."""
        self._has_cluster = installed
        self._follow_place()

    @property
    def where(self) -> Where:
        """The place where the cases are scored."""
        return Where(self.place.currentData())

    def problem(self) -> str:
        """Return why a run cannot start with these settings, "" if it can."""
        if self.where is not Where.HERE and not self._has_cluster:
            return str(MissingExtraError("distributed", "cluster"))
        address = self.address.text().strip()
        if self.where is Where.CLUSTER and "://" not in address:
            return tr(
                "expected the address of a dask scheduler such as tcp://host:8786, got {address}: "
                "copy it from the first lines of the scheduler's output",
                address=address or "nothing",
            )
        return ""

    def place_of_work(self) -> Place | None:
        """Return where the batch runs; None means in this program without a time limit."""
        limit = float(self.limit.value()) or None
        if self.where is Where.WORKERS:
            return Place(workers=self.workers.value(), time_limit_s=limit)
        if self.where is Where.CLUSTER:
            return Place(scheduler=self.address.text().strip(), time_limit_s=limit)
        return Place(time_limit_s=limit) if limit else None

    @property
    def chosen_existing(self) -> Existing:
        """The choice for an output folder that already holds results."""
        return Existing(self.existing.currentData())

    @property
    def case_list(self) -> Path | None:
        """The file that lists the cases that count, None for all with a reference."""
        text = self.listed.text().strip()
        return Path(text).expanduser() if text else None

    @property
    def unusable_rule(self) -> UnusableRule | None:
        """The rule for cases without a usable prediction; None for the profile's rules."""
        chosen = self.unusable.currentData()
        return None if chosen is None else UnusableRule(chosen)

    # -------------------------------------------------------------------- inner

    def _make_which(self) -> QWidget:
        tip = tr(
            "The cases that count: a file with one id per line, or a table with case_id and "
            "optionally sha256. If empty: all cases with a reference."
        )
        self.listed: QLineEdit = named(QLineEdit(), "batch_cases", tip)
        self.listed.setPlaceholderText(tr("all with a reference"))
        choose = tool_button(
            "batch_choose_cases", "…", tr("Choose a list of cases"), self._choose_case_list
        )
        choose.setProperty("framed", True)
        self.unusable: QComboBox = named(
            QComboBox(),
            "batch_unusable",
            tr("How cases without a usable prediction count."),
        )
        for text, rule, tip in _UNUSABLE:
            self.unusable.addItem(text, None if rule is None else rule.value)
            self.unusable.setItemData(self.unusable.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
        return column(
            row(name_of(tr("Cases")), self.listed, choose),
            row(name_of(tr("Unusable")), self.unusable, 1),
        )

    def _choose_case_list(self) -> None:
        start = self.listed.text() or str(Path.home())
        kinds = tr("Lists of cases (*.txt *.csv *.xlsx *.ods);;All files (*)")
        chosen, _ = QFileDialog.getOpenFileName(self, tr("Choose a list of cases"), start, kinds)
        if chosen:
            self.listed.setText(chosen)

    def _make_body(self) -> QWidget:
        self.place: QComboBox = named(
            QComboBox(), "batch_place", tr("Where the cases are scored; the numbers are the same.")
        )
        for where in Where:
            self.place.addItem(tr(where.value), where.value)
        self.place.currentIndexChanged.connect(lambda _at: self._follow_place())
        cores = os.cpu_count() or 1
        self.workers = _make_spin_box(
            "batch_workers", tr("Number of processes that score at the same time."), 1, cores
        )
        self.workers.setValue(cores)
        self.workers.setSuffix(tr(" of {cores}", cores=cores))
        self.address: QLineEdit = named(
            QLineEdit(), "batch_scheduler", tr("Address of a dask scheduler, tcp://host:port.")
        )
        self.address.setPlaceholderText(tr("tcp://host:8786"))
        self.place_note = label("batch_place_note", tip=tr("Requirements of this place."))
        self.limit = _make_spin_box(
            "batch_limit",
            tr("A case that takes longer is stopped and becomes a failed row."),
            0,
            _MOST_SECONDS,
        )
        self.limit.setSuffix(" s")
        self.limit.setSpecialValueText(tr("none"))
        self.resamples = _make_spin_box(
            "batch_bootstrap",
            tr("Number of bootstrap resamples for the intervals."),
            0,
            _MOST_RESAMPLES,
        )
        self.resamples.setValue(N_RESAMPLES)
        self.resamples.setSpecialValueText(tr("no intervals"))
        self.least = _make_spin_box(
            "batch_least_group",
            tr(
                "Smaller groups are left out of intervals, tests and sentences, and listed; the "
                "score still counts them."
            ),
            2,
            _MOST_LEAST,
        )
        self.least.setValue(MINIMUM_GROUP)
        self.least.setSuffix(tr(" cases"))
        self.seed = _make_spin_box(
            "batch_seed", tr("Seed of resamples and permutations."), 0, _MOST_SEED
        )
        self.seed.setValue(SEED)
        self.existing: QComboBox = named(
            QComboBox(),
            "batch_existing",
            tr("What to do if the output folder already holds results."),
        )
        for text, policy, tip in _EXISTING:
            self.existing.addItem(text, policy.value)
            self.existing.setItemData(self.existing.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
        self._workers_line = row(name_of(tr("Processes")), self.workers, 1)
        self._address_line = row(name_of(tr("Address")), self.address)
        return column(
            self._make_which(),
            row(name_of(tr("Scored")), self.place, 1),
            self._workers_line,
            self._address_line,
            self.place_note,
            row(name_of(tr("Time limit")), self.limit, 1),
            row(name_of(tr("Bootstrap")), self.resamples, 1),
            row(name_of(tr("Seed")), self.seed, 1),
            row(name_of(tr("Smallest group")), self.least, 1),
            row(name_of(tr("Existing results")), self.existing, 1),
        )

    def _toggle_body(self) -> None:
        on = self.more.isChecked()
        self.body.setVisible(on)
        self.more.setText(self.more.text().replace("▸" if on else "▾", "▾" if on else "▸"))

    def _follow_place(self) -> None:
        where = self.where
        self._workers_line.setVisible(where is Where.WORKERS)
        self._address_line.setVisible(where is Where.CLUSTER)
        missing = where is not Where.HERE and not self._has_cluster
        if missing:
            self.place_note.setText(str(MissingExtraError("distributed", "cluster")))
        elif where is Where.CLUSTER:
            self.place_note.setText(
                tr(
                    "Its machines must have the same folders under the same paths, and this "
                    "software."
                )
            )
        self.place_note.setVisible(missing or where is Where.CLUSTER)
        set_level(self.place_note, "warning" if missing else "hint")


def _make_spin_box(name: str, tip: str, least: int, most: int) -> QSpinBox:
    spin_box: QSpinBox = named(QSpinBox(), name, tip)
    spin_box.setRange(least, most)
    spin_box.setGroupSeparatorShown(False)
    return spin_box


def name_of(text: str) -> QLabel:
    """Return the label in front of a field."""
    return row_name(text, NAMES)

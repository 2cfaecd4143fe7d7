"""Figures and images of a review study, in which readers appear under pseudonymous codes."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Mask
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.features.review.io.share import Share
from napari_mamamia.features.review.io.store import EventStore
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.rules.states import CaseView
from napari_mamamia.features.review.services.agreement.agree import MaskPair
from napari_mamamia.features.review.services.compare import load_stored_mask
from napari_mamamia.io.files.sources import DataSet
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.scoring.report.figures import BLUE, GREY, ORANGE, VERMILION, new_figure
from napari_mamamia.scoring.report.gallery import CasePicture, picture_of
from napari_mamamia.services.case.open_case import open_case

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

_INK: Final = "#333333"
_FILL: Final = "#F3F7FA"


@dataclass(frozen=True, slots=True)
class FlowBox:
    """A box in a flow diagram, with a title, a number, and lines below."""

    title: str
    n: int
    lines: tuple[str, ...] = ()


def flow_diagram(whole: FlowBox, parts: Sequence[FlowBox]) -> "Figure":
    """Draw one box and, below it, the boxes into which its cases are divided, side by side."""
    from matplotlib.figure import Figure

    n_lines = max(len(part.lines) for part in parts)
    height_inches = 1.45 + 0.14 * n_lines
    figure = Figure(figsize=(1.45 * len(parts), height_inches), facecolor="w")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, len(parts))
    axes.set_ylim(height_inches, 0)
    middle, upper, lower = len(parts) / 2, 0.45, 0.8
    axes.add_patch(_make_box(middle - 0.6, 0.05, 1.2, upper - 0.05))
    axes.text(middle, 0.25, _say_box(whole), ha="center", va="center", fontsize=8)
    for index, part in enumerate(parts):
        axes.add_patch(_make_box(index + 0.03, lower, 0.94, height_inches - lower - 0.05))
        axes.annotate(
            "",
            (index + 0.5, lower),
            (middle, upper),
            arrowprops={"arrowstyle": "-|>", "color": _INK, "linewidth": 0.9},
        )
        axes.text(index + 0.5, lower + 0.08, _say_box(part), ha="center", va="top", fontsize=8)
        axes.text(
            index + 0.5,
            lower + 0.42,
            "\n".join(part.lines),
            ha="center",
            va="top",
            fontsize=7,
            color=_INK,
            linespacing=1.3,
        )
    return figure


def _say_box(box: FlowBox) -> str:
    return f"{box.title}\n{box.n:,}"


def _make_box(x: float, y: float, width: float, height: float) -> "FancyBboxPatch":
    from matplotlib.patches import FancyBboxPatch

    return FancyBboxPatch(
        (x, y),
        width,
        height,
        boxstyle="round,pad=0,rounding_size=0.04",
        facecolor=_FILL,
        edgecolor=_INK,
        linewidth=0.9,
    )


def dice_of_cases(values: Sequence[float], trigger: float | None) -> "Figure":
    """Plot the lowest Dice between readings of each case, ascending; a line marks the trigger."""
    from matplotlib.ticker import MaxNLocator

    figure, axes = new_figure((5.0, 2.7))
    ordered = np.sort(np.array(values, dtype=np.float64))
    colours = [VERMILION if trigger is not None and one < trigger else BLUE for one in ordered]
    axes.scatter(np.arange(1, len(ordered) + 1), ordered, c=colours, s=14)
    if trigger is not None:
        axes.axhline(trigger, color=GREY, linestyle="--", linewidth=1)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("case, lowest first")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("lowest Dice of two readings")
    return figure


def time_bars(classes: Sequence[str], counts: Sequence[int]) -> "Figure":
    """Plot a histogram of reading times in minutes."""
    from matplotlib.ticker import MaxNLocator

    figure, axes = new_figure((5.0, 2.7))
    axes.bar(range(len(classes)), counts, color=BLUE, width=0.8)
    axes.set_xticks(range(len(classes)), classes)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("active minutes")
    axes.set_ylabel("readings")
    return figure


def capture_curve(
    n_read: Sequence[int], n_errors: Sequence[int], n_cases: int, totals: tuple[float, float, float]
) -> "Figure":
    """Plot the errors found against the fraction of cases read.

    `totals` holds the estimated number of errors in all cases (drawn as a line) and the limits of
    its interval (drawn as a band); NaN values are not drawn.
    """
    from matplotlib.ticker import MaxNLocator

    figure, axes = new_figure((5.0, 3.1))
    axes.plot(
        np.array(n_read) / n_cases, n_errors, color=BLUE, linewidth=1.6, drawstyle="steps-post"
    )
    estimate, low, high = totals
    if not np.isnan(totals).any():
        axes.axhspan(low, high, color=ORANGE, alpha=0.15, linewidth=0)
        axes.axhline(estimate, color=ORANGE, linestyle="--", linewidth=1.2)
    axes.set_xlim(0, 1.02)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("proportion of cases read")
    axes.set_ylabel("errors found")
    return figure


MOST_PICTURES: Final = 12


@dataclass(frozen=True, slots=True, eq=False)
class DisputePicture:
    """An image of a case with the outlines of two readings: `first` in blue, `second` in orange."""

    picture: CasePicture
    first: str
    second: str
    dice: float


@dataclass(frozen=True, slots=True, eq=False)
class Gallery:
    """Images of disagreements, with the number of images that were omitted.

    `notes` give information; `failed` lists cases whose image is incomplete, with the reasons.
    """

    pictures: tuple[DisputePicture, ...] = ()
    n_left_out: int = 0
    notes: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def make_gallery(
    store: EventStore,
    state: ReviewState,
    pairs: Iterable[MaskPair],
    disputed: Sequence[str],
    images: Path | None,
    most: int = MOST_PICTURES,
    rank: Callable[[str], int] = lambda _: 0,
) -> Gallery:
    """Make an image of the two least similar readings of each disputed case, in order.

    Parameters
    ----------
    store, state
        The study and its state.
    pairs
        Compared readings.
    disputed
        Case ids.
    images
        The data set with the cases' images; if None, outlines are drawn on a grey background.
    most
        Maximum number of images.
    rank
        Function that returns a reader's rank; the reader with the lower rank is outlined in blue.
    """
    worst: dict[str, MaskPair] = {}
    for one in pairs:
        before = worst.get(one.case_id)
        if one.empty != "both" and (before is None or one.dsc < before.dsc):
            worst[one.case_id] = one
    chosen = [worst[case_id] for case_id in disputed if case_id in worst]
    data_set, notes, failed = _open_images(images)
    pictures = []
    for index, pair in enumerate(chosen[:most]):
        report_progress(index, min(len(chosen), most), f"Picture of {pair.case_id}")
        try:
            volume, why = _read_image(data_set, pair.case_id)
            first, second = sorted((pair.first, pair.second), key=rank)
            turned = replace(pair, first=first, second=second)
            pictures.append(_make_picture(store, state, turned, volume))
        except MamamiaError as error:
            why = f"{pair.case_id} has no picture: {error}"
        failed += [why] if why else []
    n_left_out = max(0, len(chosen) - most)
    return Gallery(tuple(pictures), n_left_out, tuple(notes), tuple(failed))


def _open_images(images: Path | None) -> tuple[DataSet | None, list[str], list[str]]:
    if images is None:
        return None, [], []
    try:
        return Share(images).run(_find_images), [], []
    except (FileNotFoundError, NotADirectoryError):
        return None, ["images are missing, because the data set has moved; choose its folder"], []
    except (MamamiaError, OSError) as error:
        return None, [], [f"images are missing: {error}"]


def _find_images(images: Path) -> DataSet:
    images.stat()
    return find_data_set(images)


def _read_image(data_set: DataSet | None, case_id: str) -> tuple[NDArray[Any] | None, str]:
    """Return a case's first post-contrast phase and "", or None and the reason."""
    if data_set is None:
        return None, ""
    try:
        case = Share(data_set.root).run(lambda _: open_case(data_set.case(case_id)))
    except (MamamiaError, OSError) as error:
        return None, f"{case_id} is shown without its image: {error}"
    shown = next(phase.index for phase in case.phases if phase.loaded)
    return case.signal[shown], ""


def _make_picture(
    store: EventStore, state: ReviewState, pair: MaskPair, volume: NDArray[Any] | None
) -> DisputePicture:
    view = state.case(state.study.case_of_id(pair.case_id).key)
    masks = [_find_mask(view, reader) for reader in (pair.first, pair.second)]
    loaded = [load_stored_mask(store, digest) for digest in masks]
    grid = next(one.grid for one in loaded if one is not None)
    first, second = (
        Mask(grid, np.zeros(grid.shape, dtype=np.bool_))
        if one is None
        else Mask(one.grid, one.array)
        for one in loaded
    )
    if volume is not None and volume.shape != grid.shape:
        volume = None
    picture = picture_of(pair.case_id, first, second, volume)
    return DisputePicture(picture, pair.first, pair.second, pair.dsc)


def _find_mask(view: CaseView, reader: str) -> str:
    readings = (
        reading for reading in view.readings if (reading.reader, reading.occasion) == (reader, 0)
    )
    return next(readings).mask


@dataclass(frozen=True, slots=True)
class ReaderLabels:
    """The label of each reader id, and the names to replace in texts."""

    labels: Mapping[str, str]
    words: Mapping[str, str]

    def call(self, reader_id: str) -> str:
        """Return the label for a reader id; return any other text unchanged."""
        return self.labels.get(reader_id, reader_id)

    def rank(self, reader_id: str) -> int:
        """Return a reader's rank in lists and pairs, which follows the reader codes."""
        return list(self.labels).index(reader_id) if reader_id in self.labels else len(self.labels)

    def hide(self, text: str) -> str:
        """Replace the ids and names of readers in a text with their labels.

        Whole words are replaced, ignoring letter case. Other text that could identify a reader is
        not changed.
        """
        if not self.words:
            return text
        either = "|".join(map(re.escape, sorted(self.words, key=len, reverse=True)))
        pattern = re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)
        return pattern.sub(lambda match: self.words[match.group().casefold()], text)


def make_labels(state: ReviewState, *, are_named: bool = False) -> ReaderLabels:
    """Return each reader's label: the name, or a random code that is fixed for the study.

    The order in the study would reveal the lead.
    """
    study = state.study
    if are_named:
        return ReaderLabels(
            {reader.reader_id: state.name(reader.reader_id) for reader in study.readers}, {}
        )
    order = sorted(
        study.readers,
        key=lambda reader: hashlib.sha256(
            f"{study.study_id}:{reader.reader_id}".encode()
        ).hexdigest(),
    )
    labels = {one.reader_id: f"R{number}" for number, one in enumerate(order, start=1)}
    words = {
        word.casefold(): labels[reader.reader_id]
        for reader in study.readers
        for word in (reader.reader_id, reader.name, state.name(reader.reader_id))
    }
    return ReaderLabels(labels, words)

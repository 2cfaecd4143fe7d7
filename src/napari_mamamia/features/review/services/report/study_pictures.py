"""Images of disagreements: both outlines on the slice with the largest difference."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Mask
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.features.review.io.share import Share
from napari_mamamia.features.review.io.store import EventStore
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.rules.views import CaseView
from napari_mamamia.features.review.services.agreement.mask_pairs import MaskPair
from napari_mamamia.features.review.services.compare import load_stored_mask
from napari_mamamia.io.files.sources import DataSet
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.scoring.report.gallery import CasePicture, picture_of
from napari_mamamia.services.case.open_case import open_case

MOST_PICTURES: Final = 12


@dataclass(frozen=True, slots=True, eq=False)
class DisputePicture:
    """An image of two readings of a case; `first` is outlined in blue, `second` in orange."""

    picture: CasePicture
    first: str
    second: str
    dice: float


@dataclass(frozen=True, slots=True, eq=False)
class Gallery:
    """Images of disagreements, and the number of omitted images.

    `notes` are informative; `failed` lists cases with an incomplete image and the reasons.
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
    """Return images of the two least similar readings of each disputed case, in order.

    Parameters
    ----------
    store, state
        The study and its state.
    pairs
        Compared readings.
    disputed
        Case ids.
    images
        The data set with the cases' images; without it, outlines are drawn on grey.
    most
        Maximum number of images.
    rank
        Rank of a reader; of two readers the lower rank is outlined in blue.
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
    """Open the data set; return notes and failures too. A moved data set is only a note."""
    if images is None:
        return None, [], []
    try:
        return Share(images).run(_find_images), [], []
    except (FileNotFoundError, NotADirectoryError):
        return None, ["images are missing: the data set has moved; name its folder"], []
    except (MamamiaError, OSError) as error:
        return None, [], [f"images are missing: {error}"]


def _find_images(images: Path) -> DataSet:
    images.stat()
    return find_data_set(images)


def _read_image(data_set: DataSet | None, case_id: str) -> tuple[NDArray[Any] | None, str]:
    """Return a case's first phase after contrast, or None and the reason."""
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

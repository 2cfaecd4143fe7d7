"""Find missing images that the headers of an exam announce, as after a partial copy.

Only certain losses are reported. Image numbers have gaps in complete exams too (Philips numbers
several images of each place, archives continue from one series to the next).
"""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from napari_mamamia.core.choices import Clock
from napari_mamamia.io.dicom.parts import Image
from napari_mamamia.io.dicom.slices import Slice

_FEWEST_PHASES: Final = 3
"""Least number of phases; between two phases a gap may be the scanner's numbering."""


def loss_warnings(
    images: Sequence[Image], slices: Sequence[Slice], stacks: Sequence[Sequence[Slice]]
) -> tuple[str, ...]:
    """Return a warning for each loss of images that the headers of an exam's series prove.

    Parameters
    ----------
    images
        All images of the study.
    slices
        Their planes, each once, used or not.
    stacks
        The planes of each phase.
    """
    by_series: dict[str, list[Slice]] = {}
    for image in slices:
        by_series.setdefault(image.header.series_uid, []).append(image)
    exam_uids = list(dict.fromkeys(stack[0].header.series_uid for stack in stacks))
    countable = {
        uid: pieces
        for uid, pieces in by_series.items()
        if not _is_partly_known(images, uid, pieces)
    }
    warnings = _check_images(countable, exam_uids)
    others = [uid for uid in exam_uids if uid in countable and uid not in warnings]
    gaps = [_check_numbers(countable[uid], len(stacks[0])) for uid in others]
    return (
        *_check_positions([by_series[uid] for uid in exam_uids]),
        *dict.fromkeys(warnings.values()),
        *(gap for gap in gaps if gap),
    )


def _is_partly_known(images: Sequence[Image], uid: str, own: Sequence[Slice]) -> bool:
    """Return whether a series has images that are not planes, or planes without a file."""
    others = (i.header for i in images if not isinstance(i, tuple))
    return any(plane.frame for plane in own) or any(h and h.series_uid == uid for h in others)


def _check_images(countable: dict[str, list[Slice]], exam_uids: Sequence[str]) -> dict[str, str]:
    """Return a warning for each series that has fewer images than ImagesInAcquisition.

    An acquisition may be one series or several: all series of the study with the same number are
    counted together.
    """
    promise = {uid: max(p.header.images for p in pieces) for uid, pieces in countable.items()}
    warnings = {}
    for uid in exam_uids:
        count, n_promised = len(countable.get(uid, ())), promise.get(uid, 0)
        if count >= n_promised:
            continue
        sharing = [
            len(pieces) for other, pieces in countable.items() if promise[other] == n_promised
        ]
        of_used = sum(len(countable[u]) for u in exam_uids if promise.get(u) == n_promised)
        is_shared = sum(sharing) > n_promised and n_promised % count == 0
        if is_shared or n_promised in (sum(sharing), of_used):
            continue
        pieces = countable[uid]
        warnings[uid] = (
            f"by its header {pieces[0].series_name} has {n_promised} images (ImagesInAcquisition), "
            f"but {count} are here{_describe_missing(_list_instances(pieces))}: check that the "
            "copy is "
            "complete"
        )
    return warnings


def _check_numbers(own: Sequence[Slice], n_slices: int) -> str:
    """Return a warning if the image numbers lack whole phases, else ""."""
    numbers = _list_instances(own)
    if len(numbers) < len(own) or len(numbers) < _FEWEST_PHASES * n_slices:
        return ""
    there = set(numbers)
    starts = [n for n in numbers if n - 1 not in there]
    ends = [n for n in numbers if n + 1 not in there]
    runs = [end - start + 1 for start, end in zip(starts, ends, strict=True)]
    gaps = [start - end - 1 for end, start in zip(ends, starts[1:], strict=False)]
    is_whole = all(length % n_slices == 0 for length in (*runs, *gaps))
    if not gaps or not is_whole or 2 * sum(gaps) > len(numbers) or max(runs) == n_slices:
        return ""
    return (
        f"the image numbers of {own[0].series_name} lack {sum(gaps) // n_slices} whole phase(s) of "
        f"{n_slices} slices{_describe_missing(numbers)}: check that the copy is complete"
    )


def _list_instances(own: Sequence[Slice]) -> list[int]:
    numbers = {plane.clocks.get(Clock.INSTANCE_NUMBER) for plane in own} - {None}
    return sorted(int(number) for number in numbers if number is not None)


def _describe_missing(numbers: Sequence[int]) -> str:
    """Return the image numbers that are missing inside a sequence, or ""."""
    gaps = [(a + 1, b - 1) for a, b in pairwise(numbers) if b > a + 1]
    spans = [f"{a} to {b}" if b > a else f"{a}" for a, b in gaps[:4]]
    more = ", ..." * (len(gaps) > len(spans))
    return f" (missing InstanceNumbers: {', '.join(spans)}{more})" if spans else ""


def _check_positions(series: Sequence[Sequence[Slice]]) -> list[str]:
    """Return a warning for series with fewer temporal positions than announced.

    Series of one position each are counted together.
    """
    of_one: dict[int, list[Slice]] = {}
    warnings = []
    for pieces in series:
        promise = max(image.header.positions for image in pieces)
        numbers = _list_identifiers(pieces)
        n_shown = max(len(numbers), max(Counter(image.position_mm for image in pieces).values()))
        if n_shown == 1:
            of_one.setdefault(promise, []).append(pieces[0])
        else:
            warnings.append(_describe_absent(pieces[0].series_name, promise, n_shown, numbers))
    for promise, firsts in of_one.items():
        names = " and ".join(first.series_name for first in firsts)
        warnings.append(_describe_absent(names, promise, len(firsts), _list_identifiers(firsts)))
    return [sentence for sentence in warnings if sentence]


def _list_identifiers(pieces: Sequence[Slice]) -> set[float]:
    numbers = (image.clocks.get(Clock.TEMPORAL_POSITION) for image in pieces)
    return {number for number in numbers if number is not None}


def _describe_absent(names: str, promise: int, n_shown: int, numbers: Collection[float]) -> str:
    """Return the warning about missing positions, or "" if none is missing."""
    losses = [k for k in range(1, promise + 1) if k not in numbers]
    if n_shown < promise:
        which = f" (missing: {', '.join(map(str, losses))})" if len(losses) < promise else ""
        return (
            f"by its header {names} has {promise} temporal positions (NumberOfTemporalPositions), "
            f"but images of {n_shown} are here{which}: check that the copy is complete"
        )
    inside = _find_jumps(sorted(numbers))
    if promise or not inside:
        return ""
    return (
        f"the temporal positions of {names} (TemporalPositionIdentifier) lack "
        f"{', '.join(map(str, inside))}: check that the copy is complete"
    )


def _find_jumps(numbers: Sequence[float]) -> list[int]:
    """Return the numbers missing in a mostly continuous sequence."""
    steps = [b - a for a, b in pairwise(numbers)]
    if not steps or median(steps) != 1:
        return []
    inside = range(int(numbers[0]), int(numbers[-1]))
    return [number for number in inside if number not in numbers]

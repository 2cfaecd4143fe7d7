"""Images that the headers of an exam promise and that did not come: a copy that is not whole.

Only what cannot be otherwise is told. Numbers of images jump in whole exams too (Philips numbers
several images of each place, archives go on from one series to the next).
"""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from napari_mamamia.io.dicom.parts import Image
from napari_mamamia.io.dicom.slices import Clock, Slice

__all__ = ["loss_warnings"]

_FEWEST_PHASES: Final = 3
"""Between two phases nobody knows whether a gap of numbers is a loss or how the scanner counts."""


def loss_warnings(
    images: Sequence[Image], slices: Sequence[Slice], stacks: Sequence[Sequence[Slice]]
) -> tuple[str, ...]:
    """Return a sentence for each loss that the headers of an exam's series prove.

    Parameters
    ----------
    images
        All of the study.
    slices
        Their planes, each once, whatever became of them.
    stacks
        The planes of each phase.
    """
    by_series: dict[str, list[Slice]] = {}
    for piece in slices:
        by_series.setdefault(piece.header.series_uid, []).append(piece)
    used = list(dict.fromkeys(stack[0].header.series_uid for stack in stacks))
    counted = {uid: own for uid, own in by_series.items() if not _is_partly_known(images, uid, own)}
    told = _images(counted, used)
    known = [uid for uid in used if uid in counted and uid not in told]
    gaps = [_numbers(counted[uid], len(stacks[0])) for uid in known]
    return (
        *_positions([by_series[uid] for uid in used]),
        *dict.fromkeys(told.values()),
        *(gap for gap in gaps if gap),
    )


def _is_partly_known(images: Sequence[Image], uid: str, own: Sequence[Slice]) -> bool:
    """Whether a series has images that are no planes, or planes that are no files."""
    others = (i.header for i in images if not isinstance(i, tuple))
    return any(piece.frame for piece in own) or any(h and h.series_uid == uid for h in others)


def _images(counted: dict[str, list[Slice]], used: Sequence[str]) -> dict[str, str]:
    """Return a sentence for each series that has fewer images than ImagesInAcquisition.

    An acquisition may be one series, or stand in several: then all of the study that promise the
    same are counted together.
    """
    promised = {uid: max(p.header.images for p in own) for uid, own in counted.items()}
    told = {}
    for uid in used:
        count, wanted = len(counted.get(uid, ())), promised.get(uid, 0)
        if count >= wanted:
            continue
        sharing = [len(own) for other, own in counted.items() if promised[other] == wanted]
        of_used = sum(len(counted[u]) for u in used if promised.get(u) == wanted)
        is_shared = sum(sharing) > wanted and wanted % count == 0
        if is_shared or wanted in (sum(sharing), of_used):
            continue
        own = counted[uid]
        told[uid] = (
            f"by its header {own[0].series_name} has {wanted} images (ImagesInAcquisition), but "
            f"{count} are here{_missing(_instances(own))}: is the copy whole?"
        )
    return told


def _numbers(own: Sequence[Slice], n_slices: int) -> str:
    """Return a sentence where image numbers lack whole phases among whole phases, else ""."""
    numbers = _instances(own)
    if len(numbers) < len(own) or len(numbers) < _FEWEST_PHASES * n_slices:
        return ""
    starts = [n for n in numbers if n - 1 not in numbers]
    ends = [n for n in numbers if n + 1 not in numbers]
    runs = [end - start + 1 for start, end in zip(starts, ends, strict=True)]
    gaps = [start - end - 1 for end, start in zip(ends, starts[1:], strict=False)]
    is_whole = all(length % n_slices == 0 for length in (*runs, *gaps))
    if not gaps or not is_whole or 2 * sum(gaps) > len(numbers) or max(runs) == n_slices:
        return ""
    return (
        f"the image numbers of {own[0].series_name} lack {sum(gaps) // n_slices} whole phase(s) of "
        f"{n_slices} slices{_missing(numbers)}: is the copy whole?"
    )


def _instances(own: Sequence[Slice]) -> list[int]:
    found = {piece.clocks.get(Clock.INSTANCE_NUMBER) for piece in own} - {None}
    return sorted(int(number) for number in found if number is not None)


def _missing(numbers: Sequence[int]) -> str:
    """Return the image numbers that are missing inside a row of them, "" where none is."""
    gaps = [(a + 1, b - 1) for a, b in pairwise(numbers) if b > a + 1]
    told = [f"{a} to {b}" if b > a else f"{a}" for a, b in gaps[:4]]
    more = ", ..." * (len(gaps) > len(told))
    return f" (missing InstanceNumbers: {', '.join(told)}{more})" if told else ""


def _positions(series: Sequence[Sequence[Slice]]) -> list[str]:
    """Return a sentence where series have fewer temporal positions than they say, or lack one.

    Series of one position each are counted together.
    """
    of_one: dict[int, list[Slice]] = {}
    told = []
    for own in series:
        promised = max(piece.header.positions for piece in own)
        known = _identifiers(own)
        n_shown = max(len(known), max(Counter(piece.position_mm for piece in own).values()))
        if n_shown == 1:
            of_one.setdefault(promised, []).append(own[0])
        else:
            told.append(_absent(own[0].series_name, promised, n_shown, known))
    for promised, firsts in of_one.items():
        names = " and ".join(piece.series_name for piece in firsts)
        told.append(_absent(names, promised, len(firsts), _identifiers(firsts)))
    return [sentence for sentence in told if sentence]


def _identifiers(pieces: Sequence[Slice]) -> set[float]:
    found = (piece.clocks.get(Clock.TEMPORAL_POSITION) for piece in pieces)
    return {number for number in found if number is not None}


def _absent(names: str, promised: int, n_shown: int, known: Collection[float]) -> str:
    """Return the sentence, "" where nothing is absent."""
    lost = [k for k in range(1, promised + 1) if k not in known]
    if n_shown < promised:
        which = f" (missing: {', '.join(map(str, lost))})" if len(lost) < promised else ""
        return (
            f"by its header {names} has {promised} temporal positions (NumberOfTemporalPositions), "
            f"but images of {n_shown} are here{which}: is the copy whole?"
        )
    inside = _jumps(sorted(known))
    if promised or not inside:
        return ""
    return (
        f"the temporal positions of {names} (TemporalPositionIdentifier) lack "
        f"{', '.join(map(str, inside))}: is the copy whole?"
    )


def _jumps(known: Sequence[float]) -> list[int]:
    """Return the numbers missing among some that mostly follow each other."""
    steps = [b - a for a, b in pairwise(known)]
    if not steps or median(steps) != 1:
        return []
    inside = range(int(known[0]), int(known[-1]))
    return [number for number in inside if number not in known]

"""Find the last pre-contrast phase, time gaps, and second injections in ordered phases.

By their headers, an aborted and a repeated dynamic series, or a repeated pre-contrast scan, are one
acquisition. Only the pixels show when contrast arrived.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import Clock
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.io.dicom.clocks import span_text, use_clock
from napari_mamamia.io.dicom.parts import Part
from napari_mamamia.io.dicom.remedies import leave_out, leave_out_each, use_series
from napari_mamamia.io.dicom.roles import PHASES, Role
from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.exam.acquisitions import Acquisition, Volume, is_same_place
from napari_mamamia.io.exam.looks import CONTRAST, Contrast, Looks, enhancement, gain_between

ULTRAFAST_GAP_S: Final = 20.0
"""Gap in s below which phases form an ultrafast series with several pre-contrast phases."""
_LONG: Final = 3.0
"""Multiple of the usual gap that separates two runs of a dynamic series."""
_MISSING: Final = 1.7
"""Multiple of the usual gap above which a phase may be missing."""


_LEAST_GAIN: Final = 0.2
"""Smallest equal brightening of air and body that counts as a gain change (our choice).

Ghosts brighten air by up to 16 %, and a quarter of the body by 0 % in ISPY1_1002.
"""
_MOST_REMEDIES: Final = 4
_CONVERT: Final = "convert the exam to NIfTI with the phases in the right order, or"
_NEVER: Final = (
    "no contrast arrives between any two phases: check whether the pre-contrast series is "
    "missing, or whether no contrast was given"
)


_UNCLEAR: Final = (
    "the pixels do not show clearly whether and when contrast arrives, so all phases were kept, "
    "with the first phase as pre-contrast: check the phases; at most "
)


@dataclass(frozen=True, slots=True)
class Run:
    """The phases of a dynamic series, starting with the pre-contrast phase `first`.

    `evidence` gives the reason. No contrast arrives before `first`. `warning` is not empty if no
    contrast arrives at all.
    """

    first: int = 0
    evidence: str = ""
    warning: str = ""


def find_run(
    stacks: Sequence[Sequence[Slice]],
    times_s: Sequence[float] | None,
    looks: Looks,
    name: str,
    clocks: Sequence[Clock] = (),
) -> Run:
    """Return the run of phases that enhance relative to their own pre-contrast phase.

    Parameters
    ----------
    stacks
        The planes of each phase.
    times_s
        Time of each phase in seconds, or None if unknown.
    looks
        The planes that were read so far.
    name
        Name of the exam or series, for messages.
    clocks
        Clocks that would order the phases differently.

    Raises
    ------
    CaseError
        If contrast was injected twice, or if it is unclear whether contrast arrived and the
        pre-contrast phase depends on it.
    """
    _require_one_injection(stacks, times_s, looks, name)
    _require_contrast_to_stay(stacks, looks, name, clocks)
    if len(stacks) < 3 or _is_ultrafast(times_s):
        return Run()
    seen = [looks.contrast(stacks[0], stack) for stack in stacks[1:]]
    steps = [looks.contrast(a, b) for a, b in pairwise(stacks)]
    came = next(
        (k for k, both in enumerate(zip(seen, steps, strict=True)) if set(both) == {Contrast.CAME}),
        None,
    )
    if came == 0:
        return Run()
    if came is None and seen[0] is not Contrast.NONE:
        most = max(looks.enhancement(stacks[0], stack) for stack in stacks[1:])
        return Run(warning=f"{_UNCLEAR}{most:.1%} of the body enhances")
    if came is None and set(seen) == {Contrast.NONE}:
        return Run(warning=_NEVER)
    if came is None or set(seen[:came]) != {Contrast.NONE}:
        until = len(seen) if came is None else came + 1
        shares = ", ".join(f"{looks.enhancement(stacks[0], s):.1%}" for s in stacks[1 : until + 1])
        raise CaseError(
            f"expected contrast to arrive between the first two phases of {name}, but {shares} of "
            f"the body enhances from phase 0 to phases 1 to {until}, so the last pre-contrast "
            "phase is unclear: check the phases, and keep all of them, or leave out those before "
            "the last pre-contrast phase",
            remedies=[
                _keep_all(stacks),
                *leave_out_each(
                    (stacks[:first] for first in range(1, min(until, _MOST_REMEDIES))), stacks
                ),
            ],
        )
    return Run(came, f"no contrast before phase {came + 1} of {len(stacks)} in the pixels")


def _keep_all(stacks: Sequence[Sequence[Slice]]) -> Remedy:
    roles = [*dict.fromkeys(stack[0].kind.role for stack in stacks), Role.EARLIER_PRE]
    return Remedy("use", (f"role={','.join(roles)}",))


def gap_warnings(times_s: Sequence[float] | None) -> tuple[str, ...]:
    """Return a warning for each gap in which a phase may be missing.

    The first gap, in which contrast is injected, may have any length.
    """
    if times_s is None or len(times_s) < 4:
        return ()
    gaps = [b - a for a, b in pairwise(times_s)]
    usual = float(np.median(gaps[1:]))
    return tuple(
        f"there are {span_text(gap)} between phases {k + 1} and {k + 2} of {len(times_s)}, but "
        f"usually {np.median([*gaps[1:k], *gaps[k + 1 :]]):g} s: check whether a phase is "
        "missing there"
        for k, gap in enumerate(gaps)
        if k and gap >= _MISSING * usual
    )


def gain_warnings(stacks: Sequence[Sequence[Slice]], looks: Looks) -> tuple[str, ...]:
    """Return a warning if air and body are equally brighter in some phases than in phase 0."""
    first = looks.blocks(stacks[0])
    gains = [gain_between(first, looks.blocks(stack), _LEAST_GAIN) for stack in stacks]
    gains = [max(gain, 1.0) for gain in gains]
    if max(gains) == 1.0:
        return ()
    return (
        (
            f"{_describe_gains(gains)}, so enhancement may be too large by this factor: check the "
            "images, and the scaling and receiver gain in their headers"
        ),
    )


def lost_pre_warnings(
    stacks: Sequence[Sequence[Slice]], like: Part, gone: Sequence[Part], looks: Looks
) -> tuple[str, ...]:
    """Return a warning if the user left out a scan from before the contrast in phase 0.

    `gone` are all parts that the selectors left out. Parts acquired after phase 0, or at a position
    other than that of `like`, are ignored.
    """
    volumes = [volume for part in gone if is_same_place(part, like) for volume in _volumes_of(part)]
    before = [volume for volume in volumes if _lacks_contrast(volume.stack, stacks[0], looks)]
    if not before:
        return ()
    names = " and ".join(dict.fromkeys(_phase_name(volume.stack[0]) for volume in before))
    return (
        (
            f"{names} was left out, as requested, but contrast arrived between it and phase 0, so "
            "phase 0 is not pre-contrast, and all enhancement is measured against an enhanced "
            "phase"
        ),
    )


def _volumes_of(part: Part) -> list[Volume]:
    return Acquisition((part,)).volumes if part.role in PHASES else []


def _lacks_contrast(gone: Sequence[Slice], first: Sequence[Slice], looks: Looks) -> bool:
    starts = [stack[0].clocks.get(Clock.ACQUISITION_TIME) for stack in (gone, first)]
    if starts[0] is None or starts[1] is None:
        return looks.contrast(gone, first) is Contrast.CAME
    if starts[0] >= starts[1]:
        return False
    came = looks.contrast(gone, first)
    return came is Contrast.CAME or (
        came is Contrast.UNCLEAR and looks.enhancement(gone, first) > 0
    )


def _phase_name(piece: Slice) -> str:
    return f"phase {piece.phase} of {piece.header.label}"


def _require_one_injection(
    stacks: Sequence[Sequence[Slice]],
    times_s: Sequence[float] | None,
    looks: Looks,
    name: str,
) -> None:
    all_starts = (stack[0].header.contrast_start_s for stack in stacks)
    starts = {start for start in all_starts if start is not None}
    if len(starts) > 1:
        raise CaseError(
            f"expected only one injection in {name}, but its phases have {len(starts)} injection "
            "times (ContrastBolusStartTime): leave out the other runs",
            remedies=leave_out_each(
                (
                    [s for s in stacks if s[0].header.contrast_start_s not in (None, start)]
                    for start in sorted(starts)
                ),
                stacks,
            ),
        )
    if times_s is None or len(stacks) < 4:
        return
    gaps = np.diff(times_s)
    usual = float(np.median(gaps))
    for index in (int(k) + 1 for k in np.flatnonzero(gaps > _LONG * usual)):
        first, second = stacks[:index], stacks[index:]
        if len(first) < 2 or len(second) < 2:
            continue
        if not _has_enhancement(first, looks):
            continue
        if _has_enhancement(second, looks) or _has_enhancement((first[-1], *second), looks):
            raise CaseError(
                f"expected only one injection in {name}, but contrast arrives among the first "
                f"{index} phases and, {span_text(gaps[index - 1])} later, again in the other "
                f"{len(second)}: leave out one run",
                remedies=leave_out_each((second, first), stacks),
            )


def _require_contrast_to_stay(
    stacks: Sequence[Sequence[Slice]], looks: Looks, name: str, clocks: Sequence[Clock]
) -> None:
    blocks = [looks.blocks(stack) for stack in stacks]
    came, gone, has_fallen = _find_departures(blocks)
    if not gone:
        return
    gains = [gain_between(blocks[0], other) for other in blocks]
    evened = [block / np.float32(gain) for block, gain in zip(blocks, gains, strict=True)]
    is_measured = not looks.borrowed(stacks).volumes and not looks.sliding(stacks)
    if is_measured and not _find_departures(evened)[1]:
        raise _other_gain(stacks, gains, name)
    index = gone[0]
    remedies = [use_clock(clock) for clock in clocks]
    first = _begin_of_whole(stacks, index, looks) if has_fallen else 0
    if not first:
        remedies += leave_out([stacks[k] for k in gone], stacks)
    remedies += leave_out(stacks[: first or index], stacks)
    clock = "choose the correct clock, or" if clocks else _CONVERT
    raise CaseError(
        f"expected contrast to arrive and stay in {name}, but phase {index} looks pre-contrast, "
        f"although it follows phase {0 if has_fallen else came}: the order is wrong, or a second "
        f"run or copies follow the first run; {clock} leave out the wrong phases",
        remedies=remedies,
    )


def _find_departures(blocks: Sequence[NDArray[np.float32]]) -> tuple[int, list[int], bool]:
    rises = [enhancement(blocks[0], other) for other in blocks]
    came = next((k for k, rise in enumerate(rises) if rise >= CONTRAST), len(rises))
    falls = [k for k, rise in enumerate(rises) if rise <= -CONTRAST]
    gone = [
        k
        for k in range(came + 1, len(rises))
        if rises[k] < CONTRAST and enhancement(blocks[came], blocks[k]) <= -CONTRAST
    ]
    return came, falls or gone, bool(falls)


def _other_gain(stacks: Sequence[Sequence[Slice]], gains: Sequence[float], name: str) -> CaseError:
    odd = [k for k, gain in enumerate(gains) if gain != 1.0]
    remedies = [use_series(stacks)]
    if len(odd) == 1:
        remedies += leave_out([stacks[odd[0]]], stacks)
    return CaseError(
        f"expected the same brightness in all phases of {name}, but {_describe_gains(gains)}: "
        "without scaling, this signal cannot be compared with that of phase 0; choose the series "
        "to use the values unchanged, or leave out the phases that were not measured",
        remedies=remedies,
    )


def _describe_gains(gains: Sequence[float]) -> str:
    odd = [k for k, gain in enumerate(gains) if gain != 1.0]
    least, most = (f"{pick(gains[k] for k in odd):.2g}" for pick in (min, max))
    factor = least if least == most else f"{least} to {most}"
    phases = f"phase {odd[0]} is" if len(odd) == 1 else f"phases {', '.join(map(str, odd))} are"
    return (
        f"{phases} about {factor} times as bright as phase 0 in both air and body, possibly "
        "because the receiver gain changed or the phases were computed"
    )


def _begin_of_whole(stacks: Sequence[Sequence[Slice]], until: int, looks: Looks) -> int:
    """Return the phase after which contrast arrives and stays, up to `until`; 0 if none.

    The phases before it do not belong to the run: a scan without fat saturation, or post-contrast
    images.
    """
    for first in range(1, until + 1):
        rises = [looks.enhancement(stacks[first], stack) for stack in stacks[first + 1 :]]
        if rises and max(rises) >= CONTRAST and min(rises) > -CONTRAST and rises[-1] >= CONTRAST:
            return first
    return 0


def _has_enhancement(stacks: Sequence[Sequence[Slice]], looks: Looks) -> bool:
    return any(looks.enhancement(stacks[0], stack) >= CONTRAST for stack in stacks[1:])


def _is_ultrafast(times_s: Sequence[float] | None) -> bool:
    return times_s is not None and float(np.median(np.diff(times_s))) < ULTRAFAST_GAP_S

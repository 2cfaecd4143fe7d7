"""`FeatureImages`: the images that a brush compares, each with its noise.

Nothing is stored but the case's own signal: features are computed for the box in hand, so that
integers stay integers and five phases of a large case cost no further memory.
"""

from dataclasses import dataclass, replace
from math import frexp, isfinite
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.edits import Features
from napari_mamamia.core.progress import report_progress
from napari_mamamia.kinetics.timing import choose_image_phases
from napari_mamamia.smartpaint.brush.noise import noise_of

POST: Final = "post"
POST_PRE: Final = "post - pre"
LATE_POST: Final = "late - post"
IMAGE: Final = "image"
"""Name of the one feature of a case without a phase after contrast."""

_WANTED: Final = {
    Features.POST: (POST, IMAGE),
    Features.SUBTRACTION: (POST_PRE,),
    Features.ALL: (POST, POST_PRE, LATE_POST, IMAGE),
}

_MOST_EXPONENT: Final = 40
"""Noise beyond 2 to this power, or below its inverse, is scaled: float32 holds 127."""


@dataclass(frozen=True, slots=True)
class Channel:
    """One feature: phase `plus`, less phase `minus` where that is given.

    `noise` is the standard deviation of the feature by noise alone, in the signal's unit times
    `scale`, above 0. The feature is multiplied by `scale`, a power of 2, so that squares of very
    large or small values stay numbers; 1 for all others.
    """

    name: str
    plus: int
    minus: int | None
    noise: float
    scale: float = 1.0

    @property
    def is_sound(self) -> bool:
        """Whether something can be compared with its noise."""
        return isfinite(self.noise) and self.noise > 0


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class FeatureImages:
    """The features of one case.

    Parameters
    ----------
    case
        Read, never changed.
    channels
        At least one.
    missing
        Plain sentences about features that the case cannot give; empty where all are there.
    """

    case: Case
    channels: tuple[Channel, ...]
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Leave out channels whose noise is no number above 0, and say so.

        Where all are like that they stay, each with a noise of 1.
        """
        sound = tuple(channel for channel in self.channels if channel.is_sound)
        if len(sound) == len(self.channels):
            return
        names = ", ".join(channel.name for channel in self.channels if not channel.is_sound)
        message = f"the noise of {names} is not known: the brush does without"
        channels = sound or tuple(replace(channel, noise=1.0) for channel in self.channels)
        object.__setattr__(self, "channels", channels)
        object.__setattr__(self, "missing", (*self.missing, message))

    @property
    def names(self) -> tuple[str, ...]:
        """What is compared, in the field's words: "post", "post - pre", "late - post"."""
        return tuple(channel.name for channel in self.channels)

    @property
    def noise(self) -> tuple[float, ...]:
        """Noise of each feature, one standard deviation in the signal's unit."""
        return tuple(channel.noise for channel in self.channels)

    def in_box(self, box: Box) -> NDArray[np.float32]:
        """Return the features inside `box` as a new float32 array ``(feature, z, y, x)``.

        NaN and infinity of the signal pass through.
        """
        out = np.empty((len(self.channels), *box.shape), dtype=np.float32)
        for plane, channel in zip(out, self.channels, strict=True):
            self.fill(channel, box, plane)
        return out

    def fill(self, channel: Channel, box: Box, out: NDArray[np.float32]) -> None:
        """Write one feature inside `box` into `out`, an array of the box's shape."""
        slices = box.slices
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            # In float32 before anything is subtracted: unsigned integers would wrap.
            np.copyto(out, self.case.signal[channel.plus][slices], casting="same_kind")
            if channel.minus is not None:
                earlier = self.case.signal[channel.minus][slices]
                np.subtract(out, earlier, out=out, dtype=np.float32, casting="same_kind")
            if channel.scale != 1:
                np.multiply(out, channel.scale, out=out, casting="same_kind")

    def choose(self, wanted: Features) -> "FeatureImages":
        """Return the same measurements with the features of `wanted` alone.

        Where none of them is there, all stay and `missing` says so: a brush must compare something.
        """
        names = _WANTED[wanted]
        channels = tuple(channel for channel in self.channels if channel.name in names)
        if len(channels) == len(self.channels):
            return self
        if channels:
            return replace(self, channels=channels)
        message = f"no {' or '.join(names)} here: the brush compares {', '.join(self.names)}"
        return replace(self, missing=tuple(dict.fromkeys((*self.missing, message))))


def measure_features(case: Case, wanted: Features = Features.ALL) -> FeatureImages:
    """Measure the noise of the wanted features of `case`.

    "Post" is the phase nearest to 150 s, "late" the one nearest to 450 s, as `choose_image_phases`
    picks them. A case of one phase has one feature, its image. The noise is measured on a
    bounded sample, see `noise.noise_of`.

    Raises
    ------
    CaseError
        If the case is still opening.
    """
    case.require_phases(1)
    plans, missing = _plan_channels(case)
    named = [plan for plan in plans if plan.name in _WANTED[wanted]] or plans
    channels = []
    for number, plan in enumerate(named):
        report_progress(number, len(named), f"Measuring the noise of {plan.name}")
        channel, problem = _measure_channel(case, plan)
        channels += [channel] if channel is not None else []
        missing += (problem,) if problem else ()
    if not channels:
        other = _choose_any(case)
        channels = [other or replace(named[0], noise=1.0)]
        missing += (
            "no phase has a value: strokes act like a plain sphere"
            if other is None
            else f"the brush compares the image of phase {other.plus} alone",
        )
    report_progress(len(named), len(named), "Measured the noise")
    images = FeatureImages(case, tuple(channels), missing)
    return images if len(channels) < len(named) else images.choose(wanted)


def _measure_channel(case: Case, plan: Channel) -> tuple[Channel | None, str]:
    """Return a feature with its noise, None where it has no value, and what to say of it."""
    plus, minus = case.signal[plan.plus], None if plan.minus is None else case.signal[plan.minus]
    measured = noise_of(plus, minus, case.grid.spacing_mm)
    if not measured.found and not _has_values(plus, minus):
        return None, f"{plan.name} has no value anywhere: it is left out"
    exponent = frexp(measured.sigma)[1]
    scale = 2.0**-exponent if abs(exponent) > _MOST_EXPONENT else 1.0
    problem = f"{plan.name} shows no noise: differences count against its whole range"
    channel = replace(plan, noise=measured.sigma * scale, scale=scale)
    return channel, "" if measured.found else problem


def _choose_any(case: Case) -> Channel | None:
    """Return the first phase with values as the one feature; None where no phase has any."""
    plans = (Channel(IMAGE, number, None, 1.0) for number in range(len(case.phases)))
    channels = (_measure_channel(case, plan)[0] for plan in plans)
    return next((channel for channel in channels if channel is not None), None)


def _has_values(plus: NDArray[Any], minus: NDArray[Any] | None) -> bool:
    """Whether a feature is a number anywhere, as float32; looked at slice by slice."""
    with np.errstate(all="ignore"):
        for number, plane in enumerate(plus):
            values = plane.astype(np.float32)
            if minus is not None:
                values -= minus[number].astype(np.float32)
            if np.isfinite(values).any():
                return True
    return False


def _plan_channels(case: Case) -> tuple[list[Channel], tuple[str, ...]]:
    """Return the features that the case can give, without their noise, and what is missing."""
    if len(case.phases) == 1:
        return [Channel(IMAGE, 0, None, 0.0)], (
            "one phase only: the brush compares its signal, there is nothing to subtract",
        )
    choice = choose_image_phases(case)
    plans = [Channel(POST, choice.early, None, 0.0), Channel(POST_PRE, choice.early, 0, 0.0)]
    if choice.late is None:
        return plans, ("no late phase: the brush compares 2 features",)
    return [*plans, Channel(LATE_POST, choice.late, choice.early, 0.0)], ()

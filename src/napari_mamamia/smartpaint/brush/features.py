"""The images that a brush compares, each with its noise (`FeatureImages`).

Only the case's own signal is stored. Features are computed for one box at a time, so integers
remain integers and five phases of a large case need no additional memory.
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
"""Name of the only feature of a case without a post-contrast phase."""

_WANTED: Final = {
    Features.POST: (POST, IMAGE),
    Features.SUBTRACTION: (POST_PRE,),
    Features.ALL: (POST, POST_PRE, LATE_POST, IMAGE),
}

_MOST_EXPONENT: Final = 40
"""Largest absolute power of 2 by which noise may be scaled; float32 can hold up to 127."""


@dataclass(frozen=True, slots=True)
class Channel:
    """One feature: the signal of phase `plus`, minus that of phase `minus` unless `minus` is None.

    `noise` is the standard deviation of the feature's noise, in the signal's unit times `scale`,
    and above 0. The feature is multiplied by `scale`, a power of 2, so that squares of very large
    or very small values remain finite; for ordinary values, `scale` is 1.
    """

    name: str
    plus: int
    minus: int | None
    noise: float
    scale: float = 1.0

    @property
    def is_sound(self) -> bool:
        """Whether the noise is finite and above 0, so that values can be compared with it."""
        return isfinite(self.noise) and self.noise > 0


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class FeatureImages:
    """The features of one case that a brush compares.

    Parameters
    ----------
    case
        The case, which is never changed.
    channels
        At least one feature.
    missing
        Sentences about features that the case does not have; empty if it has all features.
    """

    case: Case
    channels: tuple[Channel, ...]
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Remove features without a noise above 0, and list these features in `missing`.

        If no feature has a noise above 0, all features are kept with a noise of 1.
        """
        sound = tuple(channel for channel in self.channels if channel.is_sound)
        if len(sound) == len(self.channels):
            return
        names = ", ".join(channel.name for channel in self.channels if not channel.is_sound)
        message = f"the noise of {names} is unknown: the brush ignores it"
        channels = sound or tuple(replace(channel, noise=1.0) for channel in self.channels)
        object.__setattr__(self, "channels", channels)
        object.__setattr__(self, "missing", (*self.missing, message))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features compared: "post", "post - pre", "late - post"."""
        return tuple(channel.name for channel in self.channels)

    @property
    def noise(self) -> tuple[float, ...]:
        """Noise of each feature: one standard deviation in the signal's unit."""
        return tuple(channel.noise for channel in self.channels)

    def in_box(self, box: Box) -> NDArray[np.float32]:
        """Return the features inside `box` as a new float32 array ``(feature, z, y, x)``.

        NaN and infinity in the signal are not changed.
        """
        out = np.empty((len(self.channels), *box.shape), dtype=np.float32)
        for plane, channel in zip(out, self.channels, strict=True):
            self.fill(channel, box, plane)
        return out

    def fill(self, channel: Channel, box: Box, out: NDArray[np.float32]) -> None:
        """Write one feature inside `box` into `out`, an array of the box's shape."""
        slices = box.slices
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            # The signal is converted to float32 before subtraction, because unsigned integers
            # would wrap.
            np.copyto(out, self.case.signal[channel.plus][slices], casting="same_kind")
            if channel.minus is not None:
                earlier = self.case.signal[channel.minus][slices]
                np.subtract(out, earlier, out=out, dtype=np.float32, casting="same_kind")
            if channel.scale != 1:
                np.multiply(out, channel.scale, out=out, casting="same_kind")

    def choose(self, wanted: Features) -> "FeatureImages":
        """Return the same measurements, limited to the features named in `wanted`.

        If the case has none of these features, all features are kept and `missing` states this,
        because a brush needs at least one feature.
        """
        names = _WANTED[wanted]
        channels = tuple(channel for channel in self.channels if channel.name in names)
        if len(channels) == len(self.channels):
            return self
        if channels:
            return replace(self, channels=channels)
        message = (
            f"this case has no {' or '.join(names)}: the brush compares {', '.join(self.names)}"
        )
        return replace(self, missing=tuple(dict.fromkeys((*self.missing, message))))


def measure_features(case: Case, wanted: Features = Features.ALL) -> FeatureImages:
    """Measure the noise of the required features of `case`.

    "Post" is the phase nearest to 150 s and "late" is the phase nearest to 450 s, as selected by
    `choose_image_phases`. A case with one phase has one feature, its image. The noise is measured
    on a bounded sample; see `noise.noise_of`.

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
            "no phase has a finite value, so strokes act like a plain sphere"
            if other is None
            else f"the brush compares only the image of phase {other.plus}",
        )
    report_progress(len(named), len(named), "Measured the noise")
    images = FeatureImages(case, tuple(channels), missing)
    return images if len(channels) < len(named) else images.choose(wanted)


def _measure_channel(case: Case, plan: Channel) -> tuple[Channel | None, str]:
    """Return a feature with its noise (None if it has no values), and a note about it."""
    plus, minus = case.signal[plan.plus], None if plan.minus is None else case.signal[plan.minus]
    measured = noise_of(plus, minus, case.grid.spacing_mm)
    if not measured.found and not _has_values(plus, minus):
        return None, f"{plan.name} has no values and is not used"
    exponent = frexp(measured.sigma)[1]
    scale = 2.0**-exponent if abs(exponent) > _MOST_EXPONENT else 1.0
    problem = (
        f"{plan.name} has no measurable noise, so differences are compared with its whole range"
    )
    channel = replace(plan, noise=measured.sigma * scale, scale=scale)
    return channel, "" if measured.found else problem


def _choose_any(case: Case) -> Channel | None:
    plans = (Channel(IMAGE, number, None, 1.0) for number in range(len(case.phases)))
    channels = (_measure_channel(case, plan)[0] for plan in plans)
    return next((channel for channel in channels if channel is not None), None)


def _has_values(plus: NDArray[Any], minus: NDArray[Any] | None) -> bool:
    """Return whether the difference of two phases, or a single phase, has a finite float32 value.

    The phases are read slice by slice.
    """
    with np.errstate(all="ignore"):
        for number, plane in enumerate(plus):
            values = plane.astype(np.float32)
            if minus is not None:
                values -= minus[number].astype(np.float32)
            if np.isfinite(values).any():
                return True
    return False


def _plan_channels(case: Case) -> tuple[list[Channel], tuple[str, ...]]:
    if len(case.phases) == 1:
        return [Channel(IMAGE, 0, None, 0.0)], (
            "there is only one phase, so the brush compares its signal without subtraction",
        )
    choice = choose_image_phases(case)
    plans = [Channel(POST, choice.early, None, 0.0), Channel(POST_PRE, choice.early, 0, 0.0)]
    if choice.late is None:
        return plans, ("there is no late phase, so the brush compares 2 features",)
    return [*plans, Channel(LATE_POST, choice.late, choice.early, 0.0)], ()

"""`FeatureImages`: the images that a brush compares, each with its noise.

Nothing is stored but the case's own signal: features are computed for the box in hand, so that
integers stay integers and five phases of a large case cost no further memory.
"""

from dataclasses import dataclass, replace
from typing import Final

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


@dataclass(frozen=True, slots=True)
class Channel:
    """One feature: phase `plus`, less phase `minus` where that is given.

    `noise` is the standard deviation of the feature by noise alone, in the signal's unit, above 0.
    """

    name: str
    plus: int
    minus: int | None
    noise: float


@dataclass(frozen=True, slots=True, eq=False)
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
        place = box.slices
        # In float32 before anything is subtracted: unsigned integers would wrap.
        np.copyto(out, self.case.signal[channel.plus][place], casting="same_kind")
        if channel.minus is not None:
            earlier = self.case.signal[channel.minus][place]
            np.subtract(out, earlier, out=out, dtype=np.float32, casting="same_kind")

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
        minus = None if plan.minus is None else case.signal[plan.minus]
        measured = noise_of(case.signal[plan.plus], minus, case.grid.spacing_mm)
        channels.append(replace(plan, noise=measured.sigma))
        if not measured.found:
            missing += (f"{plan.name} shows no noise: differences count against its whole range",)
    report_progress(len(named), len(named), "Measured the noise")
    return FeatureImages(case, tuple(channels), missing).choose(wanted)


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

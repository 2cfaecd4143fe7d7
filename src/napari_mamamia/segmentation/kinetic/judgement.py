"""The score that orders regions, its penalties, and their explanation."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from napari_mamamia.segmentation.kinetic.candidates import Features, Place, Scored
from napari_mamamia.segmentation.kinetic.kinetic_settings import KineticSettings

_STRONGEST_PERCENT: Final = 300.0  # early PE above this does not raise the score
_RATIO_RANGE: Final = (0.6, 1.3)  # limits of SER: persistent curves lie below, vessels above
_HIGHEST_RATIO: Final = 3.0  # end of UCSF's scale of SER in a tumour (0.9 to 3)
_DARK: Final = 0.5  # share of the breast's median signal after contrast
_AT_SKIN: Final = 0.4  # share near the skin; half of a nipple lies deeper
_UPPER: Final = 0.67  # share of the image's height: above it is the axilla, below it the heart
_LIKELY_PART: Final = 0.5  # share below which the reasons mention the larger region
_LIKELY_VESSEL: Final = 0.25  # compactness below which the reasons mention a vessel
_ALIKE: Final = 0.6  # share of the first score from which the next candidate is equally likely
_WEAK: Final = 0.45  # score of the first candidate below which it hardly stands out


@dataclass(frozen=True, slots=True)
class Penalty:
    """A reason why a region may not be a tumour: its score is multiplied by `factor`.

    `words` is the reason as text.
    """

    factor: float
    words: str


def penalties(features: Features, settings: KineticSettings) -> tuple[Penalty, ...]:
    """Return the penalties of a region for its position and its signal."""
    return (*_place_doubts(features.place, settings), *_signal_doubts(features))


def score(features: Features, settings: KineticSettings) -> float:
    """Return a score for the similarity of a region to a tumour, used only to order candidates.

    sqrt(V) x contrast/100 (up to 3) x compactness x SER^2 (SER within 0.6 to 1.3; omitted without a
    late phase) x sqrt(share), times the factors of its `penalties`. V is the volume in ml; beyond E
    = `enough_volume_ml` it is E x E / volume, since the largest regions are gland.

    Source: our choice. SER^2 follows Wang 2009, who found 46 % of lesions with washout malignant,
    20 % with a plateau and 13 % with a persistent rise.
    """
    volume, enough = features.volume_mm3 / 1000, settings.enough_volume_ml
    value: float = min(max(features.contrast, 0.0), _STRONGEST_PERCENT) / 100
    value *= features.compactness * math.sqrt(min(volume, enough**2 / volume) * features.share)
    if not np.isnan(features.ratio):
        value *= min(max(features.ratio, _RATIO_RANGE[0]), _RATIO_RANGE[1]) ** 2
    return value * math.prod(penalty.factor for penalty in penalties(features, settings))


def reasons(features: Features, when: str, settings: KineticSettings) -> tuple[str, ...]:
    """Return the reasons for a region's score as sentences with numbers.

    `when` names the early phase, such as "at 147 s".
    """
    phrases = [f"enhances by {features.percent:.0f} % {when}", *_describe_course(features.ratio)]
    phrases.append(f"{features.volume_mm3 / 1000:.2g} ml, {features.long_mm:.0f} mm long")
    phrases.append(_describe_shape(features, settings))
    if features.share < _LIKELY_PART:
        share = 100 * features.share
        phrases.append(f"{share:.0f} % of a larger enhancing region, such as gland or a vessel")
    return (*phrases, *(penalty.words for penalty in penalties(features, settings)))


def unsure(found: Sequence[Scored], settings: KineticSettings) -> tuple[str, ...]:
    """Return why the first of the ranked regions may not be the tumour; empty if it is clear."""
    if not found:
        return ()
    why = [f"candidate 1: {penalty.words}" for penalty in penalties(found[0].features, settings)]
    if found[0].value < _WEAK:
        why.append("candidate 1 is small or has little contrast")
    alike = sum(item.value >= _ALIKE * found[0].value for item in found)
    if alike > 1:
        why.append(f"candidates 1 to {alike} have similar scores")
    return tuple(why)


def _place_doubts(place: Place, settings: KineticSettings) -> Iterator[Penalty]:
    high = place.height > _UPPER
    if place.behind_chest > settings.behind_percent / 100:
        what = "armpit or chest wall" if high else "heart or chest wall"
        share = 100 * place.behind_chest
        yield Penalty(0.05, f"{share:.0f} % of it is behind the chest line: {what}?")
    elif place.at_wall > 0.5:
        what = "a lymph node of the armpit" if high else "muscle, or a vessel of the chest"
        yield Penalty(0.3, f"{100 * place.at_wall:.0f} % of it is at the chest wall: {what}?")
    if place.at_back:
        yield Penalty(0.2, "touches the back of the image: heart or large vessel?")
    if place.beside > 0.5:
        share = 100 * place.beside
        yield Penalty(
            0.2, f"{share:.0f} % of it is outside the breast: armpit, neck or chest wall?"
        )
    if place.near_skin > _AT_SKIN:
        near = f"is within {settings.near_skin_mm:g} mm of the skin layer"
        yield Penalty(0.4, f"{near}: skin or nipple?")


def _signal_doubts(features: Features) -> Iterator[Penalty]:
    if features.signal < _DARK * features.place.tissue:
        share = 100 * features.signal / features.place.tissue
        yield Penalty(0.2, f"is only {share:.0f} % as bright as the breast: noise or a ghost?")
    if features.ratio > _HIGHEST_RATIO:
        yield Penalty(0.2, "loses nearly all of its contrast: vessel, motion or a ghost?")


def _describe_course(ratio: float) -> tuple[str, ...]:
    if np.isnan(ratio):
        return ()
    if np.isinf(ratio):
        return ("washes out down to the signal before contrast",)
    if ratio > 1.1:
        return (f"washes out (SER {ratio:.2f})",)
    if ratio >= 0.9:
        return (f"stays constant (SER {ratio:.2f})",)
    return (f"continues to rise (SER {ratio:.2f})",)


def _describe_shape(features: Features, settings: KineticSettings) -> str:
    if features.compactness >= _LIKELY_VESSEL:
        return f"compactness {features.compactness:.2f} (1: spherical)"
    thin = features.thick_mm <= 2 * settings.vessel_mm
    what = "elongated or branching like a vessel" if thin else "irregular or branching"
    return f"{what} (compactness {features.compactness:.2f}, {features.thick_mm:.0f} mm thick)"

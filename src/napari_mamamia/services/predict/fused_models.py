"""Fuse several models: mean of probabilities, majority vote of masks, or STAPLE."""

import hashlib
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.annotations.fuse import Staple, majority_vote, staple
from napari_mamamia.core.case import Case, Mask
from napari_mamamia.core.choices import FusionRule, TieRule
from napari_mamamia.core.errors import GridMismatchError, MamamiaError, ModelError, Remedy
from napari_mamamia.core.program.system import process_peak_memory_bytes
from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.core.provenance import (
    MODEL_DIGESTS,
    MODEL_SHA256,
    Setting,
    hash_model,
)
from napari_mamamia.metrics.overlap import dice
from napari_mamamia.segmentation.model.planner import (
    OutOfMemoryError,
    OverLimitError,
    duration_text,
)
from napari_mamamia.segmentation.model.segmenter import Click, Prediction, Prompt, Segmenter
from napari_mamamia.segmentation.run.planned import PlannedSegmenter
from napari_mamamia.segmentation.run.trained import candidates_of, mask_of

# Running mean and variance of probability maps, with one map in memory at a time.

_SLAB: Final = 8  # planes at a time


@dataclass(frozen=True, slots=True, eq=False)
class Fused:
    """The mean of probability maps, the mask in which it exceeds a threshold, and the variance.

    A voxel whose mean equals the threshold is background. `mean` is float16, from 0 to 1.
    `variance` is float16, from 0 to 0.25, with divisor n (not n - 1); it is None for fewer than two
    maps. All arrays have axes ``(z, y, x)``.
    """

    above: NDArray[np.bool_]
    mean: NDArray[np.float16]
    variance: NDArray[np.float16] | None


@dataclass(slots=True, eq=False)
class Moments:
    """Running mean and sum of squared deviations of `count` maps, float32 ``(z, y, x)``.

    The mean of a single map is bit-identical to the map. Source: Welford, Technometrics 4 (1962)
    419.
    """

    count: int = 0
    mean: NDArray[np.float32] | None = None
    squares: NDArray[np.float32] | None = None

    def add(self, probability: NDArray[np.float16]) -> None:
        """Add one probability map ``(z, y, x)``, from 0 to 1.

        Raises
        ------
        GridMismatchError
            If its shape differs from the shape of the earlier maps.
        """
        if self.mean is None or self.squares is None:
            self.mean = np.zeros(probability.shape, np.float32)
            self.squares = np.zeros(probability.shape, np.float32)
        if probability.shape != self.mean.shape:
            raise GridMismatchError(
                f"expected all probability maps to have the shape {self.mean.shape} (z, y, x), "
                f"but one has the shape {probability.shape}; this is an error in the model, so "
                "choose a different model"
            )
        self.count += 1
        share = np.float32(1 / self.count)
        for first in range(0, len(probability), _SLAB):
            report_progress(first, len(probability), "Averaging probabilities")
            slab = slice(first, first + _SLAB)
            values = probability[slab].astype(np.float32)
            away = values - self.mean[slab]
            self.mean[slab] += away * share
            self.squares[slab] += away * (values - self.mean[slab])

    def result(self, threshold: float) -> Fused:
        """Return mean, variance, and the mask of voxels with a mean above `threshold`.

        Raises
        ------
        GridMismatchError
            If no map was added.
        """
        if self.mean is None or self.squares is None:
            raise GridMismatchError(
                "expected at least one probability map for the mean, but got none; add a map first"
            )
        shape = self.mean.shape
        above = np.empty(shape, np.bool_)
        mean = np.empty(shape, np.float16)
        variance = np.empty(shape, np.float16) if self.count > 1 else None
        for first in range(0, len(mean), _SLAB):
            report_progress(first, len(mean), "Averaging probabilities")
            slab = slice(first, first + _SLAB)
            np.greater(self.mean[slab], np.float32(threshold), out=above[slab])
            mean[slab] = self.mean[slab]
            if variance is not None:
                variance[slab] = self.squares[slab] * np.float32(1 / self.count)
        return Fused(above, mean, variance)


def share_of_masks(masks: Sequence[NDArray[np.bool_]]) -> NDArray[np.float16]:
    """Return the fraction of masks that contain each voxel, float16 ``(z, y, x)``, from 0 to 1."""
    share = np.empty(masks[0].shape, np.float16)
    for first in range(0, len(share), _SLAB):
        report_progress(first, len(share), "Counting votes")
        slab = slice(first, first + _SLAB)
        votes = np.zeros(share[slab].shape, np.uint8)
        for mask in masks:
            votes += mask[slab]
        share[slab] = votes * np.float32(1 / len(masks))
    return share


T = TypeVar("T")

_PREDICTED: Final = 940  # progress steps of the models; fusing takes the remaining steps up to 1000
_AVERAGED: Final = 960
_FUSED: Final = 990
_MOST_MODELS: Final = 16
"""Maximum number of models, which `annotations.fuse.staple` defines."""
_LEAST_AGREEMENT: Final = 0.1
"""Dice with the fused mask below which a model is reported as deviating. Our choice."""
_THRESHOLD: Final = 0.5
_LONGEST_NAME: Final = 120


@runtime_checkable
class _Closable(Protocol):
    def close(self) -> None: ...


@dataclass(slots=True, eq=False)
class FusedSegmenter:
    """Two or more models as one `Segmenter`; the case fails if one of them fails.

    Parameters
    ----------
    members
        2 to 16 models with distinct names. With MEAN each model must return its probability.
    rule
        The rule by which the results are fused.
    limit_s
        The time limit for the whole case in s; None for no limit. Each model may use the remaining
        time. A model that can reduce its cost plans with an equal part of the remaining time, which
        leaves time for later models.

    Raises
    ------
    ModelError
        If there are too few or too many models, or two models have the same name.
    """

    members: tuple[Segmenter, ...]
    rule: FusionRule
    limit_s: float | None = None

    def __post_init__(self) -> None:
        require_fusible([member.name for member in self.members])

    @property
    def name(self) -> str:
        """Short name made of the rule and the models, which can be used as a folder name."""
        name = f"{self.rule.value}_{self._join_names('+')}"
        if len(name.encode()) <= _LONGEST_NAME:
            return name
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        return f"{self.rule.value}_of_{len(self.members)}_models_{digest}"

    @property
    def title(self) -> str:
        """The name that is shown to users."""
        titles = " and ".join(member.title for member in self.members)
        return f"{self.rule.said[:1].upper()}{self.rule.said[1:]} of {titles}"

    @property
    def note(self) -> str:
        """The caveat that is shown with every result: the rule, and the caveats of the models."""
        notes = "; ".join(f"{member.name}: {member.note}" for member in self.members)
        return f"{self.rule.said} of {len(self.members)} models: {notes}"

    def predict(self, case: Case, prompt: Prompt | None = None) -> Prediction:
        """Run every model on `case` and fuse the results; progress counts to 1000.

        Returns
        -------
        Prediction
            The fused prediction. With MEAN, `probability` is the mean of the models' probabilities;
            otherwise it is the fraction of masks that contain the voxel. `variance` exists if every
            model returned a probability. `seconds` includes all models and the fusion, and
            `peak_memory_bytes` is the largest peak of any process.

        Raises
        ------
        ModelError
            If a model fails; the message names the model. OutOfMemoryError and OverLimitError keep
            their type.
        """
        started = time.monotonic()
        predictions: list[Prediction] = []
        moments: Moments | None = Moments()
        count = len(self.members)
        for number, member in enumerate(self.members):
            steps = (number * _PREDICTED // count, (number + 1) * _PREDICTED // count)
            label = f"{member.name} ({number + 1} of {count})"
            left = self._with_time_left(number, started)
            with part(*steps, 1000, f"{label}: "), _named_in_errors(member.name):
                one = left.predict(case, prompt)
            self._require_probability(one, member)
            if one.probability is None:
                moments = None
            elif moments is not None:
                with part(steps[1], steps[1], 1000):
                    moments.add(one.probability)
            # The map has been added to the moments, so only one map is in memory.
            predictions.append(replace(one, probability=None, variance=None))
        # This raises an error if the last model exceeded the limit.
        self._seconds_left(started)
        begun = time.perf_counter()
        maps = None
        if moments is not None:
            with part(_PREDICTED, _AVERAGED, 1000):
                maps = moments.result(_THRESHOLD)
        with part(_AVERAGED, _FUSED, 1000):
            mask, probability, parameters = self._fuse_masks(predictions, maps)
        report_progress(_FUSED, 1000, "Searching for regions")
        candidates = tuple(candidates_of(mask, case, prompt))
        if isinstance(prompt, Click) and candidates:
            mask = mask_of(candidates[0], mask.shape)
        report_progress(1000, 1000, "Done")
        return Prediction(
            case_id=case.case_id,
            mask=Mask(case.grid, mask),
            candidates=candidates,
            parameters=(*self._own_parameters(), *parameters, *self._parameters_of(predictions)),
            seconds=sum(prediction.seconds for prediction in predictions)
            + time.perf_counter()
            - begun,
            notes=tuple(self._notes_of(predictions, mask)),
            device="; ".join(dict.fromkeys(prediction.device for prediction in predictions)),
            peak_memory_bytes=_largest_peak(predictions),
            probability=probability,
            variance=None if maps is None else maps.variance,
        )

    def close(self) -> None:
        """Release every model."""
        for member in self.members:
            if isinstance(member, _Closable):
                member.close()

    # -------------------------------------------------------------------- one model

    def _seconds_left(self, started: float) -> float | None:
        if self.limit_s is None:
            return None
        left = started + self.limit_s - time.monotonic()
        if left <= 0:
            raise OverLimitError(
                f"expected {self._join_names(', ')} to finish within "
                f"{duration_text(self.limit_s)} in total, but they took longer; allow more time, "
                "or choose fewer models"
            )
        return left

    def _with_time_left(self, number: int, started: float) -> Segmenter:
        """Return a model with the remaining time as its limit."""
        member, left = self.members[number], self._seconds_left(started)
        if left is None or not isinstance(member, PlannedSegmenter):
            return member
        if member.budget.give_up:
            left /= len(self.members) - number
        return replace(member, budget=replace(member.budget, limit_s=left))

    def _require_probability(self, found: Prediction, member: Segmenter) -> None:
        if self.rule is FusionRule.MEAN and found.probability is None:
            raise ModelError(
                f"expected every model to return a probability for the mean, but {member.name} "
                "returns none; fuse by majority or staple"
            )

    # ----------------------------------------------------------------------- fusing

    def _fuse_masks(
        self, found: Sequence[Prediction], maps: Fused | None
    ) -> tuple[NDArray[np.bool_], NDArray[np.float16], tuple[tuple[str, Setting], ...]]:
        """Return the mask, the probability, and the parameters of the rule."""
        if self.rule is FusionRule.MEAN and maps is not None:
            return maps.above, maps.mean, (("threshold", _THRESHOLD),)
        masks = [one.mask.array for one in found]
        with part(0, 1, 3):
            share = share_of_masks(masks)
        report_progress(1, 3, f"Fusing: {self.rule.said}")
        if self.rule is FusionRule.MAJORITY:
            marked = majority_vote([mask.view(np.uint8) for mask in masks]) > 0
            return marked, share, (("tie", TieRule.BACKGROUND.value),)
        with part(1, 3, 3):
            estimate = staple(masks)
        return estimate.mask, share, tuple(self._list_performance(estimate))

    def _list_performance(self, estimate: Staple) -> Iterator[tuple[str, Setting]]:
        yield "threshold", _THRESHOLD
        yield "staple_steps", estimate.n_steps
        for member, p, q in zip(
            self.members, estimate.sensitivities, estimate.specificities, strict=True
        ):
            yield f"{member.name}: sensitivity (STAPLE)", None if math.isnan(p) else p
            yield f"{member.name}: specificity (STAPLE)", None if math.isnan(q) else q

    # ----------------------------------------------------------------- what is said

    def _join_names(self, between: str) -> str:
        return between.join(member.name for member in self.members)

    def _own_parameters(self) -> Iterator[tuple[str, Setting]]:
        yield "fusion", self.rule.value
        yield "models", self._join_names(", ")
        yield "time_limit_s", self.limit_s

    def _parameters_of(self, found: Sequence[Prediction]) -> Iterator[tuple[str, Setting]]:
        for member, one in zip(self.members, found, strict=True):
            yield f"{member.name}: volume_mm3", one.mask.volume_mm3
            yield f"{member.name}: seconds", round(one.seconds, 3)
            for name, value in one.parameters:
                yield f"{member.name}: {name}", value
        digests = [_find_digest(one.parameters) for one in found]
        if all(digests):
            yield MODEL_SHA256, hash_model(self.rule.value, digests)

    def _notes_of(self, found: Sequence[Prediction], mask: NDArray[np.bool_]) -> Iterator[str]:
        for member, one in zip(self.members, found, strict=True):
            yield from (f"{member.name}: {note}" for note in one.notes)
        if not mask.any():
            yield f"the {self.rule.said} of {len(found)} models is empty"
            return
        for member, one in zip(self.members, found, strict=True):
            agreement = dice(one.mask.array, mask)
            if agreement < _LEAST_AGREEMENT:
                yield (
                    f"{member.name} disagrees with the fused mask (Dice {agreement:.2f}); check "
                    "the mask of each model separately"
                )


def _find_digest(parameters: Iterable[tuple[str, Setting]]) -> str:
    """Return the SHA-256 of the model from its parameters, or "" if there is none."""
    told = dict(parameters)
    return next((str(told[name]) for name in MODEL_DIGESTS if told.get(name)), "")


def require_fusible(names: Sequence[str]) -> None:
    """Raise `ModelError` unless models with these names can be fused."""
    if not 2 <= len(names) <= _MOST_MODELS:
        raise ModelError(
            f"expected 2 to {_MOST_MODELS} models to fuse, but got {len(names)} "
            f"({', '.join(names)}); remove models from the list, or add one"
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ModelError(
            f"expected models with different names to fuse, but {', '.join(twice)} occurs more "
            "than once; list each model once, or add one of two models with the same name under "
            "a different name",
            remedies=(Remedy(command="models add"),),
        )


@contextmanager
def _named_in_errors(name: str) -> Iterator[None]:
    """Add the model's name to errors that are raised in this context."""
    try:
        yield
    except MamamiaError as error:
        text = f"{name}, one of the models to be fused, failed: {error}"
        keeps_type = isinstance(error, OutOfMemoryError | OverLimitError)
        raise (type(error)(text) if keeps_type else ModelError(text)) from error


def _largest_peak(found: Sequence[Prediction]) -> int | None:
    """Return the largest peak memory of the worker processes, or None if no worker process ran."""
    own_peak = process_peak_memory_bytes()
    peaks = [one.peak_memory_bytes or own_peak for one in found]
    return max((peak for peak in peaks if peak is not None), default=None)

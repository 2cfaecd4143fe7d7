"""Plan a model run within a time limit: estimate its cost and, if allowed, reduce it.

This module does not use torch. Cost = tiles x mirrored copies x folds x seconds per tile, plus the
time for preparation and export. The run is reduced only in ways that the caller allows, and no
other model is ever used.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.model.engine_settings import EngineSettings, TilePlan

WORKING_SHARE: Final = 0.9
"""Fraction of a time limit that the network may use; the rest is for reading and writing."""

OTHER_S_PER_MEGAVOXEL: Final = 0.15
"""Assumed time for preparation and export in s per million voxels, until it is measured."""

_WIDE_STEP: Final = 0.75


class Rung(StrEnum):
    """Ways to reduce the cost of a run, in the order in which they are tried."""

    TILES = "tiles outside the breast"
    PRECISION = "bf16"
    STEP = "step 0.75"
    FLIPS = "fewer mirrored copies"
    FOLDS = "fewer folds"


LADDER: Final = tuple(Rung)


class OutOfMemoryError(ModelError):
    """Raised if a run does not fit into memory; the message states the memory sizes."""


class OverLimitError(ModelError):
    """Raised if a case exceeds its time limit and no further reduction is allowed."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The time limit for a case, and the allowed reductions in the order of `Rung`.

    Raises
    ------
    ModelError
        If the limit is not above 0 s.
    """

    limit_s: float | None = None
    give_up: tuple[Rung, ...] = ()

    def __post_init__(self) -> None:
        if self.limit_s is not None and not self.limit_s > 0:
            raise ModelError(
                f"expected the time limit to be above 0 s, but it is {self.limit_s:g}; set a "
                "longer limit, or none"
            )


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed of a model: seconds per tile and network, and other time per million voxels."""

    forward_s: float
    other_s_per_megavoxel: float = OTHER_S_PER_MEGAVOXEL

    def seconds(self, tiles: TilePlan) -> float:
        """Return the estimated duration of a run in seconds.

        Examples
        --------
        >>> Pace(2.0, 0.5).seconds(TilePlan(9, 0, 8, 5, (100, 100, 200), 0))
        721.0
        """
        return tiles.work * self.forward_s + self.other_s_per_megavoxel * tiles.voxels / 1e6


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The planned run for a case, with its estimated duration and reductions.

    `in_breast` states whether tiles outside the breast are skipped. `seconds` is the estimated
    duration. `given_up` contains one sentence for each reduction, with the estimate after this
    reduction.
    """

    settings: EngineSettings
    tiles: TilePlan
    seconds: float
    in_breast: bool = False
    given_up: tuple[str, ...] = ()


def plan_run(
    asked: EngineSettings,
    folds: tuple[str, ...],
    tiles_of: Callable[[EngineSettings, bool], TilePlan],
    pace_of: Callable[[EngineSettings], Pace],
    budget: Budget,
) -> RunPlan:
    """Return the run with the fewest reductions that meets the limit, or the cheapest run.

    Parameters
    ----------
    asked
        The settings of the user and the recipe.
    folds
        The names of the folds in `asked`.
    tiles_of
        A function that returns the tiles of a run for given settings; True as its second argument
        skips tiles outside the breast.
    pace_of
        A function that returns the pace for given settings; it is called only for the compared
        runs.
    budget
        The limit and the allowed reductions. Reductions that save no time are not used.
    """
    settings = replace(asked, folds=folds)
    plan = _estimate_plan(settings, False, tiles_of, pace_of, ())
    if budget.limit_s is None:
        return plan
    target = WORKING_SHARE * budget.limit_s
    for rung in LADDER:
        if rung not in budget.give_up:
            continue
        before = plan.seconds
        for choice, in_breast, what in _list_choices(rung, plan):
            if plan.seconds <= target:
                return plan
            tried = _estimate_plan(choice, in_breast, tiles_of, pace_of, plan.given_up)
            if tried.seconds < plan.seconds:
                sentence = f"{what}: about {duration_text(tried.seconds)} instead of "
                sentence += duration_text(before)
                plan = replace(tried, given_up=(*_drop_sentence(plan.given_up, rung), sentence))
    return plan


def require_within(plan: RunPlan, budget: Budget, name: str) -> None:
    """Raise `OverLimitError` if the estimate exceeds the limit.

    Here the full limit applies, not its `WORKING_SHARE`.

    Parameters
    ----------
    plan
        The plan of the run.
    budget
        The time limit and the allowed reductions.
    name
        The name of the model.
    """
    if budget.limit_s is None or plan.seconds <= budget.limit_s:
        return
    if len(budget.give_up) == len(LADDER):
        remedy = "allow more time, or choose a smaller model"
    else:
        left = ", ".join(rung.value for rung in LADDER if rung not in budget.give_up)
        remedy = f"allow more time, or allow a reduction ({left})"
    raise OverLimitError(
        f"expected {name} to take at most {duration_text(budget.limit_s)}, but its estimated time "
        f"is {duration_text(plan.seconds)} ({plan.tiles.text}); {remedy}; nothing was computed"
    )


def within_memory(plan: RunPlan, budget: Budget) -> RunPlan | None:
    """Return the next run to try if a run did not fit into memory, or None if there is none.

    Only bf16 reduces the memory of a tile; skipping tiles or folds does not.

    Parameters
    ----------
    plan
        The plan of the run.
    budget
        The time limit and the allowed reductions.
    """
    if Rung.PRECISION not in budget.give_up or plan.settings.precision == "bf16":
        return None
    sentence = "bf16, because the memory was not sufficient"
    return replace(
        plan, settings=replace(plan.settings, precision="bf16"), given_up=(*plan.given_up, sentence)
    )


def duration_text(seconds: float) -> str:
    """Return a duration as text with units.

    Examples
    --------
    >>> duration_text(0.42), duration_text(75), duration_text(9000)
    ('0.4 s', '1 min 15 s', '2 h 30 min')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(whole / 60)
    return f"{minutes // 60} h {minutes % 60} min"


def _list_choices(rung: Rung, now: RunPlan) -> tuple[tuple[EngineSettings, bool, str], ...]:
    """Return the steps of a reduction, smallest first, as (settings, in-breast flag, text)."""
    settings, here = now.settings, now.in_breast
    if rung is Rung.TILES:
        return ((settings, True, "tiles outside the breast skipped"),)
    if rung is Rung.PRECISION:
        return ((replace(settings, precision="bf16"), here, "bf16"),)
    if rung is Rung.STEP:
        wide = max(settings.step, _WIDE_STEP)
        return ((replace(settings, step=wide), here, f"step {wide:g}"),)
    if rung is Rung.FLIPS:
        copies = [n for n in (4, 2, 1) if n < now.tiles.passes]
        return tuple(
            (replace(settings, most_copies=n), here, f"{n} mirrored copies of {now.tiles.passes}")
            for n in copies
        )
    count = len(settings.folds)
    return tuple(
        (replace(settings, folds=settings.folds[:n]), here, f"{n} of {count} folds")
        for n in range(count - 1, 0, -1)
    )


def _estimate_plan(
    settings: EngineSettings,
    in_breast: bool,
    tiles_of: Callable[[EngineSettings, bool], TilePlan],
    pace_of: Callable[[EngineSettings], Pace],
    given_up: tuple[str, ...],
) -> RunPlan:
    tiles = tiles_of(settings, in_breast)
    pace = pace_of(settings)
    return RunPlan(settings, tiles, pace.seconds(tiles), in_breast, given_up)


def _drop_sentence(given_up: tuple[str, ...], rung: Rung) -> tuple[str, ...]:
    """Remove the sentence on an earlier step of a reduction that a further step replaces."""
    mark = {Rung.FLIPS: " mirrored copies of ", Rung.FOLDS: " folds: "}.get(rung)
    return tuple(sentence for sentence in given_up if mark is None or mark not in sentence)

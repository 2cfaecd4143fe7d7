"""`PlannedSegmenter`: a trained model with a cost estimate and a time limit."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.program.system import free_memory_bytes
from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.core.provenance import Setting
from napari_mamamia.segmentation.kinetic.breast import breast_area, find_breast_area
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.engine_settings import EngineSettings, TilePlan
from napari_mamamia.segmentation.model.planner import (
    LADDER,
    WORKING_SHARE,
    Budget,
    OutOfMemoryError,
    OverLimitError,
    Pace,
    RunPlan,
    duration_text,
    plan_run,
    require_within,
    within_memory,
)
from napari_mamamia.segmentation.model.postprocess import BreastArea
from napari_mamamia.segmentation.model.recipe import Recipe, RegionKind
from napari_mamamia.segmentation.model.recipe_input import channel_names, input_grid
from napari_mamamia.segmentation.model.segmenter import BoxPrompt, Prediction, Prompt
from napari_mamamia.segmentation.network.choices import rungs_of
from napari_mamamia.segmentation.run.engine_host import EngineHost, Host, HostedRunner
from napari_mamamia.segmentation.run.engines import MODEL_KINDS
from napari_mamamia.segmentation.run.paces import known_pace, pace_of_run, remember_pace
from napari_mamamia.segmentation.run.trained import TrainedSegmenter

_PLANNED: Final = 60  # of 1000 steps


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated time and memory for a case, with the plan of the run.

    `memory_bytes` is None if unknown. `measured` states whether the speed was measured on this
    computer.
    """

    plan: RunPlan
    needed_bytes: int
    free_bytes: int | None
    measured: bool

    @property
    def text(self) -> str:
        """The estimate as a line of text."""
        took = f"about {duration_text(self.plan.seconds)}" if self.measured else "time not known"
        free = "" if self.free_bytes is None else f" of {self.free_bytes / 1e9:.1f} GB free"
        return f"{took} ({self.plan.tiles.text}), volumes {self.needed_bytes / 1e9:.2f} GB{free}"


@dataclass(slots=True, eq=False)
class PlannedSegmenter:
    """A trained model on a host, with a limit on time.

    Parameters
    ----------
    card, settings, recipe
        As in `TrainedSegmenter`.
    host
        The host of the model: a `Worker`, or this process.
    budget
        The time limit for one case, and the allowed reductions. Without a limit, no cost is
        estimated.
    """

    card: ModelCard
    settings: EngineSettings = field(default_factory=EngineSettings)
    recipe: Recipe = field(default_factory=Recipe)
    host: Host = field(default_factory=EngineHost)
    budget: Budget = field(default_factory=Budget)

    @property
    def name(self) -> str:
        """Short name that is suitable for a folder."""
        return self._make_segmenter().name

    @property
    def title(self) -> str:
        """Name that is displayed to users."""
        return self._make_segmenter().title

    @property
    def note(self) -> str:
        """One-line caveat that is shown with every result."""
        return self._make_segmenter().note

    def channels(self) -> tuple[tuple[str, str], ...]:
        """Return the name and source expression of each input, such as ("DCE_pre", "p0")."""
        names = channel_names(self.recipe, len(self.card.channels))
        return tuple(zip(self.card.channels, names, strict=True))

    def estimate(self, case: Case, *, measure: bool = False) -> Estimate:
        """Return the estimated time and memory for `case`.

        Without `measure`, a model that has never run here is not timed, and its time is unknown.
        """
        pace = known_pace(self.card, self._resolve_settings())
        is_known = pace is not None
        if not is_known and not measure:
            plan = self._plan_unlimited(case, Pace(0.0, 0.0))
        elif self.budget.limit_s is None:
            run_pace = pace or (self._find_pace(self._resolve_settings()))
            plan = self._plan_unlimited(case, run_pace)
        else:
            plan, _ = self._make_plan(case, None)
        needed = plan.tiles.bytes_needed + sum(weight.n_bytes for weight in self.card.weights)
        return Estimate(plan, needed, free_memory_bytes(), is_known or measure)

    def predict(self, case: Case, prompt: Prompt | None = None) -> Prediction:
        """Segment `case` within the time limit, and report progress from 0 to 1000.

        Raises
        ------
        ModelError
            If the estimate exceeds the limit and no further reduction is allowed, or if the limit
            is
            reached; see also `TrainedSegmenter.predict`.
        """
        started = time.monotonic()
        plan: RunPlan | None = None
        breast: BreastArea | None = None
        if self.budget.limit_s is not None:
            with part(0, _PLANNED, 1000):
                plan, breast = self._make_plan(case, prompt)
            require_within(plan, self.budget, self.card.name)
            if plan.given_up:
                report_progress(_PLANNED, 1000, "Given up: " + "; ".join(plan.given_up))
        while True:
            try:
                with part(_PLANNED, 1000, 1000):
                    return self._run_model(case, prompt, plan, breast, started)
            except OutOfMemoryError:
                plan = None if plan is None else within_memory(plan, self._limit_budget())
                if plan is None:
                    raise

    def close(self) -> None:
        """Release the model."""
        self.host.close()

    # ----------------------------------------------------------------------- running

    def _run_model(
        self,
        case: Case,
        prompt: Prompt | None,
        plan: RunPlan | None,
        breast: BreastArea | None,
        started: float,
    ) -> Prediction:
        limit_s = self.budget.limit_s
        settings = self._resolve_settings() if plan is None else plan.settings
        recipe = self.recipe
        if plan is not None and plan.in_breast:
            recipe = replace(recipe, region=RegionKind.TILES)
        runner = HostedRunner(
            self.host, self.card, settings, None if limit_s is None else started + limit_s
        )
        left_s = None
        if limit_s is not None:
            left_s = max(started + WORKING_SHARE * limit_s - time.monotonic(), 0.0)
        inner = TrainedSegmenter(self.card, settings, recipe, left_s, runner, breast)
        prediction = inner.predict(case, prompt)
        self._require_whole(runner)
        self._remember_run(runner, settings, case.grid)
        given_up = () if plan is None else plan.given_up
        return replace(
            prediction,
            parameters=tuple(self._list_parameters(prediction, plan)),
            seconds=time.monotonic() - started,
            notes=(*(f"given up: {sentence}" for sentence in given_up), *prediction.notes),
        )

    def _require_whole(self, runner: HostedRunner) -> None:
        """Raise an error if the time limit made the result incomplete and this is not allowed."""
        cut = runner.last.ran.cut_short if runner.last is not None else ""
        if cut and not self.budget.give_up:
            limit_s = self.budget.limit_s or 0.0
            raise OverLimitError(
                f"expected {self.card.name} to finish within {duration_text(limit_s)}, but {cut}; "
                "allow more time, choose fewer folds, or allow a reduction"
            )

    def _list_parameters(
        self, found: Prediction, plan: RunPlan | None
    ) -> Iterator[tuple[str, Setting]]:
        for name, value in found.parameters:
            yield name, self.budget.limit_s if name == "time_limit_s" else value
        if plan is not None:
            yield "estimated_s", round(plan.seconds, 1)
            yield "given_up", "; ".join(plan.given_up) or None

    def _remember_run(self, runner: HostedRunner, settings: EngineSettings, grid: Grid) -> None:
        if runner.last is None:
            return
        z, y, x = grid.shape
        pace = pace_of_run(runner.last.ran, z * y * x)
        if pace is not None:
            remember_pace(self.card, settings, pace)

    # ---------------------------------------------------------------------- planning

    def _make_plan(self, case: Case, prompt: Prompt | None) -> tuple[RunPlan, BreastArea | None]:
        """Return the plan for `case`, and the breast if it was detected."""
        asked = self._resolve_settings()
        areas: list[BreastArea] = []

        def tiles_of(settings: EngineSettings, in_breast: bool) -> TilePlan:
            recipe = self.recipe
            if in_breast and recipe.region is RegionKind.WHOLE:
                recipe = replace(recipe, region=RegionKind.TILES)
            if recipe.region is not RegionKind.WHOLE and not areas:
                areas.append(_find_area(case, self.recipe))
            grid, region = input_grid(case.grid, recipe, areas[0].box if areas else None)
            if isinstance(prompt, BoxPrompt):
                region = prompt.box
            return self._plan_tiles(settings, grid, region)

        plan = plan_run(asked, self._list_folds(), tiles_of, self._find_pace, self._limit_budget())
        return plan, areas[0] if areas and plan.in_breast else None

    def _plan_unlimited(self, case: Case, pace: Pace) -> RunPlan:
        grid, region = input_grid(case.grid, self.recipe, case.breast_box)
        tiles = self._plan_tiles(self._resolve_settings(), grid, region)
        return RunPlan(self._resolve_settings(), tiles, pace.seconds(tiles))

    def _plan_tiles(self, settings: EngineSettings, grid: Grid, region: Box | None) -> TilePlan:
        """Return the tiles of a run; the model is not reloaded for a different number of folds."""
        loaded = replace(
            settings, folds=self._list_folds(), precision=self._resolve_settings().precision
        )
        tiles = self.host.plan(self.card, loaded, grid, region)
        return tiles.with_folds(max(len(settings.folds or self._list_folds()), 1))

    def _find_pace(self, settings: EngineSettings) -> Pace:
        """Return the stored speed of a model, or measure it if none is stored."""
        pace = known_pace(self.card, settings)
        if pace is None:
            loaded = replace(settings, folds=self._list_folds())
            pace = Pace(self.host.time_tile(self.card, loaded))
            remember_pace(self.card, settings, pace)
        return pace

    def _limit_budget(self) -> Budget:
        """Return the budget with only the reductions that this kind of model supports."""
        spec = MODEL_KINDS.get(self.card.kind)
        has = LADDER if spec is None else spec.rungs
        rungs = tuple(rung for rung in self.budget.give_up if rung in has)
        return replace(self.budget, give_up=rungs_of(self.card, self._resolve_settings(), rungs))

    def _resolve_settings(self) -> EngineSettings:
        return self.recipe.settings(self.settings)

    def _list_folds(self) -> tuple[str, ...]:
        return self._resolve_settings().folds or self.card.folds

    def _make_segmenter(self) -> TrainedSegmenter:
        return TrainedSegmenter(self.card, self.settings, self.recipe)


def _find_area(case: Case, recipe: Recipe) -> BreastArea:
    """Return the breast that the recipe uses, by default both breasts."""
    area, _ = breast_area(case, recipe)
    if area is None:
        area, _ = find_breast_area(case)
    return area

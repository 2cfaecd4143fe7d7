"""The nnU-Net engine: checkpoints, plans and network are loaded once for many cases.

Weights are read as data. A cascade also loads the engine of its first stage, from the neighbouring
folder. With torch in single precision on the CPU its labels are those of nnunetv2's own
predictor, voxel for voxel, in the same process and with the same number of threads.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

import torch
from numpy.typing import NDArray
from torch import nn

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.device import (
    choose_device,
    release_memory,
    sums_on,
    threads_set,
)
from napari_mamamia.segmentation.model.engine import EngineInput
from napari_mamamia.segmentation.model.engine_settings import (
    EngineResult,
    EngineSettings,
    Ran,
    TilePlan,
)
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.nnunet_files import model_cache, unpack
from napari_mamamia.segmentation.model.nnunet_geometry import (
    model_shape,
)
from napari_mamamia.segmentation.model.nnunet_plans import Plans, read_plans
from napari_mamamia.segmentation.model.nnunet_tiles import (
    Forward,
    TileGrid,
    TimeIsUp,
    flips_of,
    region_tiles,
    sum_tiles,
)
from napari_mamamia.segmentation.model.planner import OverLimitError
from napari_mamamia.segmentation.model.stages import Laps
from napari_mamamia.segmentation.nnunet.cascade import after_first, after_stage
from napari_mamamia.segmentation.nnunet.checkpoint import checkpoint_file, load_checkpoint
from napari_mamamia.segmentation.nnunet.cost import first_stage_of, stage_bytes
from napari_mamamia.segmentation.nnunet.export import export_labels, export_probability
from napari_mamamia.segmentation.nnunet.network import build_network, put_weights, trainer_known
from napari_mamamia.segmentation.nnunet.prepare import Prepared, prepare
from napari_mamamia.segmentation.nnunet.safetensors import Checkpoint

# One fold's network as a function of tiles, in the precision of its device.


def torch_forward(network: nn.Module, device: str, precision: str) -> Forward:
    """Return the network as a function, in the precision that nnU-Net uses on a device.

    On CUDA that is torch's mixed precision. bf16 on the CPU is used only if chosen by name.

    Parameters
    ----------
    network
        The network with its weights.
    device
        ``"cpu"``, ``"cuda"`` or ``"mps"``.
    precision
        Precision of the computation.
    """

    def plain(tile: Any) -> Any:
        with torch.no_grad():
            return network(tile)

    def mixed(tile: Any) -> Any:
        kind = torch.bfloat16 if precision == "bf16" else torch.float16
        with torch.no_grad(), torch.autocast(device, dtype=kind):
            return network(tile).float() if device == "cpu" else network(tile)

    chosen: Callable[[Any], Any] = mixed if device == "cuda" or precision == "bf16" else plain
    return chosen


def precision_text(settings: EngineSettings, device: str) -> str:
    """Return the precision of the computation: torch's mixed precision on CUDA.

    Parameters
    ----------
    settings
        Settings of the run.
    device
        ``"cpu"``, ``"cuda"`` or ``"mps"``.
    """
    if device == "cuda" and settings.precision == "fp32":
        return "fp16 autocast"
    if settings.backend == "openvino":
        from napari_mamamia.segmentation.model.openvino import computed_precision

        return computed_precision(settings.precision)
    return settings.precision


_TOTAL: Final = 1000  # steps of a whole run: preparing, predicting, writing
_PREPARED: Final = 80
_PREDICTED: Final = 960


@dataclass(slots=True, eq=False)
class NnUNetEngine:
    """A loaded model. Create it with `load_nnunet`; release it with `close`."""

    card: ModelCard
    plans: Plans
    settings: EngineSettings
    device: str
    network: nn.Module
    checkpoints: tuple[tuple[str, Checkpoint], ...]
    first_stage: "NnUNetEngine | None" = None
    _filled: str = field(default="", repr=False)
    _compiled: dict[str, Forward] = field(default_factory=dict, repr=False)

    @property
    def folds(self) -> tuple[str, ...]:
        """Names of the averaged folds."""
        return tuple(fold for fold, _ in self.checkpoints)

    @property
    def flips(self) -> tuple[tuple[int, ...], ...]:
        """Mirrored copies as sets of batch axes; empty if mirroring is off."""
        if not self.settings.mirroring:
            return ()
        return flips_of(self.checkpoints[0][1].mirror_axes, self.settings.most_copies)

    def plan(self, grid: Grid, region: Box | None = None) -> TilePlan:
        """Return the cost of a case on `grid`, assuming no empty border.

        The first stage of a cascade, which always uses the whole volume, is included.
        """
        shape, step = model_shape(grid, self.plans), self.settings.step
        tiles = region_tiles(shape, self.plans, step, grid, region)
        tile_plan = TilePlan(
            tiles=len(tiles.places),
            skipped=tiles.skipped,
            passes=len(self.flips) + 1,
            folds=len(self.checkpoints),
            model_shape=tiles.shape,
            bytes_needed=stage_bytes(self.plans, tiles.padded, grid),
            tile_voxels=math.prod(tiles.patch),
        )
        first = self.first_stage
        return (
            tile_plan
            if first is None
            else after_stage(tile_plan, first.plan(grid), first.card, grid)
        )

    def predict(self, given: EngineInput) -> EngineResult:
        """Label one case; every tile and mirrored copy reports progress.

        As `Engine.predict`. At the deadline the complete folds are averaged, and `Ran.cut_short`
        names the missing ones.

        Raises
        ------
        ModelError
            If the channels do not fit the model.
        OverLimitError
            If no fold was complete at the deadline.
        CaseError
            If the volumes are all zero or not finite.
        """
        with threads_set(self.settings.threads) as threads:
            return self._predict_case(given, threads)

    def run_one_tile(self) -> None:
        """Run the first fold's network once on an empty tile, to measure its time."""
        fold, checkpoint = self.checkpoints[0]
        with threads_set(self.settings.threads):
            tile = torch.zeros(
                (1, self.plans.inputs, *self.plans.configuration.patch), device=self.device
            )
            output = self._make_forward(fold, checkpoint)(tile)
            output.flatten()[:1].cpu()  # a GPU returns before it has finished

    def close(self) -> None:
        """Release the networks and the memory of a GPU."""
        if self.first_stage is not None:
            self.first_stage.close()
        self._compiled.clear()
        self.network = nn.Identity()
        self.checkpoints = ()
        release_memory(self.device)

    def _predict_case(self, given: EngineInput, threads: int) -> EngineResult:
        """Run both stages of a cascade, or the only stage.

        The first stage has the share of progress and time that its tiles have in the total cost.
        Its first fold may take longer, since the second stage needs it.
        """
        if self.first_stage is None:
            return self._one_stage(given, threads)
        began, deadline = time.monotonic(), given.deadline
        share = self.plan(given.grid, given.region).first_share
        folds_until = None if deadline is None else began + share * (deadline - began)
        steps = int(_TOTAL * share)
        with part(0, steps, _TOTAL, "First stage: "):
            whole = replace(given, region=None)
            first = self.first_stage._one_stage(whole, threads, folds_until=folds_until)
        seconds = time.monotonic() - began
        with part(steps, _TOTAL, _TOTAL):
            result = self._one_stage(given, threads, first.labels)
        return replace(result, ran=after_first(result.ran, first.ran, seconds))

    def _one_stage(
        self,
        given: EngineInput,
        threads: int,
        previous: NDArray[Any] | None = None,
        folds_until: float | None = None,
    ) -> EngineResult:
        grid, region = given.grid, given.region
        watch = Laps()
        with part(0, _PREPARED, _TOTAL):
            prepared = prepare(given.arrays, grid, self.plans, previous)
        watch.add("prepare")
        shape, step = tuple(prepared.data.shape[1:]), self.settings.step
        tiles = region_tiles(shape, self.plans, step, grid, region, prepared.box)
        with part(_PREPARED, _PREDICTED, _TOTAL):
            logits, folds = self._average_folds(prepared, tiles, given.deadline, folds_until)
        # The network's input is as large as the outputs, and is no longer needed.
        prepared = replace(prepared, data=None)
        watch.add("predict")
        inside = None if region is None else prepared.frame.box_to_model(region, grid)
        with part(_PREDICTED, _TOTAL, _TOTAL):
            labels = export_labels(logits, prepared, self.plans, inside)
        probability = None
        if self.settings.keep_probability:
            with part(_TOTAL, _TOTAL, _TOTAL):
                probability = export_probability(logits, prepared, self.plans)
        watch.add("export")
        report_progress(_TOTAL, _TOTAL, "Done")
        return EngineResult(
            labels, self._describe_run(tiles, folds, threads, watch.done), probability
        )

    def _average_folds(
        self,
        prepared: Prepared,
        tiles: TileGrid,
        deadline: float | None,
        folds_until: float | None = None,
    ) -> tuple[Any, tuple[str, ...]]:
        """Return the mean output of the folds in half precision, and the names of these folds.

        The first fold may take until `deadline`, all others until `folds_until` if it is set.
        """
        total: Any = None
        folds: list[str] = []
        count, heads = len(self.checkpoints), self.plans.labels.heads
        for index, (fold, checkpoint) in enumerate(self.checkpoints):
            message = f"Fold {fold}, {index + 1} of {count}" if count > 1 else "Predicting"
            if folds and folds_until is not None:
                deadline = folds_until
            if folds and deadline is not None and time.monotonic() >= deadline:
                break
            report_progress(index, count, message)
            forward = self._make_forward(fold, checkpoint)
            try:
                with part(index * 1000, (index + 1) * 1000, count * 1000):
                    logits = sum_tiles(
                        forward,
                        prepared.data,
                        tiles,
                        heads,
                        flips=self.flips,
                        device=self.device,
                        sums_on=sums_on(self.device, 2 * (heads + 1) * math.prod(tiles.padded)),
                        deadline=deadline,
                        text=message,
                    )
            except TimeIsUp as stop:
                if folds:
                    break
                raise OverLimitError(
                    f"expected {self.card.name} to finish one fold within the time limit, but its "
                    f"{len(tiles.places)} tiles x {len(self.flips) + 1} copies took longer; allow "
                    "more time, choose fewer mirrored copies or a larger step, or a region"
                ) from stop
            total = logits if total is None else total.add_(logits)
            folds.append(fold)
        if len(folds) > 1:
            total /= len(folds)
        return total, tuple(folds)

    def _make_forward(self, fold: str, checkpoint: Checkpoint) -> Forward:
        if self.settings.backend == "openvino":
            if fold not in self._compiled:
                from napari_mamamia.segmentation.model.openvino import compiled_network

                put_weights(self.network, checkpoint)
                self._compiled[fold] = compiled_network(
                    self.network, self.plans, self._sum_of(fold), self.settings
                )
            return self._compiled[fold]
        if self._filled != fold:
            put_weights(self.network, checkpoint)
            self._filled = fold
        return torch_forward(self.network, self.device, self.settings.precision)

    def _sum_of(self, fold: str) -> str:
        name = self.checkpoints[0][1].path.name
        weight_name = str(PurePosixPath(self.card.inner) / f"fold_{fold}" / name)
        return next((w.sha256 for w in self.card.weights if w.name == weight_name), "")

    def _describe_run(
        self,
        tiles: TileGrid,
        done: tuple[str, ...],
        threads: int,
        laps: Sequence[tuple[str, float]],
    ) -> Ran:
        cut = ""
        if len(done) < len(self.checkpoints):
            cut = f"the time limit was reached after {len(done)} of {len(self.checkpoints)} folds"
        return Ran(
            folds_asked=self.folds,
            folds_done=done,
            tiles=len(tiles.places),
            tiles_skipped=tiles.skipped,
            passes=len(self.flips) + 1,
            step=self.settings.step,
            device=self.device,
            backend=self.settings.backend,
            precision=precision_text(self.settings, self.device),
            threads=threads,
            cut_short=cut,
            seconds=tuple(laps),
        )


def load_nnunet(card: ModelCard, settings: EngineSettings | None = None) -> NnUNetEngine:
    """Load a model: unpack its zip, read weights as data, build the network.

    Parameters
    ----------
    card
        The card of the model.
    settings
        Settings of the run; None for the defaults.

    Raises
    ------
    ModelError
        If the card is of another kind of model, a fold or checkpoint is missing, the file is
        damaged or contains code, the trainer is unknown, or the weights do not fit.
    MissingExtraError
        If the backend is not installed.
    """
    settings = settings or EngineSettings()
    if card.kind is not ModelKind.NNUNET or card.missing:
        kind = f"expected {card.path} to be an nnU-Net v2 model, but it is {card.kind}"
        raise ModelError("; ".join(card.missing) or f"{kind}: choose another")
    device = choose_device("cpu" if settings.backend == "openvino" else settings.device)
    folder = card.path
    if card.is_zip:
        folder = unpack(card.path, model_cache())
    report_progress(0, 2, "Loading the model")
    root = folder / card.inner if card.inner else folder
    checkpoints = tuple(_load_checkpoints(root, card, settings))
    trainer = checkpoints[0][1].trainer
    if not trainer_known(trainer) and not settings.accept_trainer:
        raise ModelError(
            f"{card.name} should come from one of nnU-Net's own trainers, but was made by "
            f"{trainer!r}, whose code is not available; if it uses the network of the plans, "
            'accept the trainer ("accept_trainer": true in the recipe)'
        )
    plans = _load_plans(root, checkpoints[0][1].configuration or card.configuration)
    report_progress(1, 2, "Loading the model")
    network = build_network(
        plans.configuration.architecture, plans.inputs, plans.labels.heads, trainer, str(root)
    )
    put_weights(network, checkpoints[0][1])
    engine = NnUNetEngine(
        card, plans, settings, device, network.to(device), checkpoints, _filled=checkpoints[0][0]
    )
    if plans.configuration.previous_stage:
        beside = replace(card, path=folder, is_zip=False)
        engine.first_stage = _first_stage(beside, plans, settings)
    report_progress(2, 2, "Loaded")
    return engine


def _first_stage(card: ModelCard, plans: Plans, settings: EngineSettings) -> NnUNetEngine:
    """Load the first stage of a cascade from the folder next to it."""
    before = first_stage_of(card, plans, checksums=bool(card.sha256))
    folds = tuple(fold for fold in settings.folds if fold in before.folds)
    stage_settings = replace(settings, folds=folds, checkpoint="", keep_probability=False)
    return load_nnunet(before, stage_settings)


def _load_checkpoints(
    root: Path, card: ModelCard, settings: EngineSettings
) -> list[tuple[str, Checkpoint]]:
    folds = settings.folds or card.folds
    absent = [fold for fold in folds if fold not in card.folds]
    if absent:
        raise ModelError(
            f"{card.name} has the folds {', '.join(card.folds)}, but not {', '.join(absent)}; "
            "choose among these, or copy the missing folder"
        )
    name = settings.checkpoint or next(iter(card.checkpoints), "")
    if not name:
        raise ModelError(
            f"expected the folds of {card.name} to share a checkpoint of one name, but they have "
            "none in common; choose one with the checkpoint setting"
        )
    files = {fold: checkpoint_file(root / f"fold_{fold}", name) for fold in folds}
    return [(fold, load_checkpoint(file)) for fold, file in files.items()]


def _load_plans(root: Path, configuration: str) -> Plans:
    texts = []
    for name in ("plans.json", "dataset.json"):
        try:
            with open_plain(root / name) as stream:
                texts.append(stream.read().decode("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(
                f"expected {root / name} to be readable, but {error}; copy the model again"
            ) from error
    return read_plans(texts[0], texts[1], configuration, str(root))

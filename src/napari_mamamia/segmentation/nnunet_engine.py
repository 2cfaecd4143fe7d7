"""The nnU-Net engine: a model loaded once, kept warm, and run on any number of cases.

With torch in single precision on the processor its labels are those of nnunetv2's own predictor,
voxel for voxel, in the same process and with the same number of threads.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.segmentation.device import (
    choose_device,
    free_bytes,
    release_memory,
    threads_set,
)
from napari_mamamia.segmentation.engine_settings import EngineResult, EngineSettings, Ran, TilePlan
from napari_mamamia.segmentation.nnunet_checkpoint import Checkpoint, load_checkpoint
from napari_mamamia.segmentation.nnunet_export import export_labels, export_probability
from napari_mamamia.segmentation.nnunet_files import model_cache, unpack
from napari_mamamia.segmentation.nnunet_network import build_network, put_weights, trainer_known
from napari_mamamia.segmentation.nnunet_plans import Plans, read_plans
from napari_mamamia.segmentation.nnunet_prepare import Prepared, model_frame, prepare
from napari_mamamia.segmentation.nnunet_resample import target_shape
from napari_mamamia.segmentation.nnunet_tiles import (
    Forward,
    TileGrid,
    TimeIsUp,
    flips_of,
    sum_tiles,
    tile_grid,
)
from napari_mamamia.segmentation.stages import part
from napari_mamamia.segmentation.weights import ModelCard, ModelKind

__all__ = ["NnUNetEngine", "load_nnunet"]

_TOTAL: Final = 1000  # steps of a whole run: preparing, predicting, writing
_PREPARED: Final = 80
_PREDICTED: Final = 960
_MARGIN: Final = 2  # voxels of the model's grid that interpolation at a region's edge reaches


@dataclass(slots=True, eq=False)
class NnUNetEngine:
    """A loaded model. Make it with `load_nnunet`; let go of it with `close`."""

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
        """Names of the folds that are averaged."""
        return tuple(fold for fold, _ in self.checkpoints)

    @property
    def flips(self) -> tuple[tuple[int, ...], ...]:
        """Mirrored copies, as sets of axes of a batch; none where mirroring is off."""
        if not self.settings.mirroring:
            return ()
        axes = tuple(self.checkpoints[0][1].mirror_axes)
        most = self.settings.most_copies
        if most is not None:
            axes = axes[len(axes) - min(most.bit_length() - 1, len(axes)) :]
        return flips_of(axes)

    def plan(self, grid: Grid, region: Box | None = None) -> TilePlan:
        """Return what a case on `grid` would cost, as if it held no empty border."""
        tiles = self._tiles(self._shape(grid), grid, region)
        voxels = int(np.prod(tiles.padded))
        largest = max(voxels, int(np.prod(grid.shape)))
        needed = voxels * (4 * self.plans.inputs + 2 * (self.plans.labels.heads + 1)) + 12 * largest
        return TilePlan(
            tiles=len(tiles.places),
            skipped=tiles.skipped,
            passes=len(self.flips) + 1,
            folds=len(self.checkpoints),
            model_shape=tiles.shape,
            bytes_needed=needed,
        )

    def predict(
        self,
        arrays: Sequence[NDArray[Any]],
        grid: Grid,
        *,
        region: Box | None = None,
        deadline: float | None = None,
    ) -> Job[EngineResult]:
        """Return a job that labels one case; progress comes with every tile and mirrored copy.

        Parameters
        ----------
        arrays
            One ``(z, y, x)`` volume for each of the model's channels.
        grid
            Their grid.
        region
            Box of the case outside which everything becomes background. Only tiles that reach into
            it are computed; inside, the labels are those of the whole volume.
        deadline
            Value of ``time.monotonic()`` at which to stop. The folds that are whole by then are
            averaged, and `Ran.cut_short` says what is missing.

        Raises
        ------
        ModelError
            If the channels do not fit the model, or not one fold was whole at the deadline.
        CaseError
            If the volumes are all zero or not finite.
        """
        with threads_set(self.settings.threads) as threads:
            return (yield from self._predict(arrays, grid, region, deadline, threads))

    def run_one_tile(self) -> None:
        """Run the first fold's network once on an empty tile, to measure how long it takes."""
        fold, checkpoint = self.checkpoints[0]
        with threads_set(self.settings.threads):
            tile = torch.zeros(
                (1, self.plans.inputs, *self.plans.configuration.patch), device=self.device
            )
            output = self._forward(fold, checkpoint)(tile)
            output.flatten()[:1].cpu()  # a graphics card answers before it is done

    def close(self) -> None:
        """Let go of the networks, and give a graphics card its memory back."""
        if self.first_stage is not None:
            self.first_stage.close()
        self._compiled.clear()
        self.network = nn.Identity()
        self.checkpoints = ()
        release_memory(self.device)

    def _predict(
        self,
        arrays: Sequence[NDArray[Any]],
        grid: Grid,
        region: Box | None,
        deadline: float | None,
        threads: int,
    ) -> Job[EngineResult]:
        watch = _Watch()
        previous, before = None, ""
        if self.first_stage is not None:
            first = yield from part(
                self.first_stage.predict(arrays, grid, deadline=deadline), 0, 0, _TOTAL
            )
            previous, before = first.labels, first.ran.cut_short
            watch.lap("first stage")
        prepared = yield from part(
            prepare(arrays, grid, self.plans, previous), 0, _PREPARED, _TOTAL
        )
        watch.lap("prepare")
        tiles = self._tiles(tuple(prepared.data.shape[1:]), grid, region, prepared)
        logits, done = yield from part(
            self._averaged(prepared, tiles, deadline), _PREPARED, _PREDICTED, _TOTAL
        )
        prepared = replace(prepared, data=None)
        watch.lap("predict")
        inside = None if region is None else prepared.frame.box_to_model(region, grid)
        labels = yield from part(
            export_labels(logits, prepared, self.plans, inside), _PREDICTED, _TOTAL, _TOTAL
        )
        probability = None
        if self.settings.keep_probability:
            probability = yield from part(
                export_probability(logits, prepared, self.plans), _TOTAL, _TOTAL, _TOTAL
            )
        watch.lap("export")
        yield Progress(_TOTAL, _TOTAL, "Done")
        ran = self._ran(tiles, done, threads, watch.laps)
        if before:
            ran = replace(
                ran, cut_short="; ".join(filter(None, (f"first stage: {before}", ran.cut_short)))
            )
        return EngineResult(labels, ran, probability)

    def _averaged(
        self, prepared: Prepared, tiles: TileGrid, deadline: float | None
    ) -> Job[tuple[Any, tuple[str, ...]]]:
        """Return the mean output of the folds, in half precision, and which folds are in it."""
        total: Any = None
        done: list[str] = []
        count = len(self.checkpoints)
        for place, (fold, checkpoint) in enumerate(self.checkpoints):
            said = f"Fold {fold}, {place + 1} of {count}" if count > 1 else "Predicting"
            if done and deadline is not None and time.monotonic() >= deadline:
                break
            yield Progress(place, count, said)
            forward = self._forward(fold, checkpoint)
            summing = sum_tiles(
                forward,
                prepared.data,
                tiles,
                self.plans.labels.heads,
                flips=self.flips,
                device=self.device,
                sums_on=self._sums_on(tiles),
                deadline=deadline,
                text=said,
            )
            try:
                logits = yield from part(summing, place * 1000, (place + 1) * 1000, count * 1000)
            except TimeIsUp as stop:
                if done:
                    break
                raise ModelError(
                    f"{self.card.name} should finish one fold within the time limit, but its "
                    f"{len(tiles.places)} tiles x {len(self.flips) + 1} copies took longer: allow "
                    "more time, choose fewer mirrored copies or a larger step, or a region"
                ) from stop
            total = logits if total is None else total.add_(logits)
            done.append(fold)
        if len(done) > 1:
            total /= len(done)
        return total, tuple(done)

    def _forward(self, fold: str, checkpoint: Checkpoint) -> Forward:
        if self.settings.backend == "openvino":
            if fold not in self._compiled:
                from napari_mamamia.segmentation.nnunet_openvino import compiled_network

                put_weights(self.network, checkpoint)
                self._compiled[fold] = compiled_network(
                    self.network, self.plans, self._sum_of(fold), self.settings
                )
            return self._compiled[fold]
        if self._filled != fold:
            put_weights(self.network, checkpoint)
            self._filled = fold
        return _torch_forward(self.network, self.device, self.settings.precision)

    def _sums_on(self, tiles: TileGrid) -> str:
        """Return where sums are kept: on a card if they take less than half of what is free."""
        free = free_bytes(self.device)
        needed = 2 * (self.plans.labels.heads + 1) * int(np.prod(tiles.padded))
        return self.device if free is not None and needed < free / 2 else "cpu"

    def _sum_of(self, fold: str) -> str:
        name = self.checkpoints[0][1].path.name
        wanted = str(PurePosixPath(self.card.inner) / f"fold_{fold}" / name)
        return next((w.sha256 for w in self.card.weights if w.name == wanted), "")

    def _shape(self, grid: Grid) -> Sequence[int]:
        frame = model_frame(grid, self.plans)
        spacing = self.plans.configuration.spacing
        wanted = spacing if len(spacing) == 3 else (frame.spacing[0], *spacing)
        return target_shape(frame.shape, frame.spacing, wanted)

    def _tiles(
        self,
        shape: Sequence[int],
        grid: Grid,
        region: Box | None,
        prepared: Prepared | None = None,
    ) -> TileGrid:
        patch, step = self.plans.configuration.patch, self.settings.step
        if region is None:
            return tile_grid(shape, patch, step)
        frame = model_frame(grid, self.plans)
        crop = Box.whole(frame.shape) if prepared is None else prepared.box
        inside = frame.box_to_model(region, grid)
        start, stop = [], []
        for a, b, c, d, n in zip(
            inside.start, inside.stop, crop.start, crop.stop, shape, strict=True
        ):
            scale = n / (d - c)
            low = min(max(int((a - c) * scale) - _MARGIN, 0), n)
            start.append(low)
            stop.append(max(min(int((b - c) * scale) + 1 + _MARGIN, n), low))
        box = Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2]))
        return tile_grid(shape, patch, step, box)

    def _ran(
        self,
        tiles: TileGrid,
        done: tuple[str, ...],
        threads: int,
        laps: Sequence[tuple[str, float]],
    ) -> Ran:
        cut = ""
        if len(done) < len(self.checkpoints):
            cut = f"the time limit came after {len(done)} of {len(self.checkpoints)} folds"
        return Ran(
            folds_asked=self.folds,
            folds_done=done,
            tiles=len(tiles.places),
            tiles_skipped=tiles.skipped,
            passes=len(self.flips) + 1,
            step=self.settings.step,
            device=self.device,
            backend=self.settings.backend,
            precision=_precision(self.settings, self.device),
            threads=threads,
            cut_short=cut,
            seconds=tuple(laps),
        )


def load_nnunet(card: ModelCard, settings: EngineSettings | None = None) -> Job[NnUNetEngine]:
    """Return a job that loads a model: unpacks a zip, reads weights as data, builds the network.

    Raises
    ------
    ModelError
        If the card is of another kind of model, a fold or checkpoint is missing, the file is
        damaged or wants to run something, the trainer is unknown, or the weights do not fit.
    MissingExtraError
        If the backend is not installed.
    """
    settings = settings or EngineSettings()
    if card.kind is not ModelKind.NNUNET or card.missing:
        kind = f"{card.path} should be an nnU-Net v2 model, but is {card.kind.value}"
        raise ModelError("; ".join(card.missing) or f"{kind}: choose another")
    device = choose_device("cpu" if settings.backend == "openvino" else settings.device)
    folder = card.path
    if card.is_zip:
        folder = yield from unpack(card.path, model_cache())
    yield Progress(0, 2, "Loading the model")
    root = folder / card.inner if card.inner else folder
    checkpoints = tuple(_checkpoints(root, card, settings))
    trainer = checkpoints[0][1].trainer
    if not trainer_known(trainer) and not settings.accept_trainer:
        raise ModelError(
            f"{card.name} should come from one of nnU-Net's own trainers, but was made by "
            f"{trainer!r}, whose code is not at hand: if it uses the network of the plans, accept "
            'the trainer ("accept_trainer": true in the recipe)'
        )
    plans = _plans(root, checkpoints[0][1].configuration or card.configuration)
    yield Progress(1, 2, "Loading the model")
    network = build_network(
        plans.configuration.architecture, plans.inputs, plans.labels.heads, trainer, str(root)
    )
    put_weights(network, checkpoints[0][1])
    engine = NnUNetEngine(
        card, plans, settings, device, network.to(device), checkpoints, _filled=checkpoints[0][0]
    )
    if plans.configuration.previous_stage:
        engine.first_stage = yield from _first_stage(root, card, plans, settings)
    yield Progress(2, 2, "Loaded")
    return engine


def _first_stage(
    root: Path, card: ModelCard, plans: Plans, settings: EngineSettings
) -> Job[NnUNetEngine]:
    """Load the model whose labels a cascade's second stage refines; it lies beside it."""
    from napari_mamamia.segmentation.weights import recognise_model

    names = root.name.split("__")
    folder = root.parent / "__".join([*names[:-1], plans.configuration.previous_stage])
    before = recognise_model(folder, inner="", checksums=bool(card.sha256))
    folds = tuple(fold for fold in settings.folds if fold in before.folds)
    own = replace(settings, folds=folds, checkpoint="", keep_probability=False)
    return (yield from load_nnunet(before, own))


def _checkpoints(
    root: Path, card: ModelCard, settings: EngineSettings
) -> "list[tuple[str, Checkpoint]]":
    folds = settings.folds or card.folds
    absent = [fold for fold in folds if fold not in card.folds]
    if absent:
        raise ModelError(
            f"{card.name} should have fold(s) {', '.join(folds)}, but {', '.join(absent)} is not "
            f"there; it has {', '.join(card.folds)}: choose among these, or copy the missing folder"
        )
    name = settings.checkpoint or next(iter(card.checkpoints), "")
    if not name:
        raise ModelError(
            f"the folds of {card.name} should share a checkpoint of one name, but have none in "
            "common: name one with the checkpoint setting"
        )
    return [(fold, load_checkpoint(root / f"fold_{fold}" / name)) for fold in folds]


def _plans(root: Path, configuration: str) -> Plans:
    texts = []
    for name in ("plans.json", "dataset.json"):
        try:
            texts.append((root / name).read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(
                f"{root / name} should be readable, but {error}: copy the model again"
            ) from error
    return read_plans(texts[0], texts[1], configuration, str(root))


def _torch_forward(network: nn.Module, device: str, precision: str) -> Forward:
    """Return the network as a function, with the precision that nnU-Net uses on a device.

    On CUDA that is torch's own mixed precision. bf16 on the processor is asked for by name only.
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


def _precision(settings: EngineSettings, device: str) -> str:
    if device == "cuda" and settings.precision == "fp32":
        return "fp16 autocast"
    return settings.precision


@dataclass(slots=True)
class _Watch:
    """Seconds between stages."""

    last: float = field(default_factory=time.perf_counter)
    laps: list[tuple[str, float]] = field(default_factory=list)

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps.append((name, round(now - self.last, 3)))
        self.last = now

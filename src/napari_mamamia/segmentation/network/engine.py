"""`NetworkEngine`: a single-file network that is loaded once and run tile by tile.

Tiles have the same positions as in nnU-Net and are averaged in the same way, but in single
precision. The recipe defines all steps before and after the network.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError, ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.device import release_memory, sums_on, threads_set
from napari_mamamia.segmentation.model.engine import EngineInput, Laps
from napari_mamamia.segmentation.model.engine_settings import (
    EngineResult,
    EngineSettings,
    Ran,
    TilePlan,
)
from napari_mamamia.segmentation.model.network_spec import NetworkSpec, OutputKind, TileWeight
from napari_mamamia.segmentation.model.nnunet_geometry import Frame
from napari_mamamia.segmentation.model.nnunet_tiles import (
    TileGrid,
    TimeIsUp,
    flips_of,
    gaussian_peak,
    sum_tiles,
    tile_grid,
)
from napari_mamamia.segmentation.model.planner import OverLimitError
from napari_mamamia.segmentation.network.card import network_path
from napari_mamamia.segmentation.network.choices import require_network_choices
from napari_mamamia.segmentation.network.cost import network_bytes, network_frame
from napari_mamamia.segmentation.network.runtime import NetworkRuntime, open_network

# Labels and the probability of foreground from a network's averaged outputs.

_SLICES: Final = 16


def labels_of(outputs: Any, spec: NetworkSpec, region: Box | None = None) -> NDArray[Any]:
    """Return the labels ``(a, b, c)`` that float32 outputs ``(heads, a, b, c)`` define.

    Voxels outside `region` are background.

    Parameters
    ----------
    outputs
        Outputs of the network, ``(heads, a, b, c)``.
    spec
        Input and output of the network.
    region
        Box to which the result is limited, or None.
    """
    labels = np.zeros(tuple(outputs.shape[1:]), dtype=spec.dtype)
    where = (slice(None),) * 3 if region is None else region.slices
    source, target = outputs[(slice(None), *where)], labels[where]
    for first in range(0, target.shape[0], _SLICES):
        report_progress(first, target.shape[0], "Writing labels")
        target[first : first + _SLICES] = decided(source[:, first : first + _SLICES], spec)
    return labels


def probability_of(
    outputs: Any, spec: NetworkSpec, region: Box | None = None
) -> NDArray[np.float16]:
    """Return the probability that each voxel is not background; 0 outside `region`.

    Parameters
    ----------
    outputs
        Outputs of the network, ``(heads, a, b, c)``.
    spec
        Input and output of the network.
    region
        Box to which the result is limited, or None.
    """
    probability = np.zeros(tuple(outputs.shape[1:]), dtype=np.float16)
    where = (slice(None),) * 3 if region is None else region.slices
    source, target = outputs[(slice(None), *where)], probability[where]
    for first in range(0, target.shape[0], _SLICES):
        report_progress(first, target.shape[0], "Writing probabilities")
        target[first : first + _SLICES] = foreground(source[:, first : first + _SLICES], spec)
    return probability


def decided(outputs: Any, spec: NetworkSpec) -> NDArray[Any]:
    """Return the label of each voxel.

    If background is an output, the largest output determines the label, and the first one if
    several are equal. Independent labels apply where their output is above the threshold, and later
    labels override earlier ones.

    Parameters
    ----------
    outputs
        Outputs of the network, ``(heads, a, b, c)``.
    spec
        Input and output of the network.
    """
    values = [value for _, value in spec.labels]
    if spec.has_background:
        table = np.array([0, *values], dtype=spec.dtype)
        chosen: NDArray[Any] = table[np.argmax(outputs.numpy(), axis=0)]
        return chosen
    shares = torch.sigmoid(outputs) if spec.output is OutputKind.LABEL_LOGITS else outputs
    labels = np.zeros(tuple(outputs.shape[1:]), dtype=spec.dtype)
    for share, value in zip(shares.numpy(), values, strict=True):
        labels[share > spec.threshold] = value
    return labels


def foreground(outputs: Any, spec: NetworkSpec) -> NDArray[Any]:
    """Return one minus the background probability, or the maximum over independent labels.

    Parameters
    ----------
    outputs
        Outputs of the network, ``(heads, a, b, c)``.
    spec
        Input and output of the network.
    """
    if spec.output is OutputKind.LOGITS:
        probability = 1 - torch.softmax(outputs, dim=0)[0]
    elif spec.output is OutputKind.PROBABILITIES:
        probability = 1 - outputs[0]
    elif spec.output is OutputKind.LABEL_LOGITS:
        probability = torch.sigmoid(outputs).amax(dim=0)
    else:
        probability = outputs.amax(dim=0)
    clipped: NDArray[Any] = probability.clamp(0, 1).numpy()
    return clipped


# The volumes of a case as a network sees them: reoriented, in single precision, one tensor.


def volumes_of(arrays: Sequence[NDArray[Any]], grid: Grid, frame: Frame, spec: NetworkSpec) -> Any:
    """Return the channels as a single reoriented float32 tensor ``(channel, a, b, c)``.

    Parameters
    ----------
    arrays
        One ``(z, y, x)`` volume for each channel.
    grid
        The grid of the case.
    frame
        Transform between the case's axes and the network's axes.
    spec
        Input and output of the network.

    Raises
    ------
    ModelError
        If the number of volumes or a shape does not match the recipe or the case.
    CaseError
        If every voxel is zero, or a voxel is not finite.
    """
    if len(arrays) != len(spec.channels):
        raise ModelError(
            f"expected one image for each of the network's "
            f"{count_of(len(spec.channels), 'channel')} ({', '.join(spec.channels)}), but got "
            f"{len(arrays)}; choose one image for each channel"
        )
    data = torch.empty((len(arrays), *frame.shape), dtype=torch.float32)
    for index, (name, array) in enumerate(zip(spec.channels, arrays, strict=True)):
        report_progress(index, len(arrays), "Preparing")
        if array.shape != grid.shape:
            raise ModelError(
                f"expected channel {name} to have the shape of the case, {grid.shape} (z, y, x), "
                f"but its shape is {array.shape}; use channels on the case's own grid"
            )
        data[index] = torch.from_numpy(
            np.ascontiguousarray(frame.to_model(array), dtype=np.float32)
        )
        if not bool(torch.isfinite(data[index]).all()):
            raise CaseError(
                f"expected channel {name} to be finite everywhere, but it contains NaN or "
                "infinity; export the images again"
            )
    if not bool(data.any()):
        raise CaseError(
            "every voxel of the input is zero; choose the images that belong to the case"
        )
    return data


_TOTAL = 1000  # steps of a whole run
_PREPARED = 30
_PREDICTED = 970


@dataclass(slots=True, eq=False)
class NetworkEngine:
    """A loaded network; create it with `load_network` and release it with `close`."""

    card: ModelCard
    spec: NetworkSpec
    settings: EngineSettings
    runtime: NetworkRuntime | None

    @property
    def flips(self) -> tuple[tuple[int, ...], ...]:
        """Mirrored copies other than the original tile, each as a set of batch axes."""
        axes = self.spec.mirror_axes if self.settings.mirroring else ()
        return flips_of(axes, self.settings.most_copies)

    def plan(self, grid: Grid, region: Box | None = None) -> TilePlan:
        """Return the cost of a case on `grid`."""
        tiles = self._make_tiles(grid, region)
        numbers = len(self.spec.channels) + self.spec.heads + 1
        return TilePlan(
            tiles=len(tiles.places),
            skipped=tiles.skipped,
            passes=len(self.flips) + 1,
            folds=1,
            model_shape=tiles.shape,
            bytes_needed=network_bytes(numbers, tiles.padded, grid),
        )

    def predict(self, given: EngineInput) -> EngineResult:
        """Label one case as in `Engine.predict`; the whole pass must finish before the deadline.

        Raises
        ------
        ModelError
            If channels or outputs do not fit the recipe.
        OverLimitError, CaseError
            As in `Engine.predict`.
        """
        with threads_set(self.settings.threads) as threads:
            return self._predict_case(given, threads)

    def run_one_tile(self) -> None:
        """Run the network once on an empty tile to measure its time."""
        runtime = self._require_runtime()
        shape = (1, len(self.spec.channels), *self.spec.patch)
        with threads_set(self.settings.threads):
            output = runtime.forward(torch.zeros(shape, device=runtime.tiles_on))
            output.flatten()[:1].cpu()  # a GPU returns before it has finished

    def close(self) -> None:
        """Release the network and its GPU memory."""
        runtime, self.runtime = self.runtime, None
        if runtime is not None:
            on = runtime.tiles_on
            # This name would also keep the network in the card's memory.
            del runtime
            release_memory(on)

    def _predict_case(self, given: EngineInput, threads: int) -> EngineResult:
        runtime, laps = self._require_runtime(), Laps()
        frame = network_frame(given.grid, self.spec.orientation)
        with part(0, _PREPARED, _TOTAL):
            data = volumes_of(given.arrays, given.grid, frame, self.spec)
        laps.add("prepare")
        tiles = self._make_tiles(given.grid, given.region)
        inside = None if given.region is None else frame.box_to_model(given.region, given.grid)
        with part(_PREPARED, _PREDICTED, _TOTAL):
            outputs = self._average_tiles(runtime, data, tiles, given.deadline)
        del data
        laps.add("predict")
        with part(_PREDICTED, _TOTAL, _TOTAL):
            labels = labels_of(outputs, self.spec, inside)
        probability = None
        if self.settings.keep_probability:
            with part(_TOTAL, _TOTAL, _TOTAL):
                whole = probability_of(outputs, self.spec, inside)
            probability = np.ascontiguousarray(frame.from_model(whole))
        laps.add("export")
        report_progress(_TOTAL, _TOTAL, "Done")
        ran = self._describe_run(runtime, tiles, threads, laps.done)
        return EngineResult(np.ascontiguousarray(frame.from_model(labels)), ran, probability)

    def _average_tiles(
        self, runtime: NetworkRuntime, data: Any, tiles: TileGrid, deadline: float | None
    ) -> Any:
        """Return the mean output of overlapping tiles as float32 on the CPU."""
        needed = 4 * (self.spec.heads + 1) * math.prod(tiles.padded)
        weigh = _make_gaussian if self.spec.weight is TileWeight.GAUSSIAN else _make_constant
        try:
            return sum_tiles(
                runtime.forward,
                data,
                tiles,
                self.spec.heads,
                flips=self.flips,
                device=runtime.tiles_on,
                sums_on=sums_on(runtime.tiles_on, needed),
                deadline=deadline,
                weigh=weigh,
            )
        except TimeIsUp as stop:
            raise OverLimitError(
                f"expected {self.card.name} to finish within the time limit, but its "
                f"{len(tiles.places)} tiles x {len(self.flips) + 1} copies took longer; allow "
                "more time, choose a larger step, or restrict the region"
            ) from stop

    def _make_tiles(self, grid: Grid, region: Box | None) -> TileGrid:
        frame = network_frame(grid, self.spec.orientation)
        inside = None if region is None else frame.box_to_model(region, grid)
        return tile_grid(frame.shape, self.spec.patch, self.settings.step, inside)

    def _require_runtime(self) -> NetworkRuntime:
        if self.runtime is None:
            raise ModelError(f"{self.card.name} is closed; load it again")
        return self.runtime

    def _describe_run(
        self,
        runtime: NetworkRuntime,
        tiles: TileGrid,
        threads: int,
        seconds: Sequence[tuple[str, float]],
    ) -> Ran:
        return Ran(
            folds_asked=(),
            folds_done=(),
            tiles=len(tiles.places),
            tiles_skipped=tiles.skipped,
            passes=len(self.flips) + 1,
            step=self.settings.step,
            device=runtime.device,
            backend=runtime.backend,
            precision=runtime.precision or self.settings.precision,
            threads=runtime.threads or threads,
            seconds=tuple(seconds),
        )


def load_network(card: ModelCard, settings: EngineSettings) -> NetworkEngine:
    """Load a single-file network; see `open_network`.

    Parameters
    ----------
    card
        The card of the model.
    settings
        Settings of the run.

    Raises
    ------
    ModelError
        If the network has no recipe, a setting is not supported, or the file is damaged, contains
        forbidden code, or contradicts the recipe.
    MissingExtraError
        If the runtime is not installed.
    """
    if card.missing or card.network is None:
        reason = (
            f"expected {card.path} to have a recipe, but found none; write a recipe for "
            f"{card.name} next to the file"
        )
        raise ModelError("; ".join(card.missing) or reason)
    require_network_choices(card, settings)
    report_progress(0, 1, "Loading the network")
    path = network_path(card.path, card.weights[0].name)
    runtime = open_network(card.kind, path, card.network, settings)
    report_progress(1, 1, "Loaded")
    return NetworkEngine(card, card.network, settings, runtime)


def _make_gaussian(patch: tuple[int, ...], device: str) -> Any:
    """Return nnU-Net's tile weights in single precision."""
    weight = torch.from_numpy(gaussian_peak(patch)).to(device=device, dtype=torch.float32)
    weight[weight == 0] = torch.min(weight[weight != 0])
    return weight


def _make_constant(patch: tuple[int, ...], device: str) -> Any:
    return torch.ones(patch, dtype=torch.float32, device=device)

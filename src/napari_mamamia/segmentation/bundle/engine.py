"""The engine of MONAI bundles, which reproduces MONAI's result without running bundle code.

Transforms and networks are MONAI's classes with arguments from the bundle's configs; windows are
blended as in MONAI. With torch in single precision on the CPU, labels and probabilities equal
those of the bundle's own workflow.
"""

import inspect
import math
import pickle
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

import monai
import monai.networks.nets
import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError, ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.segmentation.bundle.allowed import LOOKING_AROUND, network_name
from napari_mamamia.segmentation.bundle.config import read_config, read_format
from napari_mamamia.segmentation.bundle.cost import bundle_bytes
from napari_mamamia.segmentation.bundle.files import (
    bundle_root,
    bundle_weights,
    read_inference,
    read_metadata,
)
from napari_mamamia.segmentation.bundle.references import IN_A_ROOM, WRAP, NumberType, understood
from napari_mamamia.segmentation.bundle.settings import ONLY_NETWORK, require_meant
from napari_mamamia.segmentation.bundle.steps import Step
from napari_mamamia.segmentation.bundle.transforms import (
    BundleTransforms,
    make_transforms,
    said_by_monai,
)
from napari_mamamia.segmentation.bundle.windows import (
    WindowGrid,
    WindowTimeIsUp,
    blend_windows,
    window_grid,
)
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
from napari_mamamia.segmentation.model.nnunet_files import model_cache, open_files, unpack
from napari_mamamia.segmentation.model.planner import OverLimitError
from napari_mamamia.segmentation.model.stages import Laps
from napari_mamamia.segmentation.network.script import read_script
from napari_mamamia.segmentation.nnunet.checkpoint import (
    DAMAGE,
    require_plain_zip,
    unsafe_globals,
    unwrapped,
)

# The network of a MONAI bundle: TorchScript, or an allowed class with weights read as data.

_INNER: Final = ("model", "state_dict", "network")
_COPY: Final = "copy the bundle again from its source"


def load_network(path: Path, step: Step | None, where: str) -> nn.Module:
    """Return the network with its weights, ready to predict, on the CPU.

    Parameters
    ----------
    path
        ``models/model.ts`` or ``models/model.pt``.
    step
        The class and its arguments, for weights without a network; None if the config has none.
    where
        Name of the config for messages.

    Raises
    ------
    ModelError
        If the file is damaged or contains code, the class is not in the allow-list, or the weights
        do not fit it.
    """
    if path.suffix == ".ts":
        return read_script(path)
    if step is None:
        raise ModelError(
            f"expected {where} to have network_def with the class of the network, since "
            f"{path.name} holds weights only; complete the bundle, or export the network as "
            "models/model.ts"
        )
    network = _build_network(step, where)
    weights = _find_weights(path)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        reason = "; ".join(line.strip() for line in str(error).splitlines()[1:4])
        raise ModelError(
            f"expected {path} to hold the weights of {step.name} as described by {where}, but "
            f"they do not fit ({reason}); {_COPY}"
        ) from error
    return network.eval()


def _build_network(step: Step, where: str) -> nn.Module:
    """Return the network without weights, an instance of MONAI's class with this allowed name."""
    name = network_name(step, where)
    kind: Any = getattr(monai.networks.nets, name, None) if name else None
    if not inspect.isclass(kind):
        raise ModelError(
            f"{where}: expected {step.key} to be a network of MONAI {monai.__version__}, but it "
            f"is {step.name}, which was not imported; check which version the bundle was made "
            "for, or export the network as models/model.ts"
        )
    arguments = understood(dict(step.arguments), where)
    if any(isinstance(value, NumberType) for value in arguments.values()):
        raise ModelError(f"{where}: {step.key} does not accept number types; correct the bundle")
    with said_by_monai(f"{where}: {step.key} ({name})"):
        network: nn.Module = kind(**arguments)
    return network


def _find_weights(path: Path) -> Mapping[str, Any]:
    """Return the table of tensors in a file: the whole file, or an entry with a common name."""
    table = _load_file(path)
    for name in _INNER:
        if isinstance(table, Mapping) and isinstance(table.get(name), Mapping):
            table = table[name]
    if not isinstance(table, Mapping) or not all(torch.is_tensor(v) for v in table.values()):
        raise ModelError(
            f"expected {path} to hold a network's weights by name, but it holds other objects; "
            f"{_COPY}"
        )
    return unwrapped({str(name): value for name, value in table.items()})


def _load_file(path: Path) -> Any:
    require_plain_zip(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with open_plain(path) as stream:
                return torch.load(stream, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        names = ", ".join(unsafe_globals(path)) or "an unknown function"
        raise ModelError(
            f"expected {path} to hold numbers only, but loading it would call {names}; it was not "
            f"opened and nothing was run. Ask its author for a clean file, or {IN_A_ROOM}",
            remedies=(WRAP,),
        ) from error
    except DAMAGE as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ModelError(
            f"expected {path} to be a complete file of weights, but it is damaged or of another "
            f"kind ({reason}); {_COPY}"
        ) from error


_TOTAL: Final = 1000  # steps of a whole run: preparing, predicting, writing
_PREPARED: Final = 100
_PREDICTED: Final = 930
_MARGIN: Final = 2  # voxels of the network's grid that linear interpolation at an edge uses
_USUAL: Final = 96
"""Extent in voxels of a window for timing, if the real one is as large as the volume.

Source: most windows of MONAI's Model Zoo.
"""


@dataclass(slots=True, eq=False)
class BundleEngine:
    """A loaded bundle. Create it with `load_bundle`; release it with `close`."""

    card: ModelCard
    settings: EngineSettings
    device: str
    network: nn.Module = field(repr=False)
    transforms: BundleTransforms = field(repr=False)

    def plan(self, grid: Grid, region: Box | None = None) -> TilePlan:
        """Return the cost of a case on `grid`, assuming that no empty border is cropped."""
        require_meant(self.settings, self.card.name)
        shape, affine = self.transforms.shape(grid)
        windows = self._plan_windows(shape, affine, grid, region)
        inputs = len(self.transforms.data_format.channels)
        outputs = len(self.transforms.data_format.outputs)
        needed = bundle_bytes(inputs, outputs, windows.padded, grid)
        x, y, z = shape
        return TilePlan(
            tiles=windows.count,
            skipped=windows.skipped,
            passes=1,
            folds=1,
            model_shape=(z, y, x),
            bytes_needed=needed,
        )

    def predict(self, given: EngineInput) -> EngineResult:
        """Label one case, as `Engine.predict`; every step and group of windows reports progress.

        All windows are computed if a step after the network depends on voxels outside the region.

        Raises
        ------
        ModelError
            If the channels do not fit the bundle, a setting does not apply to it, or a step fails.
        OverLimitError
            If it is not finished at the deadline: one network has no partial result.
        CaseError
            If the volumes are not finite.
        """
        require_meant(self.settings, self.card.name)
        self._require_channels(given.arrays)
        with threads_set(self.settings.threads) as threads:
            return self._predict_case(given, threads)

    def run_one_tile(self) -> None:
        """Run the network once on an empty window, to measure its time."""
        require_meant(self.settings, self.card.name)
        size = self.transforms.config.windows.roi_size or (0, 0, 0)
        usual = [n if n > 0 else _USUAL for n in size]
        with threads_set(self.settings.threads):
            inputs = len(self.transforms.data_format.channels)
            output = self._run_network(torch.zeros((1, inputs, *usual), device=self.device))
            output.flatten()[:1].cpu()  # a GPU returns before it has finished

    def close(self) -> None:
        """Release the network and the memory of a GPU."""
        self.network = nn.Identity()
        release_memory(self.device)

    def _predict_case(self, given: EngineInput, threads: int) -> EngineResult:
        laps = Laps()
        with part(0, _PREPARED, _TOTAL):
            data = self.transforms.prepare(given.arrays, given.grid)
        image = data["image"]
        laps.add("prepare")
        windows = self._plan_windows(
            image.shape[1:], np.asarray(image.affine), given.grid, given.region
        )
        with part(_PREPARED, _PREDICTED, _TOTAL):
            outputs = self._compute_outputs(image, windows, given.deadline)
        laps.add("predict")
        with part(_PREDICTED, _TOTAL, _TOTAL):
            labels, probability = self.transforms.finish(
                data, outputs, given.grid, keep_probability=self.settings.keep_probability
            )
        for array in (labels, probability):
            _clear_outside(array, given.region)
        laps.add("export")
        report_progress(_TOTAL, _TOTAL, "Done")
        return EngineResult(labels, self._describe_run(windows, threads, laps.done), probability)

    def _compute_outputs(self, image: Any, windows: WindowGrid, deadline: float | None) -> Any:
        count = max(len(self.transforms.data_format.outputs), 1)
        needed = 4 * (count + 1) * math.prod(windows.padded)
        try:
            return blend_windows(
                self._run_network,
                image.as_tensor(),
                windows,
                self.transforms.config.windows,
                device=self.device,
                sums_on=sums_on(self.device, needed),
                deadline=deadline,
            )
        except WindowTimeIsUp as stop:
            raise OverLimitError(
                f"expected {self.card.name} to finish within the time limit, but its "
                f"{windows.count} windows took longer; allow more time, or draw a box around the "
                "lesion"
            ) from stop

    def _run_network(self, parts: Any) -> Any:
        mixed = self.device == "cuda" and self.transforms.config.mixed
        with torch.no_grad(), torch.autocast("cuda", enabled=mixed):
            return self.network(parts)

    def _plan_windows(
        self,
        shape: Sequence[int],
        affine: NDArray[np.float64],
        grid: Grid,
        region: Box | None,
    ) -> WindowGrid:
        inside = None if region is None or self._looks_around else _box_to(region, grid, affine)
        return window_grid(shape, self.transforms.config.windows, inside)

    @property
    def _looks_around(self) -> bool:
        """Return whether labels depend on distant outputs, so that every window is needed."""
        config = self.transforms.config
        # A mode that is a number is a spline order; its values depend on the whole volume.
        return any(step.name in LOOKING_AROUND for step in config.postprocessing) or any(
            isinstance(step.argument("mode"), int) for step in config.preprocessing
        )

    def _require_channels(self, arrays: Sequence[NDArray[Any]]) -> None:
        channels = self.transforms.data_format.channels
        if len(arrays) != len(channels):
            raise ModelError(
                f"{self.card.name} takes {count_of(len(channels), 'channel')} "
                f"({', '.join(channels)}), but "
                f"got {len(arrays)}; choose a recipe that makes these"
            )
        if not all(np.isfinite(array).all() for array in arrays):
            raise CaseError(
                "expected the images to be finite numbers, but they hold NaN or infinity; repair "
                "the files"
            )

    def _describe_run(
        self, windows: WindowGrid, threads: int, seconds: Sequence[tuple[str, float]]
    ) -> Ran:
        mixed = self.device == "cuda" and self.transforms.config.mixed
        return Ran(
            folds_asked=(ONLY_NETWORK,),
            folds_done=(ONLY_NETWORK,),
            tiles=windows.count,
            tiles_skipped=windows.skipped,
            passes=1,
            step=round(1 - self.transforms.config.windows.overlap[0], 4),
            device=self.device,
            backend="torch",
            precision="fp16 autocast" if mixed else "fp32",
            threads=threads,
            seconds=tuple(seconds),
        )


def load_bundle(card: ModelCard, settings: EngineSettings | None = None) -> BundleEngine:
    """Load a bundle: unpack a zip, and read configs and weights as data.

    Raises
    ------
    ModelError
        If the card is of another kind of model, a file is missing, damaged or contains code, a
        setting does not apply to a bundle, or the weights do not fit.
    """
    settings = settings or EngineSettings()
    if card.kind is not ModelKind.MONAI_BUNDLE or card.missing:
        kind = f"expected {card.path} to be a MONAI bundle, but it is {card.kind}; choose another"
        raise ModelError("; ".join(card.missing) or kind)
    require_meant(settings, card.name)
    device = choose_device(settings.device)
    folder = card.path
    if card.is_zip:
        folder = unpack(card.path, model_cache())
    report_progress(0, 2, "Loading the model")
    files = open_files(folder)
    config = read_config(read_inference(files))
    where = str(folder / bundle_root(files))
    transforms = make_transforms(config, read_format(read_metadata(files), where))
    report_progress(1, 2, "Loading the model")
    network = load_network(folder / bundle_weights(files), config.network, config.where)
    report_progress(2, 2, "Loaded")
    return BundleEngine(card, settings, device, network.to(device), transforms)


def _box_to(region: Box, grid: Grid, affine: NDArray[np.float64]) -> Box:
    """Return the box (x, y, z) of the network's grid that covers a box of the case."""
    ends = zip(region.start, region.stop, strict=True)
    corners = grid.to_world_mm(list(product(*((a - 0.5, b - 0.5) for a, b in ends))))
    there = (corners - affine[:3, 3]) @ np.linalg.inv(affine[:3, :3]).T
    low = np.maximum(np.floor(there.min(axis=0)) - _MARGIN, 0).astype(int)
    high = np.maximum(np.ceil(there.max(axis=0)) + _MARGIN + 1, low).astype(int)
    return Box((low[0], low[1], low[2]), (high[0], high[1], high[2]))


def _clear_outside(array: NDArray[Any] | None, region: Box | None) -> None:
    if array is None or region is None:
        return
    crop = array[region.slices].copy()
    array[...] = 0
    array[region.slices] = crop

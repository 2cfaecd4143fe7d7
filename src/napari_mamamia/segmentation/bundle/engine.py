"""Run MONAI bundles with the same result as MONAI, but without running bundle code.

Transforms and networks are MONAI's classes with arguments from the bundle's configs. With torch in
single precision on the CPU, labels and probabilities equal those of the bundle's own workflow.

MONAI reads files in nibabel's order (x, y, z), but arrays of a case are ``(z, y, x)``, so axes are
reversed for input and output. MONAI's own ``Invertd`` reverses its changes to the images.

MONAI's own ``sliding_window_inference`` blends the windows, so the result is bit-identical.
"""

import inspect
import math
import pickle
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

import monai
import monai.networks.nets
import monai.transforms
import numpy as np
import torch
from monai.data import MetaTensor
from monai.data.utils import dense_patch_slices
from monai.inferers.utils import sliding_window_inference
from monai.transforms import Activations, Compose, Invertd
from monai.utils import fall_back_tuple
from numpy.typing import NDArray
from torch import nn

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError, ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.segmentation.bundle.allowed import (
    AFTER,
    BEFORE,
    LOOKING_AROUND,
    SPATIAL,
    network_name,
)
from napari_mamamia.segmentation.bundle.config import (
    IN_SANDBOX,
    WRAP,
    BundleConfig,
    DataFormat,
    NumberType,
    Step,
    Windows,
    has_background,
    read_config,
    read_format,
    understood,
)
from napari_mamamia.segmentation.bundle.cost import bundle_bytes
from napari_mamamia.segmentation.bundle.files import (
    bundle_root,
    bundle_weights,
    read_inference,
    read_metadata,
)
from napari_mamamia.segmentation.bundle.settings import ONLY_NETWORK, require_meant
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.device import (
    choose_device,
    release_memory,
    sums_on,
    threads_set,
)
from napari_mamamia.segmentation.model.engine import EngineInput, Laps
from napari_mamamia.segmentation.model.engine_settings import (
    EngineResult,
    EngineSettings,
    Ran,
    TilePlan,
)
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.nnunet_files import model_cache, open_files, unpack
from napari_mamamia.segmentation.model.nnunet_tiles import require_finite
from napari_mamamia.segmentation.model.planner import OverLimitError
from napari_mamamia.segmentation.network.script import read_script
from napari_mamamia.segmentation.nnunet.checkpoint import (
    DAMAGE,
    require_plain_zip,
    unsafe_globals,
    unwrapped,
)

_IMAGE: Final = "image"
_PRED: Final = "pred"
Slices = tuple[slice, slice, slice]

_WHOLE: Final = (-1, -1, -1)
# The network of a MONAI bundle: TorchScript, or an allowed class with weights that are read as
# data.

_INNER: Final = ("model", "state_dict", "network")
_COPY: Final = "copy the bundle again from its source"


@dataclass(frozen=True, slots=True, eq=False)
class BundleTransforms:
    """The transforms of a bundle; create it with `make_transforms`."""

    config: BundleConfig
    data_format: DataFormat
    before: Any
    after: tuple[tuple[str, Any], ...]
    has_background: bool

    def prepare(self, arrays: Sequence[NDArray[Any]], grid: Grid) -> Mapping[str, Any]:
        """Return the input data for the network, including the key ``image``.

        Parameters
        ----------
        arrays
            One volume ``(z, y, x)`` on `grid` for each channel.

        Raises
        ------
        ModelError
            If a transform fails; the message includes MONAI's message.
        """
        data = self._read_images(arrays, grid)
        steps = self.config.preprocessing
        if self.config.lazy:
            report_progress(0, 1, "Preparing")
            with said_by_monai(f"{self.config.where}: preprocessing"):
                data = self.before(data)
            steps = ()
        for number, step in enumerate(steps):
            report_progress(number, len(steps), f"Preparing: {step.name}")
            with said_by_monai(f"{self.config.where}: {step.key}"):
                data = self.before(data, start=number, end=number + 1)
        self._check_image(data)
        return data

    def shape(self, grid: Grid) -> tuple[tuple[int, int, int], NDArray[np.float64]]:
        """Return the shape and affine (x, y, z) of the network's input if nothing is cropped.

        No voxel is computed, because MONAI's lazy mode applies the transforms only to the grid.
        """
        z, y, x = grid.shape
        # This is one number that appears as a whole volume, whose voxels are never read.
        nothing = torch.zeros(1).expand(1, x, y, z)
        data: dict[str, Any] = {
            key: MetaTensor(nothing, meta=_make_meta(grid, 0)) for key in self.config.images
        }
        for step, transform in zip(self.config.preprocessing, self.before.transforms, strict=True):
            if step.name == "ConcatItemsd":
                data[str(step.argument("name"))] = data[step.keys[0]]
            if step.name in SPATIAL:
                with said_by_monai(f"{self.config.where}: {step.key}"):
                    data = transform(data, lazy=True)
        image = data.get(_IMAGE, data[self.config.images[0]])
        a, b, c = (int(n) for n in image.peek_pending_shape())
        return (a, b, c), np.asarray(image.peek_pending_affine(), dtype=np.float64)

    def finish(
        self, data: Mapping[str, Any], outputs: Any, grid: Grid, *, keep_probability: bool
    ) -> tuple[NDArray[Any], NDArray[np.float16] | None]:
        """Return the labels and the foreground probability ``(z, y, x)`` on the case's grid.

        Parameters
        ----------
        data
            The result of `prepare`.
        outputs
            The outputs of the network, ``(output, x, y, z)`` on the CPU.
        grid
            The grid of the case.
        keep_probability
            Whether to compute the probability; otherwise it is None.
        """
        now: dict[str, Any] = {
            **data,
            _PRED: MetaTensor(outputs).copy_meta_from(data[_IMAGE], copy_attr=False),
        }
        shares = None
        names: list[str] = []
        for number, (name, transform) in enumerate(self.after):
            report_progress(number, len(self.after) + 1, f"Postprocessing: {name}")
            if name == "AsDiscreted" and shares is None and keep_probability:
                shares = self._compute_foreground(now, names)
            with said_by_monai(f"{self.config.where}: {name}"):
                now = transform(now)
            names.append(name)
        report_progress(len(self.after), len(self.after) + 1, "Writing labels")
        if "Invertd" not in names:
            now[_PRED] = self._undo_transforms(now, now[_PRED], nearest=True)
        labels = self._decide_labels(_as_array(now[_PRED], grid, self.config.where))
        if shares is None:
            return labels, None
        share = _as_array(shares, grid, self.config.where)[0]
        return labels, np.ascontiguousarray(np.clip(share, 0, 1).astype(np.float16))

    def _read_images(self, arrays: Sequence[NDArray[Any]], grid: Grid) -> dict[str, Any]:
        """Return images as LoadImaged would read them: (x, y, z), float32, channels stacked."""
        turned = [array.T.astype(np.float32) for array in arrays]
        if len(self.config.images) == 1 and len(turned) > 1:
            turned = [np.stack(turned, axis=0)]
        stacked = turned[0].ndim == 4
        return {
            key: MetaTensor.ensure_torch_and_prune_meta(
                image, _make_meta(grid, 0 if stacked else float("nan"))
            )
            for key, image in zip(self.config.images, turned, strict=True)
        }

    def _check_image(self, data: Mapping[str, Any]) -> None:
        image: Any = data.get(_IMAGE)
        count = len(self.data_format.channels)
        if not isinstance(image, MetaTensor) or image.ndim != 4 or image.shape[0] != count:
            got = f"{tuple(image.shape)}" if torch.is_tensor(image) else "none"
            raise ModelError(
                f"{self.config.where}: expected preprocessing to return 'image' with "
                f"{count_of(count, 'channel')} and three axes, but it returns {got}; correct the "
                "bundle, or ask its author"
            )

    def _compute_foreground(self, now: Mapping[str, Any], done: Sequence[str]) -> Any:
        """Return the foreground probability ``(1, x, y, z)`` on the images' grid."""
        pred = now[_PRED]
        shares = pred
        exclusive = self.has_background and pred.shape[0] > 1
        if "Activationsd" not in done:
            shares = Activations(softmax=exclusive, sigmoid=not exclusive)(pred)
            shares = shares * (pred != 0).any(dim=0, keepdim=True)  # voxels that were not computed
        first = shares[1:].sum(dim=0, keepdim=True) if exclusive else shares.amax(0, keepdim=True)
        return first if "Invertd" in done else self._undo_transforms(now, first, nearest=False)

    def _undo_transforms(self, now: Mapping[str, Any], values: Any, *, nearest: bool) -> Any:
        """Return `values` on the grid of the images as read."""
        key = _IMAGE if _IMAGE in self.config.images else self.config.images[0]
        undo = Invertd(_PRED, self.before, orig_keys=key, nearest_interp=nearest)
        with said_by_monai(f"{self.config.where}: undoing the preprocessing"):
            return undo({**now, _PRED: values})[_PRED]

    def _decide_labels(self, pred: NDArray[Any]) -> NDArray[Any]:
        """Return one label for each voxel; where outputs overlap, the later output wins."""
        if pred.shape[0] == 1:
            labels = np.rint(pred[0])
        else:
            labels = np.zeros(pred.shape[1:])
            first = 1 if self.has_background else 0
            for value, output in enumerate(pred[first:], start=1):
                labels[output > 0.5] = value
        if labels.min() < 0 or labels.max() > np.iinfo(np.uint16).max:
            raise ModelError(
                f"{self.config.where}: expected labels from 0 to 65535, but they range from "
                f"{labels.min():g} to {labels.max():g}; correct the bundle, or ask its author"
            )
        kind = np.uint8 if labels.max() < 255 else np.uint16
        return np.ascontiguousarray(labels.astype(kind))


def make_transforms(config: BundleConfig, data_format: DataFormat) -> BundleTransforms:
    """Return the transforms of a bundle that `objections` accepts.

    Raises
    ------
    ModelError
        If a transform is not allowed, or MONAI does not accept its arguments.
    """
    steps = [_make_transform(step, BEFORE, config.where) for step in config.preprocessing]
    before = Compose(steps, lazy=config.lazy)
    after = [
        (step.name, _make_transform(step, AFTER, config.where, before))
        for step in config.postprocessing
    ]
    return BundleTransforms(
        config, data_format, before, tuple(after), has_background(data_format, config)
    )


@contextmanager
def said_by_monai(where: str) -> Iterator[None]:
    """Convert MONAI's exceptions in the block to `ModelError`, and hide MONAI's warnings."""
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter(
                "ignore"
            )  # These are warnings about MONAI's own defaults, which are meant for programmers.
            yield
    except ModelError:
        raise
    except (RuntimeError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ModelError(
            f"{where} does not work with MONAI {monai.__version__} ({type(error).__name__}: "
            f"{reason}); check which MONAI version the bundle was made for"
        ) from error


def _make_transform(step: Step, allowed: frozenset[str], where: str, before: Any = None) -> Any:
    """Return an instance of the allowed MONAI transform with this name."""
    kind = getattr(monai.transforms, step.name, None) if step.name in allowed else None
    if kind is None:
        raise ModelError(
            f"{where}: expected {step.key} to be a transform of MONAI {monai.__version__}, but it "
            f"is {step.name}, which was not imported; check which MONAI version the bundle was "
            "made for"
        )
    values = understood(dict(step.arguments), where)
    arguments = {name: _convert_value(value) for name, value in values.items()}
    if step.name == "Invertd":
        arguments["transform"] = before
    with said_by_monai(f"{where}: {step.key} ({step.name})"):
        return kind(**arguments)


def _convert_value(value: Any) -> Any:
    if isinstance(value, NumberType):
        return getattr(torch, value.name)
    if isinstance(value, list):
        return [_convert_value(part) for part in value]
    return value


def _make_meta(grid: Grid, channel_dim: float) -> dict[str, Any]:
    """Return image metadata in the form in which MONAI's reader returns it.

    Source: data/image_reader.py, NibabelReader.
    """
    return {
        "affine": np.array(grid.affine),
        "original_affine": np.array(grid.affine),
        "spatial_shape": np.array(grid.shape[::-1]),
        "original_channel_dim": channel_dim,
        "space": "RAS",
    }


def _as_array(values: Any, grid: Grid, where: str) -> NDArray[Any]:
    """Return a tensor ``(channel, x, y, z)`` on `grid` as an array ``(channel, z, y, x)``."""
    array: NDArray[Any] = np.asarray(values.detach().cpu())
    if array.shape[1:] != grid.shape[::-1]:
        raise ModelError(
            f"{where}: expected the result to have the case's {grid.shape} voxels (z, y, x), but "
            f"it has {array.shape[:0:-1]}; the bundle's Invertd must undo all of its preprocessing"
        )
    return array.transpose(0, 3, 2, 1)


@dataclass(frozen=True, slots=True)
class WindowGrid:
    """The windows of a volume that is padded to at least one window; extents are (x, y, z).

    The network processes `groups` of windows together. `is_needed` states for each group whether it
    is computed.
    """

    padded: tuple[int, int, int]
    groups: tuple[tuple[Slices, ...], ...]
    is_needed: tuple[bool, ...]

    @property
    def count(self) -> int:
        """Number of windows that are computed."""
        groups = zip(self.groups, self.is_needed, strict=True)
        return sum(len(group) for group, is_needed in groups if is_needed)

    @property
    def skipped(self) -> int:
        """Number of windows that are not computed."""
        return sum(map(len, self.groups)) - self.count


def window_grid(shape: Sequence[int], windows: Windows, region: Box | None = None) -> WindowGrid:
    """Return MONAI's windows of a volume; with `region`, only groups that overlap it are needed.

    The first group is always computed, because it determines the number of the network's outputs.

    Examples
    --------
    >>> window_grid((10, 10, 25), Windows((10, 10, 10), overlap=(0.5, 0.5, 0.5))).count
    4
    """
    size = fall_back_tuple(windows.roi_size or _WHOLE, shape)
    padded = _make_triple(max(n, full) for n, full in zip(size, shape, strict=True))
    offset = [(p - full) // 2 for p, full in zip(padded, shape, strict=True)]
    steps = [
        n if n == full else max(int(n * (1 - share)), 1)
        for n, full, share in zip(size, padded, windows.overlap, strict=True)
    ]
    every = tuple(tuple(window) for window in dense_patch_slices(padded, size, steps))
    groups = tuple(every[k : k + windows.batch] for k in range(0, len(every), windows.batch))
    is_needed = (any(_is_in_region(window, offset, region) for window in group) for group in groups)
    return WindowGrid(padded, groups, (True, *tuple(is_needed)[1:]))


def _check_output(output: Any, parts: Any) -> Any:
    if not torch.is_tensor(output) or output.shape[2:] != parts.shape[2:]:
        got = tuple(output.shape) if torch.is_tensor(output) else type(output).__name__
        raise ModelError(
            f"expected the network to return one output with {tuple(parts.shape[2:])} voxels for "
            f"a window, but it returns {got}; run this network with MONAI itself"
        )
    require_finite(output)
    return output.float()


def _is_in_region(place: Slices, offset: Sequence[int], region: Box | None) -> bool:
    if region is None:
        return True
    return all(
        cut.start < stop + o and cut.stop > start + o
        for cut, o, start, stop in zip(place, offset, region.start, region.stop, strict=True)
    )


def _make_triple(values: Any) -> tuple[int, int, int]:
    a, b, c = (int(n) for n in values)
    return (a, b, c)


def load_network(path: Path, step: Step | None, where: str) -> nn.Module:
    """Return the network with its weights on the CPU, ready for prediction.

    Parameters
    ----------
    path
        The path of ``models/model.ts`` or ``models/model.pt``.
    step
        The class of the network and its arguments, for a file that has only weights, or None.
    where
        The name of the config in messages.

    Raises
    ------
    ModelError
        If the file is damaged or contains code, the class is not allowed, or the weights do not
        match the class.
    """
    if path.suffix == ".ts":
        return read_script(path)
    if step is None:
        raise ModelError(
            f"expected network_def with the network's class in {where}, because {path.name} "
            "contains only weights; add network_def, or export the network as models/model.ts"
        )
    network = _build_network(step, where)
    weights = _find_weights(path)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        reason = "; ".join(line.strip() for line in str(error).splitlines()[1:4])
        raise ModelError(
            f"expected {path} to contain the weights of {step.name} as described in {where}, but "
            f"they do not match ({reason}); {_COPY}"
        ) from error
    return network.eval()


def _build_network(step: Step, where: str) -> nn.Module:
    """Return an instance of the allowed MONAI network with this name, without weights."""
    name = network_name(step, where)
    kind: Any = getattr(monai.networks.nets, name, None) if name else None
    if not inspect.isclass(kind):
        raise ModelError(
            f"{where}: expected {step.key} to be a network of MONAI {monai.__version__}, but it "
            f"is {step.name}, which was not imported; check which MONAI version the bundle was "
            "made for, or export the network as models/model.ts"
        )
    arguments = understood(dict(step.arguments), where)
    if any(isinstance(value, NumberType) for value in arguments.values()):
        raise ModelError(
            f"{where}: the arguments of {step.key} must not be number types; correct the bundle"
        )
    with said_by_monai(f"{where}: {step.key} ({name})"):
        network: nn.Module = kind(**arguments)
    return network


def _find_weights(path: Path) -> Mapping[str, Any]:
    """Return the weights in a file: the whole content, or an entry with a common name."""
    table = _load_file(path)
    for name in _INNER:
        if isinstance(table, Mapping) and isinstance(table.get(name), Mapping):
            table = table[name]
    if not isinstance(table, Mapping) or not all(torch.is_tensor(v) for v in table.values()):
        raise ModelError(
            f"expected {path} to contain a network's weights by name, but it contains other "
            f"objects; {_COPY}"
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
            f"expected {path} to contain only numbers, but loading it would call {names}, so it "
            f"was not loaded. Ask its author for a file without code, or {IN_SANDBOX}",
            remedies=(WRAP,),
        ) from error
    except DAMAGE as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ModelError(
            f"expected {path} to be a complete weights file, but it is damaged or a different "
            f"kind of file ({reason}); {_COPY}"
        ) from error


_TOTAL: Final = 1000  # steps of a whole run: preparing, predicting, writing
_PREPARED: Final = 100
_PREDICTED: Final = 930
_MARGIN: Final = 2  # voxels of the network's grid that linear interpolation at an edge uses
_USUAL: Final = 96
"""Assumed window extent in voxels for timing, if the real window is as large as the volume.

Source: the size of most windows of MONAI's Model Zoo.
"""


@dataclass(slots=True, eq=False)
class BundleEngine:
    """A loaded bundle; create it with `load_bundle`, and release it with `close`."""

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
        """Label one case as `Engine.predict` does, and report the progress of steps and windows.

        All windows are computed if a step after the network depends on voxels outside the region.

        Raises
        ------
        ModelError
            If the channels do not match the bundle, a setting does not apply to it, or a step
            fails.
        OverLimitError
            If the run is not finished at the deadline, because a single network has no partial
            result.
        CaseError
            If the volumes are not finite.
        """
        require_meant(self.settings, self.card.name)
        self._require_channels(given.arrays)
        with threads_set(self.settings.threads) as threads:
            return self._predict_case(given, threads)

    def run_one_tile(self) -> None:
        """Run the network once on an empty window to measure the time."""
        require_meant(self.settings, self.card.name)
        size = self.transforms.config.windows.roi_size or (0, 0, 0)
        usual = [n if n > 0 else _USUAL for n in size]
        with threads_set(self.settings.threads):
            inputs = len(self.transforms.data_format.channels)
            output = self._run_network(torch.zeros((1, inputs, *usual), device=self.device))
            output.flatten()[:1].cpu()  # A GPU call returns before the computation has finished.

    def close(self) -> None:
        """Release the network and its GPU memory."""
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

    def _compute_outputs(self, image: Any, grid: WindowGrid, deadline: float | None) -> Any:
        """Return the blended outputs ``(output, x, y, z)`` on the CPU."""
        windows = self.transforms.config.windows
        count = max(len(self.transforms.data_format.outputs), 1)
        groups = zip(grid.groups, grid.is_needed, strict=True)
        n_done, n_outputs = 0, 0

        def predict(parts: Any) -> Any:
            nonlocal n_done, n_outputs
            _, is_needed = next(groups)
            if not is_needed:
                return torch.zeros((len(parts), n_outputs, *parts.shape[2:]), device=parts.device)
            if deadline is not None and time.monotonic() >= deadline:
                raise OverLimitError(
                    f"expected {self.card.name} to finish within the time limit, but its "
                    f"{grid.count} windows took longer; allow more time, or draw a box around the "
                    "lesion"
                )
            report_progress(n_done, grid.count, f"Predicting: window {n_done + 1} of {grid.count}")
            output = _check_output(self._run_network(parts), parts)
            n_done, n_outputs = n_done + len(parts), output.shape[1]
            return output

        outputs: Any = sliding_window_inference(
            image.as_tensor()[None],
            windows.roi_size or _WHOLE,
            windows.batch,
            predict,
            windows.overlap,
            windows.mode,
            windows.sigma_scale,
            windows.padding_mode,
            windows.cval,
            sw_device=self.device,
            device=sums_on(self.device, 4 * (count + 1) * math.prod(grid.padded)),
        )
        report_progress(n_done, grid.count, "Predicting")
        return outputs[0].cpu()

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
        # A mode that is a number is a spline order, whose values depend on the whole volume.
        return any(step.name in LOOKING_AROUND for step in config.postprocessing) or any(
            isinstance(step.argument("mode"), int) for step in config.preprocessing
        )

    def _require_channels(self, arrays: Sequence[NDArray[Any]]) -> None:
        channels = self.transforms.data_format.channels
        if len(arrays) != len(channels):
            raise ModelError(
                f"expected {count_of(len(channels), 'channel')} ({', '.join(channels)}) for "
                f"{self.card.name}, but got {len(arrays)}; choose a recipe that makes these "
                "channels"
            )
        if not all(np.isfinite(array).all() for array in arrays):
            raise CaseError(
                "expected the images to have only finite values, but they contain NaN or "
                "infinity; repair the files"
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
    """Load a bundle from a folder or zip; its configs and weights are read as data.

    Raises
    ------
    ModelError
        If the card describes a different kind of model, a file is missing, damaged or contains
        code, a setting does not apply to a bundle, or the weights do not match.
    """
    settings = settings or EngineSettings()
    if card.kind is not ModelKind.MONAI_BUNDLE or card.missing:
        kind = f"expected {card.path} to be a MONAI bundle, but it is {card.kind}; choose a bundle"
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
    """Return the box (x, y, z) on the network's grid that covers a box of the case."""
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

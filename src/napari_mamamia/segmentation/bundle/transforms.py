"""The transforms of a MONAI bundle: allowed classes of MONAI, applied to a case's arrays.

MONAI reads files in the order of nibabel, (x, y, z), and arrays of a case are ``(z, y, x)``, so
that axes are reversed on the way in and out. MONAI's own ``Invertd`` undoes its changes to the
images.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import monai.transforms
import numpy as np
import torch
from monai.data import MetaTensor
from monai.transforms import Activations, Compose, Invertd
from numpy.typing import NDArray

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import report_progress
from napari_mamamia.segmentation.bundle.allowed import AFTER, BEFORE, SPATIAL
from napari_mamamia.segmentation.bundle.config import BundleConfig, DataFormat, has_background
from napari_mamamia.segmentation.bundle.references import NumberType, understood
from napari_mamamia.segmentation.bundle.steps import Step

_IMAGE: Final = "image"
_PRED: Final = "pred"


@dataclass(frozen=True, slots=True, eq=False)
class BundleTransforms:
    """The transforms of a bundle. Create them with `make_transforms`."""

    config: BundleConfig
    data_format: DataFormat
    before: Any
    after: tuple[tuple[str, Any], ...]
    has_background: bool

    def prepare(self, arrays: Sequence[NDArray[Any]], grid: Grid) -> Mapping[str, Any]:
        """Return the data for the network, including ``image``.

        Parameters
        ----------
        arrays
            One ``(z, y, x)`` volume for each channel, on `grid`.

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
        """Return shape and affine (x, y, z) of the network's input, if nothing is cropped.

        Nothing is computed: MONAI's lazy mode follows the grid through the transforms.
        """
        z, y, x = grid.shape
        # One number that appears as a whole volume: its voxels are never read.
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
        """Return labels and foreground probability ``(z, y, x)`` on the case's grid.

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
            report_progress(number, len(self.after) + 1, f"After the network: {name}")
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
        """Return the data as LoadImaged reads them: (x, y, z), float32, channels stacked."""
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
                f"{self.config.where}: expected preprocessing to make 'image' with "
                f"{count_of(count, 'channel')} and three axes, but it makes {got}; correct the "
                "bundle, or ask its author"
            )

    def _compute_foreground(self, now: Mapping[str, Any], done: Sequence[str]) -> Any:
        """Return the probability of not being background ``(1, x, y, z)``, on the images' grid."""
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
        """Return one label for each voxel; where outputs overlap, the later one counts."""
        if pred.shape[0] == 1:
            labels = np.rint(pred[0])
        else:
            labels = np.zeros(pred.shape[1:])
            first = 1 if self.has_background else 0
            for value, output in enumerate(pred[first:], start=1):
                labels[output > 0.5] = value
        if labels.min() < 0 or labels.max() > np.iinfo(np.uint16).max:
            raise ModelError(
                f"{self.config.where}: expected labels to be 0 to 65535, but they are "
                f"{labels.min():g} to {labels.max():g}; correct the bundle, or ask its author"
            )
        kind = np.uint8 if labels.max() < 255 else np.uint16
        return np.ascontiguousarray(labels.astype(kind))


def make_transforms(config: BundleConfig, data_format: DataFormat) -> BundleTransforms:
    """Return the transforms of a bundle without `objections`.

    Raises
    ------
    ModelError
        If one is not in the allow-list, or MONAI does not accept its arguments.
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
    """Convert exceptions of MONAI within the block to `ModelError`, and hide its warnings."""
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter(
                "ignore"
            )  # warnings about MONAI's own defaults, meant for programmers
            yield
    except ModelError:
        raise
    except (RuntimeError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ModelError(
            f"{where} does not work with MONAI {monai.__version__} ({type(error).__name__}: "
            f"{reason}); check which version the bundle was made for"
        ) from error


def _make_transform(step: Step, allowed: frozenset[str], where: str, before: Any = None) -> Any:
    """Return a transform: MONAI's class with this allowed name."""
    kind = getattr(monai.transforms, step.name, None) if step.name in allowed else None
    if kind is None:
        raise ModelError(
            f"{where}: expected {step.key} to be a transform of MONAI {monai.__version__}, but it "
            f"is {step.name}, which was not imported; check which version the bundle was made for"
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
    """Return the metadata that MONAI's reader gives.

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
    """Return ``(channel, z, y, x)`` of a tensor ``(channel, x, y, z)`` that lies on `grid`."""
    array: NDArray[Any] = np.asarray(values.detach().cpu())
    if array.shape[1:] != grid.shape[::-1]:
        raise ModelError(
            f"{where}: expected the result to be on the case's {grid.shape} voxels (z, y, x), but "
            f"it has {array.shape[:0:-1]}; the bundle's Invertd must undo all of its preprocessing"
        )
    return array.transpose(0, 3, 2, 1)

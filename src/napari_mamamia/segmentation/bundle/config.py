"""Records that describe a MONAI bundle and its run; none of its classes is imported."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.bundle.references import References, understood
from napari_mamamia.segmentation.bundle.steps import (
    UNUSED,
    WRITERS,
    Step,
    read_steps,
    short_name,
    without_loader,
)

_MOST_EXTENT: Final = 4096
_REPAIR: Final = "correct the bundle, or ask its author"


@dataclass(frozen=True, slots=True)
class DataFormat:
    """Input and output in metadata.json; channels by name, in order."""

    channels: tuple[str, ...]
    outputs: tuple[str, ...]
    spatial_shape: tuple[str, ...] = ()
    value_range: tuple[str, ...] = ()

    @property
    def has_background(self) -> bool:
        """Whether output 0 is background."""
        return bool(self.outputs) and self.outputs[0].strip().casefold() == "background"

    @property
    def labels(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Labels as (name, values): output k has value k if there is background, else k + 1."""
        first = 1 if self.has_background else 0
        return tuple((name, (number,)) for number, name in enumerate(self.outputs[first:], start=1))


@dataclass(frozen=True, slots=True)
class Windows:
    """MONAI's sliding window; with `roi_size` None the network runs once on the whole volume.

    Extents below 1 stand for the extents of the volume. The defaults are SlidingWindowInferer's.
    """

    roi_size: tuple[int, int, int] | None = None
    batch: int = 1
    overlap: tuple[float, float, float] = (0.25, 0.25, 0.25)
    mode: str = "constant"
    sigma_scale: tuple[float, float, float] = (0.125, 0.125, 0.125)
    padding_mode: str = "constant"
    cval: float = 0.0


@dataclass(frozen=True, slots=True)
class BundleConfig:
    """Configuration of a bundle's run.

    `preprocessing` starts after the images are read into `images`. `images` are the keys for the
    channels: one key for all of them, or one for each. `mixed` says whether the bundle computes in
    half precision on a CUDA GPU.
    """

    where: str
    images: tuple[str, ...]
    preprocessing: tuple[Step, ...]
    postprocessing: tuple[Step, ...]
    windows: Windows
    network: Step | None
    lazy: bool = False
    mixed: bool = False


def read_format(metadata: Mapping[str, Any], where: str) -> DataFormat:
    """Return the input and output described in metadata.json.

    Raises
    ------
    ModelError
        If ``network_data_format`` lacks the input ``image`` or the output ``pred``.
    """
    try:
        data = metadata["network_data_format"]
        image, pred = data["inputs"]["image"], data["outputs"]["pred"]
        return DataFormat(
            channels=_name_channels(image, "channel"),
            outputs=_name_channels(pred, "output"),
            spatial_shape=tuple(map(str, image.get("spatial_shape", ()))),
            value_range=tuple(map(str, image.get("value_range", ()))),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelError(
            f"{where}: expected network_data_format with inputs.image and outputs.pred, each with "
            f"num_channels, in metadata.json ({type(error).__name__}: {error}); {_REPAIR}"
        ) from error


def read_config(references: References) -> BundleConfig:
    """Return the configuration of a bundle's run from its inference.json.

    Raises
    ------
    ModelError
        If a needed value is missing or an expression, or a bundle cannot have such a step.
    """
    where = references.where
    before, lazy = read_steps(references, "preprocessing")
    after, _ = read_steps(references, "postprocessing")
    images, before = without_loader(before, where)
    return BundleConfig(
        where=where,
        images=images,
        preprocessing=before,
        postprocessing=tuple(step for step in after if step.name not in WRITERS),
        windows=_read_windows(references),
        network=_find_network(references),
        lazy=lazy,
        mixed="evaluator#amp" in references and references.value("evaluator#amp") is True,
    )


def has_background(data_format: DataFormat, config: BundleConfig) -> bool:
    """Return whether output 0 is background: by its name, or because the largest output wins."""
    named = data_format.outputs[0].strip().casefold() == "background"
    wins = any(
        step.name == "AsDiscreted" and step.argument("argmax") not in (None, False, [False])
        for step in config.postprocessing
    )
    return len(data_format.outputs) > 1 and (named or wins)


def label_names(
    data_format: DataFormat, config: BundleConfig
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return labels as (name, values): output k has value k if there is background, else k + 1."""
    names = data_format.outputs[1 if has_background(data_format, config) else 0 :]
    return tuple((name, (value,)) for value, name in enumerate(names, start=1))


def _read_windows(references: References) -> Windows:
    where = references.where
    inferer = references.value("inferer")
    if not isinstance(inferer, Mapping):
        understood(inferer, where)
        raise ModelError(
            f"{where}: expected inferer to have _target_, but it is {inferer!r}; {_REPAIR}"
        )
    name = short_name(understood(inferer.get("_target_"), where), f"{where}: inferer")
    if name == "SimpleInferer":
        return Windows()
    if name not in ("SlidingWindowInferer", "SlidingWindowInfererAdapt"):
        raise ModelError(
            f"{where}: expected the inferer SlidingWindowInferer or SimpleInferer, but found "
            f"{name}; export the network as TorchScript and choose that file instead"
        )
    understood({k: v for k, v in inferer.items() if k not in UNUSED}, where)
    try:
        return _window_record(inferer)
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise ModelError(
            f"{where}: expected inferer to have roi_size with three whole numbers and an overlap "
            f"from 0 to below 1, but {error}; {_REPAIR}"
        ) from error


def _window_record(found: Mapping[str, Any]) -> Windows:
    default = Windows()
    overlap = _make_triple(found.get("overlap", default.overlap), float)
    batch = int(found.get("sw_batch_size", 1))
    mode = str(found.get("mode", default.mode))
    padding = str(found.get("padding_mode", default.padding_mode))
    if not all(0 <= share < 1 for share in overlap) or not 1 <= batch <= 1024:
        raise ValueError(f"the overlap is {overlap} and sw_batch_size {batch}")
    if mode not in ("constant", "gaussian"):
        raise ValueError(f"the mode is {mode!r}")
    if padding not in ("constant", "reflect", "replicate", "circular"):
        raise ValueError(f"padding_mode is {padding!r}")
    if found.get("with_coord"):
        raise ValueError("with_coord gives the network a second input")
    size = _make_triple(found["roi_size"], int)
    sigma = _make_triple(found.get("sigma_scale", default.sigma_scale), float)
    cval = float(found.get("cval", 0.0))
    if max(size) > _MOST_EXTENT or not all(0 < s <= 10 for s in sigma) or not math.isfinite(cval):
        raise ValueError(f"roi_size is {size}, sigma_scale {sigma} and cval {cval}")
    return Windows(size, batch, overlap, mode, sigma, padding, cval)


def _find_network(references: References) -> Step | None:
    """Return the network's class and arguments, or None if the config has none."""
    key = next((name for name in ("network_def", "network") if name in references), "")
    definition = references.value(key) if key else None
    if not isinstance(definition, Mapping) or "_target_" not in definition:
        return None
    arguments = {k: v for k, v in definition.items() if k not in UNUSED and k != "_disabled_"}
    target = str(understood(definition["_target_"], references.where))
    return Step(target, tuple(arguments.items()), key)


def _make_triple(value: Any, kind: Any) -> Any:
    values = list(value) if isinstance(value, list | tuple) else [value] * 3
    if len(values) != 3:
        raise ValueError(f"{value!r} has {len(values)} axes instead of 3")
    return tuple(kind(-1 if value is None else value) for value in values)


def _name_channels(found: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    count = int(found["num_channels"])
    if not 1 <= count <= 1000:
        raise ValueError(f"num_channels is {count}")
    names = found.get("channel_def") or {}
    return tuple(str(names.get(str(k), f"{kind} {k}")) for k in range(count))

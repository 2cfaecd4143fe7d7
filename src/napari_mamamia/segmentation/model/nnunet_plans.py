"""Read plans.json and dataset.json of an nnU-Net model, without executing code.

Names in plans (network, operations, resampling, normalisation, reader) are looked up in our own
tables and never imported, so a plans file cannot make this software call anything else. Source: the
format of nnunetv2 2.8.1, utilities/plans_handling/plans_handler.py.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.names import count_of
from napari_mamamia.io.files.foreign import explained
from napari_mamamia.io.files.json_text import parsed_json
from napari_mamamia.segmentation.model.nnunet_labels import Labels, read_labels

ANISOTROPY: Final = 3.0
"""Ratio of the spacings above which a volume is resampled slice by slice.

Source: nnunetv2 2.8.1, configuration.py, ANISO_THRESHOLD.
"""

_NORMALISATIONS: Final = frozenset(
    f"{name}Normalization" for name in ("ZScore", "CT", "No", "RescaleTo01", "RGBTo01")
)
_RESAMPLERS: Final = {
    "resample_data_or_seg_to_shape": "spline",
    "resample_torch_fornnunet": "torch",
    "no_resampling_hack": "none",
}
_PLAIN_NAME: Final = re.compile(r"^\w[\w.-]*$")
_MOST_EXTENT: Final = 4096
_MOST_ORDER: Final = 5
"""Largest order of splines. Source: SciPy, ndimage: "the order has to be in the range 0-5"."""
_SPACING_MM: Final = (0.001, 1000.0)  # beyond those of any scanner
_RESTORE: Final = "restore the plans.json that came with the model"


class ReaderKind(StrEnum):
    """Orientation in which a model expects volumes: as stored in the file, or as RAS."""

    AS_STORED = "as stored"
    RAS = "RAS"


_READERS: Final = {
    "SimpleITKIO": ReaderKind.AS_STORED,
    "NibabelIO": ReaderKind.AS_STORED,
    "SimpleITKIOWithReorient": ReaderKind.RAS,
    "NibabelIOWithReorient": ReaderKind.RAS,
}


@dataclass(frozen=True, slots=True)
class ChannelNorm:
    """Normalisation of one channel.

    With `in_mask`, only voxels that are not zero in all channels are used. `low`, `high`, `mean`
    and `std` describe the foreground of the training set and are used only for CT.
    """

    scheme: str
    in_mask: bool = False
    low: float = -math.inf
    high: float = math.inf
    mean: float = 0.0
    std: float = 1.0


@dataclass(frozen=True, slots=True)
class Resampling:
    """How volumes are resampled to a different spacing.

    `method` is "spline" (of order `order`, or `order_z` across thick slices), "torch" (linear) or
    "none". If `separate_z` is None, `ANISOTROPY` decides.
    """

    method: str
    order: int
    order_z: int = 0
    separate_z: bool | None = None
    anisotropy: float = ANISOTROPY


@dataclass(frozen=True, slots=True)
class Architecture:
    """The class and arguments of the network, as named in the plans.

    `imports` are the arguments whose values are class names.
    """

    class_name: str
    arguments: Mapping[str, Any]
    imports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Configuration:
    """One configuration of a model; patch and spacing are along its axes (two axes for 2d)."""

    name: str
    patch: tuple[int, ...]
    spacing: tuple[float, ...]
    norms: tuple[ChannelNorm, ...]
    data: Resampling
    seg: Resampling
    logits: Resampling
    architecture: Architecture
    previous_stage: str = ""


@dataclass(frozen=True, slots=True)
class Plans:
    """All data needed to run one configuration of a model, except the weights."""

    dataset: str
    name: str
    reader: ReaderKind
    transpose_forward: tuple[int, int, int]
    transpose_backward: tuple[int, int, int]
    channels: tuple[str, ...]
    labels: Labels
    configuration: Configuration

    @property
    def inputs(self) -> int:
        """Number of input channels of the network; a cascade adds one for each label."""
        extra = len(self.labels.foreground) if self.configuration.previous_stage else 0
        return len(self.channels) + extra


def parsed(text: str, where: str) -> dict[str, Any]:
    """Return the object in a JSON text; raise `ModelError` if the text is not a JSON object.

    Parameters
    ----------
    text
        The text.
    where
        The name of the model or file in messages.
    """
    try:
        content = parsed_json(text)
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"cannot read {where} as JSON: {error}; restore the file that came with the model"
        ) from error
    if not isinstance(content, dict):
        raise ModelError(
            f"expected a JSON object in {where}, but found a {type(content).__name__}; {_RESTORE}"
        )
    return content


def read_plans(plans_text: str, dataset_text: str, configuration: str, where: str) -> Plans:
    """Return a model's plans for one configuration, read from plans.json and dataset.json.

    Raises
    ------
    ModelError
        If a file is invalid, has an unknown entry, or lacks the configuration.
    """
    plans = parsed(plans_text, f"{where}: plans.json")
    dataset = parsed(dataset_text, f"{where}: dataset.json")
    expected = f"{configuration} as nnU-Net v2 describes it"
    with explained(f"{where}: plans.json", expected, _RESTORE, ModelError):
        return _make_plans(plans, dataset, configuration, where)


def _make_plans(
    plans: Mapping[str, Any], dataset: Mapping[str, Any], configuration: str, where: str
) -> Plans:
    forward = _read_permutation(plans["transpose_forward"], where)
    backward = _read_permutation(plans["transpose_backward"], where)
    names = dataset.get("channel_names", dataset.get("modality"))
    if not isinstance(names, dict) or not names:
        raise ModelError(
            f"{where}: expected dataset.json to name the channels, but it has {names!r}; restore "
            "the dataset.json that came with the model"
        )
    channels = tuple(str(names[key]) for key in sorted(names, key=int))
    intensities = plans.get("foreground_intensity_properties_per_channel") or plans.get(
        "foreground_intensity_properties_by_modality", {}
    )
    section = _resolve_inheritance(plans["configurations"], configuration, where)
    return Plans(
        dataset=str(plans["dataset_name"]),
        name=str(plans.get("plans_name", "")),
        reader=_look_up_name(_READERS, plans["image_reader_writer"], "reader", where),
        transpose_forward=forward,
        transpose_backward=backward,
        channels=channels,
        labels=read_labels(dataset, f"{where}: dataset.json"),
        configuration=_read_configuration(
            configuration, section, intensities, len(channels), where
        ),
    )


def _resolve_inheritance(
    configurations: Mapping[str, Any], name: str, where: str
) -> dict[str, Any]:
    """Return a configuration with the values that it inherits; nearer ancestors take precedence."""
    chain: list[str] = []
    section: dict[str, Any] = {}
    while name:
        if name in chain or name not in configurations:
            raise ModelError(
                f"{where}: expected configuration {name!r} to be one of "
                f"{', '.join(configurations)} and not to inherit from itself (after {chain}); "
                f"{_RESTORE}"
            )
        chain.append(name)
        section = {**configurations[name], **section}
        name = configurations[name].get("inherits_from", "")
    return section


def _read_configuration(
    name: str, found: Mapping[str, Any], intensities: Mapping[str, Any], channels: int, where: str
) -> Configuration:
    schemes, masks = found["normalization_schemes"], found["use_mask_for_norm"]
    if len(schemes) != channels or len(masks) != channels:
        raise ModelError(
            f"{where}: expected plans.json and dataset.json to come from the same model, but "
            f"dataset.json has {count_of(channels, 'channel')} and {name} normalises "
            f"{len(schemes)}"
        )
    norms = tuple(
        _read_norm(scheme, masks[k], intensities.get(str(k), {}), where)
        for k, scheme in enumerate(schemes)
    )
    patch = tuple(int(n) for n in found["patch_size"])
    spacing = tuple(float(s) for s in found["spacing"])
    _require_extents(patch, spacing, where)
    previous = str(found.get("previous_stage") or "")
    if previous and not _PLAIN_NAME.match(previous):
        raise ModelError(
            f"{where}: expected previous_stage to be the name of a configuration, but it is "
            f"{previous!r}, which could lead to another folder; {_RESTORE}"
        )
    return Configuration(
        name=name,
        patch=patch,
        spacing=spacing,
        norms=norms,
        data=_read_resampling(found, "data", where),
        seg=_read_resampling(found, "seg", where),
        logits=_read_resampling(found, "probabilities", where),
        architecture=_read_architecture(found, where),
        previous_stage=previous,
    )


def _require_extents(patch: tuple[int, ...], spacing: tuple[float, ...], where: str) -> None:
    """Raise `ModelError` if a network cannot have this patch or spacing."""
    if len(patch) not in (2, 3) or not all(0 < n <= _MOST_EXTENT for n in patch):
        raise ModelError(
            f"{where}: expected the patch to have 2 or 3 extents of 1 to {_MOST_EXTENT} voxels, "
            f"but got {patch}; {_RESTORE}"
        )
    low, high = _SPACING_MM
    fits = len(spacing) in (len(patch), 3)
    if not fits or not all(low <= s <= high for s in spacing):
        raise ModelError(
            f"{where}: expected the spacing to be {len(patch)} numbers of {low:g} to {high:g} mm, "
            f"but got {spacing}; {_RESTORE}"
        )


def _read_norm(scheme: str, in_mask: Any, known: Mapping[str, Any], where: str) -> ChannelNorm:
    if scheme not in _NORMALISATIONS:
        raise ModelError(
            f"{where}: expected the normalisation to be one of "
            f"{', '.join(sorted(_NORMALISATIONS))}, but got {scheme!r}; this model needs its own "
            "code and cannot be run here"
        )
    if scheme != "CTNormalization":
        return ChannelNorm(scheme, bool(in_mask))
    keys = ("percentile_00_5", "percentile_99_5", "mean", "std")
    return ChannelNorm(scheme, bool(in_mask), *(float(known[key]) for key in keys))


def _read_resampling(found: Mapping[str, Any], what: str, where: str) -> Resampling:
    method = _look_up_name(_RESAMPLERS, found[f"resampling_fn_{what}"], "resampling", where)
    options = found.get(f"resampling_fn_{what}_kwargs") or {}
    # These are the defaults of nnU-Net's own two functions, which differ.
    separate = options.get("force_separate_z", False if method == "spline" else None)
    orders = int(options.get("order", 3)), int(options.get("order_z", 0))
    if not all(0 <= order <= _MOST_ORDER for order in orders):
        raise ModelError(
            f"{where}: expected the spline orders to be from 0 to {_MOST_ORDER}, but got order "
            f"{orders[0]} and order_z {orders[1]}; {_RESTORE}"
        )
    return Resampling(
        method=method,
        order=orders[0],
        order_z=orders[1],
        separate_z=None if separate is None else bool(separate),
        anisotropy=float(options.get("separate_z_anisotropy_threshold", ANISOTROPY)),
    )


def _read_architecture(found: Mapping[str, Any], where: str) -> Architecture:
    if "architecture" in found:
        given = found["architecture"]
        return Architecture(
            class_name=str(given["network_class_name"]),
            arguments=dict(given["arch_kwargs"]),
            imports=tuple(given["_kw_requires_import"]),
        )
    return _old_architecture(found)


def _old_architecture(found: Mapping[str, Any]) -> Architecture:
    """Return the network described in plans from before nnU-Net 2.2, which use separate keys.

    Source: nnunetv2 2.8.1, plans_handler.py, ConfigurationManager.__init__.
    """
    name = str(found["UNet_class_name"])
    dimensions = len(found["patch_size"])
    blocks = "n_conv_per_stage" if name == "PlainConvUNet" else "n_blocks_per_stage"
    stages = len(found["n_conv_per_stage_encoder"])
    base, most = int(found["UNet_base_num_features"]), int(found["unet_max_num_features"])
    arguments = {
        "n_stages": stages,
        "features_per_stage": [min(base * 2**k, most) for k in range(stages)],
        "conv_op": f"torch.nn.modules.conv.Conv{dimensions}d",
        "kernel_sizes": found["conv_kernel_sizes"],
        "strides": found["pool_op_kernel_sizes"],
        blocks: found["n_conv_per_stage_encoder"],
        "n_conv_per_stage_decoder": found["n_conv_per_stage_decoder"],
        "conv_bias": True,
        "norm_op": f"torch.nn.modules.instancenorm.InstanceNorm{dimensions}d",
        "norm_op_kwargs": {"eps": 1e-05, "affine": True},
        "dropout_op": None,
        "dropout_op_kwargs": None,
        "nonlin": "torch.nn.LeakyReLU",
        "nonlin_kwargs": {"inplace": True},
    }
    class_name = f"dynamic_network_architectures.architectures.unet.{name}"
    return Architecture(class_name, arguments, ("conv_op", "norm_op", "dropout_op", "nonlin"))


def _look_up_name(table: Mapping[str, Any], name: Any, what: str, where: str) -> Any:
    if not isinstance(name, str) or name not in table:
        raise ModelError(
            f"{where}: expected the {what} to be one of {', '.join(table)}, but got {name!r}; "
            "this model needs additional code and cannot be run here"
        )
    return table[name]


def _read_permutation(axes: Any, where: str) -> tuple[int, int, int]:
    if sorted(axes) != [0, 1, 2]:
        raise ModelError(
            f"{where}: expected the axes to be 0, 1 and 2 in some order, but got {axes!r}; "
            f"{_RESTORE}"
        )
    a, b, c = (int(axis) for axis in axes)
    return (a, b, c)

"""Names of the MONAI classes that a bundle may use, listed without importing MONAI.

The list excludes classes that take a function or a class as a value, read or write files, download
weights, draw random numbers, or have an output other than one volume.
"""

from collections.abc import Iterator
from typing import Final

from napari_mamamia.segmentation.bundle.config import (
    IN_SANDBOX,
    BundleConfig,
    DataFormat,
    Step,
    short_name,
    understood,
)

SPATIAL: Final = frozenset(
    (
        "BorderPadd",
        "CenterSpatialCropd",
        "DivisiblePadd",
        "Flipd",
        "Orientationd",
        "ResizeWithPadOrCropd",
        "Resized",
        "Rotate90d",
        "Spacingd",
        "SpatialCropd",
        "SpatialPadd",
        "Zoomd",
    )
)
"""Transforms that change only the grid, and can therefore be planned without the images."""

_PLAIN: Final = frozenset(("CastToTyped", "EnsureTyped", "Identityd", "ToTensord"))

BEFORE: Final = (
    SPATIAL
    | _PLAIN
    | frozenset(
        (
            "AdjustContrastd",
            "ClipIntensityPercentilesd",
            "ConcatItemsd",
            "CropForegroundd",
            "DeleteItemsd",
            "EnsureChannelFirstd",
            "GaussianSmoothd",
            "MedianSmoothd",
            "NormalizeIntensityd",
            "ScaleIntensityRangePercentilesd",
            "ScaleIntensityRanged",
            "ScaleIntensityd",
            "ShiftIntensityd",
            "ThresholdIntensityd",
        )
    )
)
"""Allowed transforms before the network."""

LOOKING_AROUND: Final = frozenset(
    ("FillHolesd", "KeepLargestConnectedComponentd", "RemoveSmallObjectsd")
)
"""Postprocessing transforms whose result at a voxel depends on distant voxels."""

AFTER: Final = (
    LOOKING_AROUND | _PLAIN | frozenset(("Activationsd", "AsDiscreted", "Invertd", "LabelFilterd"))
)
"""Allowed transforms after the network."""

NETWORKS: Final = frozenset(
    (
        "AttentionUnet",
        "BasicUNet",
        "DynUNet",
        "HighResNet",
        "MedNeXt",
        "SegResNet",
        "SegResNetDS",
        "SwinUNETR",
        "UNETR",
        "UNet",
        "VNet",
    )
)
"""Allowed networks, which take only plain values, load no file, and have one output."""

_ALIASES: Final = {"Unet": "UNet", "BasicUnet": "BasicUNet", "AttentionUNet": "AttentionUnet"}
_ISOLATED: Final = f"or {IN_SANDBOX}"


def objections(config: BundleConfig, data_format: DataFormat, weights: str) -> Iterator[str]:
    """Yield the reasons why a bundle cannot be run, each as a sentence.

    Parameters
    ----------
    config, data_format
        The config and data format of the bundle.
    weights
        The name of the file with the network, or "".

    Raises
    ------
    ModelError
        If the network is not a class of MONAI, or an argument of the network or a step is an
        expression.
    """
    for steps, allowed in ((config.preprocessing, BEFORE), (config.postprocessing, AFTER)):
        for step in steps:
            if step.name not in allowed:
                yield _describe_unknown(step, step.name, sorted(allowed), config.where)
            else:
                understood(dict(step.arguments), config.where)
    axes = len(data_format.spatial_shape)
    if axes not in (0, 3):
        yield (
            f"expected the network of {config.where} to take 3-D images, but its input in "
            f"metadata.json has {axes} axes; choose a bundle with three axes"
        )
    channels = len(data_format.channels)
    if len(config.images) not in (1, channels):
        yield (
            f"{config.where}: expected LoadImaged to read 1 image or one for each of the "
            f"{channels} channels, but it reads {', '.join(config.images)}; correct the bundle"
        )
    if not any(step.name == "AsDiscreted" for step in config.postprocessing):
        yield (
            f"{config.where}: expected the postprocessing to produce labels with AsDiscreted, "
            "but it has "
            f"{', '.join(step.name for step in config.postprocessing) or 'no step'}: add "
            '{"_target_": "AsDiscreted", "keys": "pred", "argmax": true}, or the step that the '
            "model needs"
        )
    yield from _about_network(config, weights)


def network_name(step: Step, where: str) -> str:
    """Return MONAI's name for the class of a network, or "" if the class is not allowed.

    Raises
    ------
    ModelError
        If the network is not a class of MONAI.
    """
    name = short_name(step.name, f"{where}: {step.key}")
    name = _ALIASES.get(name, name)
    return name if name in NETWORKS else ""


def _about_network(config: BundleConfig, weights: str) -> Iterator[str]:
    if not weights:
        yield (
            f"expected the bundle of {config.where} to contain models/model.ts or "
            "models/model.pt, but it contains neither; copy the network file too"
        )
    elif weights.endswith(".pt") and config.network is None:
        yield (
            f"expected network_def with the network's class in {config.where}, because {weights} "
            "contains only weights; add network_def, or export the network as models/model.ts"
        )
    elif weights.endswith(".pt") and config.network is not None:
        step = config.network
        if not network_name(step, config.where):
            yield _describe_unknown(step, step.name, sorted(NETWORKS), config.where)
        understood(dict(step.arguments), config.where)


def _describe_unknown(step: Step, name: str, allowed: list[str], where: str) -> str:
    return (
        f"{where}: expected {step.key} to be one of {', '.join(allowed)}, but it is {name}, which "
        "was neither imported nor run; ask the author for a bundle without this class, "
        f"{_ISOLATED}"
    )

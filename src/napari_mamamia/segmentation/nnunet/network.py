"""Build networks of nnU-Net models from fixed tables of classes, without imports by name."""

from collections.abc import Mapping
from typing import Any, Final

import torch
from dynamic_network_architectures.architectures import unet
from torch import nn

from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.model.nnunet_plans import Architecture
from napari_mamamia.segmentation.nnunet.safetensors import Checkpoint

_PACKAGE: Final = "dynamic_network_architectures."
_NETWORKS: Final = {
    "PlainConvUNet": unet.PlainConvUNet,
    "ResidualEncoderUNet": unet.ResidualEncoderUNet,
    "ResidualUNet": unet.ResidualUNet,
}
_DIMENSIONAL: Final = ("Conv", "InstanceNorm", "BatchNorm", "Dropout", "AvgPool", "MaxPool")
_OPERATIONS: Final = {
    **{f"{name}{d}d": getattr(nn, f"{name}{d}d") for name in _DIMENSIONAL for d in (2, 3)},
    **{name: getattr(nn, name) for name in ("LeakyReLU", "ReLU", "GELU", "SiLU", "ELU", "PReLU")},
}
_ARGUMENTS: Final = frozenset(
    (
        "n_stages",
        "features_per_stage",
        "conv_op",
        "kernel_sizes",
        "strides",
        "n_conv_per_stage",
        "n_blocks_per_stage",
        "n_conv_per_stage_decoder",
        "conv_bias",
        "norm_op",
        "norm_op_kwargs",
        "dropout_op",
        "dropout_op_kwargs",
        "nonlin",
        "nonlin_kwargs",
        "nonlin_first",
        "stem_channels",
        "bottleneck_channels",
        "deep_supervision",
    )
)
_BATCH_NORM_TRAINER: Final = "nnUNetTrainerBN"

# Trainers of nnunetv2 2.8.1 that use the network of the plans; for other trainers it is unknown.
_TRAINER_ENDINGS: Final = """
Adam Adam1en3 Adam3en4 Adan Adan1en1 Adan1en3 Adan3en4 AdanCosAnneal BN Benchmark_5epochs
Benchmark_5epochs_noDataLoading CELoss CELoss_5epochs CosAnneal DA5 DA5Segord0 DA5_10epochs
DA5ord0 DiceCELoss_noSmooth DiceLoss DiceTopK10Loss NoDA NoDeepSupervision NoMirroring
Topk10Loss Topk10LossLS01 VanillaAdam VanillaAdam1en3 VanillaAdam3en4 _100epochs _10epochs
_1epoch _2000epochs _2000epochs_NoMirroring _20epochs _250epochs _250epochs_NoMirroring
_4000epochs _4000epochs_NoMirroring _500epochs _50epochs _5epochs _750epochs _8000epochs
_8000epochs_NoMirroring _DASegOrd0 _DASegOrd0_NoMirroring _noDummy2DDA _onlyMirror01
_onlyMirror01_1500ep _onlyMirror01_DA5 _onlyMirror01_DASegOrd0 _probabilisticOversampling
_probabilisticOversampling_010 _probabilisticOversampling_033 _warmup
"""
_TRAINERS: Final = frozenset(
    ["nnUNetTrainer", "nnUNet_Trainer_BS8"]
    + [f"nnUNetTrainer{ending}" for ending in _TRAINER_ENDINGS.split()]
)


def trainer_known(name: str) -> bool:
    """Return whether a trainer of nnU-Net uses the network in the plans unchanged."""
    return name in _TRAINERS


def build_network(
    architecture: Architecture, inputs: int, heads: int, trainer: str, where: str
) -> nn.Module:
    """Return a model's network with random weights, ready for inference.

    Raises
    ------
    ModelError
        If a class, operation or argument is not in this module's tables; nothing is imported
        then.
    """
    package, _, name = architecture.class_name.rpartition(".")
    if name not in _NETWORKS or not f"{package}.".startswith(_PACKAGE):
        raise ModelError(
            f"expected the network in {where} to be one of {', '.join(_NETWORKS)} in nnU-Net's "
            f"{_PACKAGE.rstrip('.')}, but it is {architecture.class_name!r}; nothing was imported; "
            "a model with its own network can only be run in isolation"
        )
    arguments = _read_arguments(architecture, where)
    if trainer == _BATCH_NORM_TRAINER:  # this trainer replaces the plans' instance normalisation
        dimensions = 2 if arguments["conv_op"] is nn.Conv2d else 3
        arguments["norm_op"] = _OPERATIONS[f"BatchNorm{dimensions}d"]
        arguments["norm_op_kwargs"] = {"eps": 1e-5, "affine": True}
    try:
        network = _NETWORKS[name](
            input_channels=inputs, num_classes=heads, deep_supervision=False, **arguments
        )
    except (TypeError, ValueError, AssertionError, RuntimeError, IndexError, KeyError) as error:
        raise ModelError(
            f"{name} in {where} cannot be built from the plans ({error}); restore the plans.json "
            "that came with the model"
        ) from error
    built: nn.Module = network.eval().requires_grad_(False)
    return built


def put_weights(network: nn.Module, checkpoint: Checkpoint) -> None:
    """Load the weights of a checkpoint into `network`; every tensor must match.

    Parameters
    ----------
    network
        The network to change.
    checkpoint
        The weights and settings of a fold.

    Raises
    ------
    ModelError
        If names or shapes differ; the message lists the first differences.
    """
    state, given = network.state_dict(), checkpoint.weights
    absent = [name for name in state if name not in given]
    extra = [name for name in given if name not in state]
    odd = [
        f"{name} is {tuple(given[name].shape)} instead of {tuple(value.shape)}"
        for name, value in state.items()
        if name in given and given[name].shape != value.shape
    ]
    if absent or extra or odd:
        what = "; ".join(
            f"{text} {', '.join(names[:2])}"
            for text, names in (("lacks", absent), ("has also", extra), ("where", odd))
            if names
        )
        raise ModelError(
            f"expected {checkpoint.path} to fit the network of the plans, but it {what} "
            f"({len(absent) + len(extra) + len(odd)} differences); plans.json, dataset.json and "
            "checkpoint must come from the same training"
        )
    with torch.no_grad():
        network.load_state_dict(dict(given))


def _read_arguments(architecture: Architecture, where: str) -> dict[str, Any]:
    arguments: Mapping[str, Any] = architecture.arguments
    strange = sorted(set(arguments) - _ARGUMENTS) + sorted(
        set(architecture.imports) - set(arguments)
    )
    if strange:
        raise ModelError(
            f"expected the arguments in {where} to be those of nnU-Net's own networks, but found "
            f"{', '.join(map(repr, strange))}; this model cannot be built here"
        )
    return {
        name: _find_operation(value, where)
        if (name in architecture.imports or name.endswith("_op") or name == "nonlin") and value
        else value
        for name, value in arguments.items()
        if name != "deep_supervision"  # only training uses outputs of coarser levels
    }


def _find_operation(name: Any, where: str) -> Any:
    package, _, last = str(name).rpartition(".")
    if last not in _OPERATIONS or not f"{package}.".startswith("torch.nn."):
        raise ModelError(
            f"expected the operation in {where} to be one of torch.nn's {', '.join(_OPERATIONS)}, "
            f"but it is {name!r}; nothing was imported; this model can only be run in isolation"
        )
    return _OPERATIONS[last]

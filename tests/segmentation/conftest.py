"""Small nnU-Net result folders with random weights, in the format that nnunetv2 2.8.1 writes."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest


@dataclass(frozen=True)
class Spec:
    """What a made-up model is like; every default is nnU-Net's own."""

    configuration: str = "3d_fullres"
    patch: tuple[int, ...] = (16, 16, 16)
    spacing: tuple[float, ...] = (1.0, 1.0, 1.0)
    channels: tuple[str, ...] = ("DCE_pre", "DCE_post1")
    labels: dict[str, Any] = field(default_factory=lambda: {"background": 0, "tumour": 1})
    region_order: tuple[int, ...] = ()
    norms: tuple[str, ...] = ()
    in_mask: bool = False
    transpose: tuple[int, int, int] = (0, 1, 2)
    reader: str = "SimpleITKIO"
    residual: bool = False
    folds: tuple[str, ...] = ("0",)
    mirror: tuple[int, ...] | None = (0, 1, 2)
    trainer: str = "nnUNetTrainer"
    torch_resampling: bool = False
    resampling: bool = True
    previous_stage: str = ""
    extra_inputs: int = 0
    seed: int = 0


def _architecture(spec: Spec) -> dict[str, Any]:
    d = len(spec.patch)
    blocks = "n_blocks_per_stage" if spec.residual else "n_conv_per_stage"
    name = "ResidualEncoderUNet" if spec.residual else "PlainConvUNet"
    return {
        "network_class_name": f"dynamic_network_architectures.architectures.unet.{name}",
        "arch_kwargs": {
            "n_stages": 2,
            "features_per_stage": [4, 6],
            "conv_op": f"torch.nn.modules.conv.Conv{d}d",
            "kernel_sizes": [[3] * d] * 2,
            "strides": [[1] * d, [2] * d],
            blocks: [1, 1],
            "n_conv_per_stage_decoder": [1],
            "conv_bias": True,
            "norm_op": f"torch.nn.modules.instancenorm.InstanceNorm{d}d",
            "norm_op_kwargs": {"eps": 1e-05, "affine": True},
            "dropout_op": None,
            "dropout_op_kwargs": None,
            "nonlin": "torch.nn.LeakyReLU",
            "nonlin_kwargs": {"inplace": True},
        },
        "_kw_requires_import": ["conv_op", "norm_op", "dropout_op", "nonlin"],
    }


def _resampling(spec: Spec) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if not spec.resampling:
        for what in ("data", "seg", "probabilities"):
            made[f"resampling_fn_{what}"] = "no_resampling_hack"
            made[f"resampling_fn_{what}_kwargs"] = {}
        return made
    for what, is_seg, order in (("data", False, 3), ("seg", True, 1), ("probabilities", False, 1)):
        made[f"resampling_fn_{what}"] = (
            "resample_torch_fornnunet" if spec.torch_resampling else "resample_data_or_seg_to_shape"
        )
        made[f"resampling_fn_{what}_kwargs"] = (
            {"is_seg": is_seg, "force_separate_z": None}
            if spec.torch_resampling
            else {"is_seg": is_seg, "order": order, "order_z": 0, "force_separate_z": None}
        )
    return made


def plans_of(spec: Spec) -> dict[str, Any]:
    count = len(spec.channels)
    configuration = {
        "data_identifier": "nnUNetPlans_made",
        "preprocessor_name": "DefaultPreprocessor",
        "batch_size": 2,
        "patch_size": list(spec.patch),
        "spacing": list(spec.spacing),
        "normalization_schemes": list(spec.norms or ["ZScoreNormalization"] * count),
        "use_mask_for_norm": [spec.in_mask] * count,
        **_resampling(spec),
        "architecture": _architecture(spec),
        "batch_dice": False,
    }
    if spec.previous_stage:
        configuration["previous_stage"] = spec.previous_stage
    intensity = {
        "max": 300.0, "mean": 90.0, "median": 95.0, "min": 10.0, "std": 31.0,
        "percentile_00_5": 40.0, "percentile_99_5": 170.0,
    }  # fmt: skip
    return {
        "dataset_name": "Dataset900_Made",
        "plans_name": "nnUNetPlans",
        "image_reader_writer": spec.reader,
        "transpose_forward": list(spec.transpose),
        "transpose_backward": [int(i) for i in np.argsort(spec.transpose)],
        "configurations": {
            "made_parent": configuration,
            spec.configuration: {"inherits_from": "made_parent"},
        },
        "label_manager": "LabelManager",
        "foreground_intensity_properties_per_channel": {str(k): intensity for k in range(count)},
    }


def dataset_of(spec: Spec) -> dict[str, Any]:
    made = {
        "channel_names": {str(k): name for k, name in enumerate(spec.channels)},
        "labels": spec.labels,
        "numTraining": 8,
        "file_ending": ".nii.gz",
    }
    if spec.region_order:
        made["regions_class_order"] = list(spec.region_order)
    return made


def _weights(spec: Spec, fold: int) -> dict[str, Any]:
    import torch
    from dynamic_network_architectures.architectures import unet
    from torch import nn

    arguments = dict(_architecture(spec)["arch_kwargs"])
    for name in ("conv_op", "norm_op", "nonlin"):
        arguments[name] = getattr(nn, arguments[name].rpartition(".")[2])
    kind = unet.ResidualEncoderUNet if spec.residual else unet.PlainConvUNet
    heads = len(spec.region_order) or len(spec.labels)
    with torch.random.fork_rng():
        torch.manual_seed(100 * spec.seed + fold)
        network = kind(
            input_channels=len(spec.channels) + spec.extra_inputs,
            num_classes=heads,
            deep_supervision=False,
            **arguments,
        )
        for value in network.parameters():
            if value.ndim > 1:
                nn.init.normal_(value, 0, 0.3)
    return network.state_dict()


def write_model(folder: Path, spec: Spec) -> Path:
    """Write a trained model's folder below `folder` and return it."""
    import torch

    root = folder / "Dataset900_Made" / f"{spec.trainer}__nnUNetPlans__{spec.configuration}"
    root.mkdir(parents=True)
    (root / "plans.json").write_text(json.dumps(plans_of(spec)))
    (root / "dataset.json").write_text(json.dumps(dataset_of(spec)))
    for number, fold in enumerate(spec.folds):
        (root / f"fold_{fold}").mkdir()
        torch.save(
            {
                "network_weights": _weights(spec, number),
                "optimizer_state": {},
                "grad_scaler_state": None,
                "logging": {"mean_fg_dice": [np.float64(0.5)]},
                "_best_ema": np.float32(0.5),
                "current_epoch": 1,
                "init_args": {
                    "configuration": spec.configuration,
                    "fold": number,
                    "device": torch.device("cpu"),
                },
                "trainer_name": spec.trainer,
                "inference_allowed_mirroring_axes": spec.mirror,
            },
            root / f"fold_{fold}" / "checkpoint_final.pth",
        )
    return root


@pytest.fixture
def made():
    """Return what makes models: `Spec`, `write_model`, `plans_of`, `dataset_of`."""
    return SimpleNamespace(
        Spec=Spec, write_model=write_model, plans_of=plans_of, dataset_of=dataset_of
    )

"""Self-test: run a tiny network in the engine and compare the result with plain torch.

The network has fixed weights. The expected result is computed from the network's published
definition with torch's own functions, without the engine. Both results must have the same labels,
except for voxels whose two outputs are too close for half precision. Source of the network:
dynamic_network_architectures, PlainConvUNet; of the format: nnunetv2 2.8.1.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from torch.nn import functional

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.segmentation.model.engine import EngineInput
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.nnunet_plans import read_plans
from napari_mamamia.segmentation.nnunet.network import build_network
from napari_mamamia.segmentation.run.engines import load_engine
from napari_mamamia.segmentation.run.weights import recognise_model

BLOCK: Final = (16, 32, 32)
"""Size (z, y, x) in voxels of the tested block, which equals the network's patch."""

_SEED: Final = 2026
_FEATURES: Final = (4, 6)
_NEAR_STEPS: Final = 4  # bits of half precision, in which nnU-Net sums and writes its outputs
_SIGMA: Final = 1 / 8  # share of the tile's length
_WEIGHT: Final = 10.0
_MOST_DIFFERING: Final = 0.05  # 0.023 measured on a CPU: the tile's corners, see `_half_steps`
_CONV: Final = "torch.nn.modules.conv.Conv3d"
_NORM: Final = "torch.nn.modules.instancenorm.InstanceNorm3d"
_NETWORK: Final = "dynamic_network_architectures.architectures.unet.PlainConvUNet"


@dataclass(frozen=True, slots=True)
class SelfTest:
    """Result of the self-test: how far the engine's labels differ from the expected labels.

    `expected` and `got` are numbers of tumour voxels, `differing` is the number of voxels that
    differ, and `near` is the number of differing voxels that rounding can explain.
    """

    device: str
    voxels: int
    expected: int
    got: int
    differing: int
    near: int
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether few voxels differ, and on the CPU only voxels that rounding can explain.

        A GPU uses half precision throughout, so other voxels may also differ.
        """
        few = self.differing <= _MOST_DIFFERING * self.voxels
        return few and (self.device != "cpu" or self.differing == self.near)


def run_test_block(case: Case, device: str = "cpu") -> SelfTest:
    """Run the test network on the central block of a case's first two phases.

    Raises
    ------
    CaseError
        If the case has only one phase or is smaller than `BLOCK`.
    ModelError
        If the engine cannot run the network.
    """
    case.require_phases(2)
    arrays = [_cut_middle(case, index) for index in (0, 1)]
    with own_folder() as folder:
        report_progress(0, 1, "Making the test network")
        root, weights = _write_model(folder)
        settings = EngineSettings(mirroring=False, device=device)
        engine = load_engine(recognise_model(root), settings)
        try:
            started = time.monotonic()
            result = engine.predict(EngineInput(arrays, Grid(BLOCK, np.eye(4))))
            seconds = time.monotonic() - started
        finally:
            engine.close()
    low, high = expected_outputs(arrays, weights)
    expected, got = high > low, result.labels == 1
    near = np.abs(high - low) <= _half_steps(np.maximum(np.abs(high), np.abs(low)))
    differs = expected != got
    return SelfTest(
        device,
        expected.size,
        int(np.count_nonzero(expected)),
        int(np.count_nonzero(got)),
        int(np.count_nonzero(differs)),
        int(np.count_nonzero(differs & near)),
        seconds,
    )


def expected_outputs(
    arrays: list[NDArray[Any]], weights: Mapping[str, Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the network's two outputs of shape `BLOCK`, computed from its definition."""
    normal = [(a - a.mean()) / max(a.std(), 1e-8) for a in (a.astype(np.float64) for a in arrays)]
    image = torch.from_numpy(np.stack(normal).astype(np.float32))[None]

    def layer(values: Any, name: str, stride: int = 1) -> Any:
        kernel, bias = weights[f"{name}.conv.weight"], weights[f"{name}.conv.bias"]
        values = functional.conv3d(values, kernel, bias, stride=stride, padding=1)
        scale, shift = weights[f"{name}.norm.weight"], weights[f"{name}.norm.bias"]
        return functional.leaky_relu(functional.instance_norm(values, weight=scale, bias=shift))

    with torch.no_grad():
        fine = layer(image, "encoder.stages.0.0.convs.0")
        coarse = layer(fine, "encoder.stages.1.0.convs.0", stride=2)
        raised = functional.conv_transpose3d(
            coarse,
            weights["decoder.transpconvs.0.weight"],
            weights["decoder.transpconvs.0.bias"],
            stride=2,
        )
        joined = layer(torch.cat((raised, fine), 1), "decoder.stages.0.convs.0")
        last = weights["decoder.seg_layers.0.weight"], weights["decoder.seg_layers.0.bias"]
        low, high = functional.conv3d(joined, *last)[0].numpy()
    return low, high


def _half_steps(outputs: NDArray[Any]) -> NDArray[Any]:
    """Return the largest effect of half-precision rounding on each voxel's outputs.

    nnU-Net sums outputs times a Gaussian weight in half precision and divides by the weight, which
    is tiny in a tile's corners. Source: nnunetv2 2.8.1, inference/sliding_window_prediction:
    standard deviation 1/8 of the tile, highest weight 10, zeros replaced by the lowest weight.
    """
    middle = np.zeros(BLOCK)
    middle[tuple(n // 2 for n in BLOCK)] = 1.0
    weight = gaussian_filter(middle, [n * _SIGMA for n in BLOCK], mode="constant")
    half = (weight / weight.max() * _WEIGHT).astype(np.float16).astype(np.float64)
    half[half == 0] = half[half > 0].min()
    steps: NDArray[Any] = _NEAR_STEPS * np.spacing((outputs * half).astype(np.float16)) / half
    return steps


def _cut_middle(case: Case, phase: int) -> NDArray[Any]:
    """Return the central block of a phase, shifted above 0 so that no voxel is cropped."""
    if any(n < length for n, length in zip(case.grid.shape, BLOCK, strict=True)):
        raise CaseError(
            f"expected the test's case to have at least {BLOCK} voxels (z, y, x), but it has "
            f"{case.grid.shape}; choose a larger case"
        )
    starts = [(n - length) // 2 for n, length in zip(case.grid.shape, BLOCK, strict=True)]
    cut = tuple(slice(a, a + n) for a, n in zip(starts, BLOCK, strict=True))
    values = np.nan_to_num(case.signal[phase][cut].astype(np.float32))
    shifted: NDArray[Any] = values - values.min() + np.float32(1)
    return shifted


def _write_model(folder: Path) -> tuple[Path, Mapping[str, Any]]:
    """Write the test network as a trained model; return the folder and the weights."""
    root = folder / "Dataset999_SelfTest" / "nnUNetTrainer__nnUNetPlans__3d_fullres"
    (root / "fold_0").mkdir(parents=True)
    plans, dataset = json.dumps(_make_plans()), json.dumps(_make_dataset())
    (root / "plans.json").write_text(plans, "utf-8")
    (root / "dataset.json").write_text(dataset, "utf-8")
    read = read_plans(plans, dataset, "3d_fullres", "the test network")
    network = build_network(read.configuration.architecture, 2, 2, "nnUNetTrainer", "self-test")
    rng = np.random.default_rng(_SEED)
    with torch.no_grad():
        for _, values in sorted(network.named_parameters()):
            drawn = rng.normal(0.0, 0.3, tuple(values.shape)).astype(np.float32)
            values.copy_(torch.from_numpy(drawn))
        # without the last layer's offsets, so that both labels are frequent
        dict(network.named_parameters())["decoder.seg_layers.0.bias"].zero_()
    weights = network.state_dict()
    content = {
        "network_weights": weights,
        "trainer_name": "nnUNetTrainer",
        "init_args": {"configuration": "3d_fullres", "fold": 0},
        "inference_allowed_mirroring_axes": (0, 1, 2),
    }
    torch.save(content, root / "fold_0" / "checkpoint_final.pth")
    return root, weights


def _make_dataset() -> dict[str, Any]:
    return {
        "channel_names": {"0": "phase 0", "1": "phase 1"},
        "labels": {"background": 0, "tumour": 1},
        "numTraining": 1,
        "file_ending": ".nii.gz",
    }


def _make_plans() -> dict[str, Any]:
    how = {"is_seg": False, "order": 3, "order_z": 0, "force_separate_z": None}
    resampling = "resample_data_or_seg_to_shape"
    architecture = {
        "network_class_name": _NETWORK,
        "arch_kwargs": {
            "n_stages": 2,
            "features_per_stage": list(_FEATURES),
            "conv_op": _CONV,
            "kernel_sizes": [[3, 3, 3]] * 2,
            "strides": [[1, 1, 1], [2, 2, 2]],
            "n_conv_per_stage": [1, 1],
            "n_conv_per_stage_decoder": [1],
            "conv_bias": True,
            "norm_op": _NORM,
            "norm_op_kwargs": {"eps": 1e-05, "affine": True},
            "dropout_op": None,
            "dropout_op_kwargs": None,
            "nonlin": "torch.nn.LeakyReLU",
            "nonlin_kwargs": {"inplace": True},
        },
        "_kw_requires_import": ["conv_op", "norm_op", "dropout_op", "nonlin"],
    }
    configuration = {
        "data_identifier": "nnUNetPlans_3d_fullres",
        "preprocessor_name": "DefaultPreprocessor",
        "batch_size": 2,
        "patch_size": list(BLOCK),
        "spacing": [1.0, 1.0, 1.0],
        "normalization_schemes": ["ZScoreNormalization"] * 2,
        "use_mask_for_norm": [False, False],
        "resampling_fn_data": resampling,
        "resampling_fn_data_kwargs": how,
        "resampling_fn_seg": resampling,
        "resampling_fn_seg_kwargs": {**how, "is_seg": True, "order": 1},
        "resampling_fn_probabilities": resampling,
        "resampling_fn_probabilities_kwargs": {**how, "order": 1},
        "architecture": architecture,
        "batch_dice": False,
    }
    return {
        "dataset_name": "Dataset999_SelfTest",
        "plans_name": "nnUNetPlans",
        "image_reader_writer": "SimpleITKIO",
        "transpose_forward": [0, 1, 2],
        "transpose_backward": [0, 1, 2],
        "configurations": {"3d_fullres": configuration},
        "label_manager": "LabelManager",
        "foreground_intensity_properties_per_channel": {},
    }

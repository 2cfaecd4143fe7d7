"""A prompt model whose weights are set by hand: the object is what was prompted, voxel for voxel.

A PlainConvUNet of two stages without norms (2 and 4 features, patch 64^3). The first convolution
adds the previous mask and the positive prompts and subtracts three times the negative ones; the
decoder passes that sum on; the last layer compares it with a small threshold. So what the real
package answers can be worked out by hand: mask + positive prompts - negative prompts.
"""

import json
from pathlib import Path

NETWORK = "dynamic_network_architectures.architectures.unet.PlainConvUNet"
LICENCE = "Contract test licence 1.0"


def plans() -> dict:
    """Return the plans, as nnU-Net v2 writes them."""
    arguments = {
        "n_stages": 2,
        "features_per_stage": [2, 4],
        "conv_op": "torch.nn.modules.conv.Conv3d",
        "kernel_sizes": [[3, 3, 3], [3, 3, 3]],
        "strides": [[1, 1, 1], [2, 2, 2]],
        "n_conv_per_stage": [1, 1],
        "n_conv_per_stage_decoder": [1],
        "conv_bias": True,
        "norm_op": None,
        "norm_op_kwargs": None,
        "dropout_op": None,
        "dropout_op_kwargs": None,
        "nonlin": "torch.nn.LeakyReLU",
        "nonlin_kwargs": {"inplace": True},
    }
    resampling = {
        "resampling_fn_data": "resample_data_or_seg_to_shape",
        "resampling_fn_seg": "resample_data_or_seg_to_shape",
        "resampling_fn_data_kwargs": {"is_seg": False, "order": 3, "order_z": 0},
        "resampling_fn_seg_kwargs": {"is_seg": True, "order": 1, "order_z": 0},
        "resampling_fn_probabilities": "resample_data_or_seg_to_shape",
        "resampling_fn_probabilities_kwargs": {"is_seg": False, "order": 1, "order_z": 0},
    }
    configuration = {
        "data_identifier": "contract",
        "preprocessor_name": "DefaultPreprocessor",
        "batch_size": 1,
        "patch_size": [64, 64, 64],
        "spacing": [1.0, 1.0, 1.0],
        "normalization_schemes": ["ZScoreNormalization"],
        "use_mask_for_norm": [False],
        "batch_dice": False,
        "architecture": {
            "network_class_name": NETWORK,
            "arch_kwargs": arguments,
            "_kw_requires_import": ["conv_op", "norm_op", "dropout_op", "nonlin"],
        },
        **resampling,
    }
    return {
        "dataset_name": "Dataset999_Contract",
        "plans_name": "nnUNetPlans",
        "image_reader_writer": "SimpleITKIO",
        "transpose_forward": [0, 1, 2],
        "transpose_backward": [0, 1, 2],
        "configurations": {"3d_fullres": configuration},
        "foreground_intensity_properties_per_channel": {"0": {}},
        "label_manager": "LabelManager",
        "experiment_planner_used": "ExperimentPlanner",
        "original_median_spacing_after_transp": [1.0, 1.0, 1.0],
        "original_median_shape_after_transp": [64, 64, 64],
    }


def write_model(folder: Path, *, takes_3d_boxes: bool = True) -> Path:
    """Write the model as nnInteractive reads it; needs torch and the network's package."""
    import torch
    from dynamic_network_architectures.architectures.unet import PlainConvUNet
    from torch import nn

    network = PlainConvUNet(
        input_channels=8,
        n_stages=2,
        features_per_stage=[2, 4],
        conv_op=nn.Conv3d,
        kernel_sizes=[[3, 3, 3], [3, 3, 3]],
        strides=[[1, 1, 1], [2, 2, 2]],
        n_conv_per_stage=[1, 1],
        num_classes=2,
        n_conv_per_stage_decoder=[1],
        conv_bias=True,
        nonlin=nn.LeakyReLU,
        nonlin_kwargs={"inplace": True},
        deep_supervision=False,
    )
    with torch.no_grad():
        for value in network.parameters():
            value.zero_()
        first = network.encoder.stages[0][0].convs[0].conv.weight  # channels: image, mask, box +-,
        for channel, weight in zip(range(1, 8), (1, 1, -3, 1, -3, 1, -3), strict=True):
            first[0, channel, 1, 1, 1] = weight  # points +-, scribble +-
        # The decoder sees two channels from below, then two of the skip connection.
        network.decoder.stages[0].convs[0].conv.weight[0, 2, 1, 1, 1] = 1
        network.decoder.seg_layers[0].weight[1, 0] = 1
        network.decoder.seg_layers[0].bias[0] = 0.1
    fold = folder / "fold_0"
    fold.mkdir(parents=True)
    torch.save(
        {
            "network_weights": network.state_dict(),
            "trainer_name": "nnUNetTrainer",
            "init_args": {"configuration": "3d_fullres"},
            "inference_allowed_mirroring_axes": None,
        },
        fold / "checkpoint_final.pth",
    )
    info = {
        "inference_class": "nnInteractiveInferenceSession",
        "point_radius": 4,
        "preferred_scribble_thickness": [2, 2, 2],
        "interaction_decay": 0.98,
        "pad_mode_image": "constant",
        "supported_interactions": {
            "scribble": True,
            "lasso": True,
            "points": True,
            "bbox2d": True,
            "bbox3d": takes_3d_boxes,
        },
        "interaction_channels": 6,
        "supports_initial_label": True,
    }
    labels = {"background": 0, "object": 1}
    data_set = {"channel_names": {"0": "image"}, "labels": labels, "file_ending": ".nii.gz"}
    for name, content in (("inference_info", info), ("plans", plans()), ("dataset", data_set)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    (folder / "LICENSE").write_text(f"\n{LICENCE}\nhttps://example.org\n")
    return folder

"""One tiny network with weights stated by hand, in every format, and what it must give."""

import json
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn

PATCH = (8, 8, 8)
CHANNELS, LABELS = ["pre", "post"], {"tumour": 1, "vessel": 4}


class Tiny(nn.Module):
    """Two convolutions: 2 channels, 3 outputs. It depends on the place within a tile's border."""

    def __init__(self, heads=3):
        super().__init__()
        self.first = nn.Conv3d(2, 2, 3, padding=1)
        self.last = nn.Conv3d(2, heads, 1)
        with torch.no_grad():
            for number, value in enumerate(self.parameters()):
                n = torch.arange(value.numel(), dtype=torch.float32)
                value.copy_((torch.sin(3.7 * n + number) / 2).reshape(value.shape))
            self.last.bias.copy_(torch.tensor([0.0, 0.07, -0.05])[:heads])

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))


def section(**changes):
    """Return the section "network" of a recipe."""
    made = {"channels": CHANNELS, "labels": LABELS, "patch": list(PATCH), "output": "logits"}
    return {**made, **changes}


def recipe(folder, network=None, **changes):
    """Write a recipe and return its folder."""
    made = {"format": "napari-mamamia recipe", "version": 1, "network": network or section()}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mamamia_model.json").write_text(json.dumps({**made, **changes}))
    return folder


def exported(module, path, shape=(1, 2, *PATCH)):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(module.eval(), (torch.zeros(shape),)), path)
    return path


def scripted(module, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(module.eval()).save(str(path))
    return path


def onnx_file(module, path, shape=(1, 2, *PATCH), dynamic=False):
    axes = {"x": {2: "z", 3: "y", 4: "w"}} if dynamic else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(), (torch.zeros(shape),), str(path), dynamo=False,
            input_names=["x"], dynamic_axes=axes,
        )  # fmt: skip
    return path


def ir_file(source, path):
    import openvino as ov

    ov.save_model(ov.convert_model(str(source)), path, compress_to_fp16=False)
    return path


def unet_architecture():
    """Return a plain U-Net of nnU-Net's, as its plans name it."""
    kwargs = {
        "n_stages": 2, "features_per_stage": [2, 3], "conv_op": "torch.nn.modules.conv.Conv3d",
        "kernel_sizes": [[3, 3, 3], [3, 3, 3]], "strides": [[1, 1, 1], [2, 2, 2]],
        "n_conv_per_stage": [1, 1], "n_conv_per_stage_decoder": [1], "conv_bias": True,
        "norm_op": None, "norm_op_kwargs": {}, "dropout_op": None, "dropout_op_kwargs": None,
        "nonlin": "torch.nn.LeakyReLU", "nonlin_kwargs": {"inplace": True},
    }  # fmt: skip
    return {
        "network_class_name": "dynamic_network_architectures.architectures.unet.PlainConvUNet",
        "arch_kwargs": kwargs,
        "_kw_requires_import": ["conv_op", "nonlin"],
    }


def unet():
    """Return that U-Net, built by hand, with weights stated by hand."""
    from dynamic_network_architectures.architectures.unet import PlainConvUNet

    network = PlainConvUNet(
        2, 2, [2, 3], nn.Conv3d, [[3] * 3] * 2, [[1] * 3, [2] * 3], [1, 1], 3, [1], True,
        None, {}, None, None, nn.LeakyReLU, {"inplace": True},
    ).eval()  # fmt: skip
    with torch.no_grad():
        for number, value in enumerate(network.parameters()):
            n = torch.arange(value.numel(), dtype=torch.float32)
            value.copy_((torch.sin(5 * n + number) / 2).reshape(value.shape))
    return network


def write_all(folder: Path, module=None, architecture=None):
    """Write one module in every format; return (format, folder) pairs, each with its recipe."""
    from safetensors.torch import save_file

    module = module or unet()
    made = {}
    for name in ("script", "exported", "onnx", "ir", "safetensors"):
        built = architecture or unet_architecture() if name == "safetensors" else None
        made[name] = recipe(folder / name, section(architecture=built))
    scripted_by_trace(module, made["script"] / "net.pt")
    exported(module, made["exported"] / "net.pt2")
    onnx_file(module, made["onnx"] / "net.onnx")
    ir_file(made["onnx"] / "net.onnx", made["ir"] / "net.xml")
    state = {name: value.clone() for name, value in module.state_dict().items()}
    save_file(state, made["safetensors"] / "net.safetensors")
    return made


def scripted_by_trace(module, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(module, torch.zeros(1, 2, *PATCH)).save(str(path))
    return path


def volumes(shape, seed=3):
    """Return two channels with values of an MR image, as float32."""
    rng = np.random.default_rng(seed)
    return [rng.normal(0, 1, shape).astype(np.float32) for _ in range(2)]


def averaged(module, arrays, starts, offset, padded, heads, weight=None):
    """Return the mean outputs, tile by tile, in double precision, and the padding cut off."""
    shape = arrays[0].shape
    data = np.zeros((len(arrays), *padded), np.float32)
    inner = tuple(slice(o, o + n) for o, n in zip(offset, shape, strict=True))
    for channel, array in enumerate(arrays):
        data[(channel, *inner)] = array
    total, times = np.zeros((heads, *padded)), np.zeros(padded)
    weight = np.ones(PATCH) if weight is None else weight
    for z in starts[0]:
        for y in starts[1]:
            for x in starts[2]:
                cut = (slice(z, z + 8), slice(y, y + 8), slice(x, x + 8))
                with torch.no_grad():
                    tile = module(torch.from_numpy(data[(slice(None), *cut)][None].copy()))
                total[(slice(None), *cut)] += tile[0].double().numpy() * weight
                times[cut] += weight
    return (total / times)[(slice(None), *inner)]

"""Small MONAI bundles with random weights, and what MONAI itself makes of them."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np

from napari_mamamia.core.grid import Grid

COMPOSE = {"_target_": "Compose"}


def network(kind="UNet", channels=2, outputs=3, **more) -> dict[str, Any]:
    """Return a network_def; each kind has some 10,000 weights."""
    known = {
        "UNet": {"channels": [4, 8], "strides": [2], "num_res_units": 1},
        "SegResNet": {
            "init_filters": 8,
            "blocks_down": [1, 1],
            "blocks_up": [1],
            "norm": ["INSTANCE", {"affine": True}],
        },
        "DynUNet": {
            "kernel_size": [3, 3, 3],
            "strides": [1, 2, 2],
            "upsample_kernel_size": [2, 2],
            "filters": [4, 8, 8],
        },
    }
    return {
        "_target_": kind,
        "spatial_dims": 3,
        "in_channels": channels,
        "out_channels": outputs,
        **known[kind],
        **more,
    }


def config(channels=2, outputs=3) -> dict[str, Any]:
    """Return an inference.json in the form of the Model Zoo's."""
    return {
        "imports": ["$import glob", "$import os"],
        "bundle_root": ".",
        "output_dir": "$@bundle_root + '/eval'",
        "device": "$torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')",
        "patch_size": [20, 16, 12],
        "network_def": network("UNet", channels, outputs),
        "network": "$@network_def.to(@device)",
        "preprocessing": {
            **COMPOSE,
            "transforms": [
                {"_target_": "LoadImaged", "keys": "image"},
                {"_target_": "EnsureChannelFirstd", "keys": "image"},
                {"_target_": "Orientationd", "keys": "image", "axcodes": "RAS"},
                {
                    "_target_": "Spacingd",
                    "keys": "image",
                    "pixdim": [1.0, 1.0, 1.5],
                    "mode": "bilinear",
                },
                {
                    "_target_": "NormalizeIntensityd",
                    "keys": "image",
                    "nonzero": True,
                    "channel_wise": True,
                },
                {"_target_": "EnsureTyped", "keys": "image", "device": "@device"},
            ],
        },
        "dataset": {"_target_": "Dataset", "data": "$[{'image': i} for i in glob.glob('*')]"},
        "inferer": {
            "_target_": "SlidingWindowInferer",
            "roi_size": "@patch_size",
            "sw_batch_size": 3,
            "overlap": 0.5,
            "mode": "gaussian",
        },
        "postprocessing": {
            **COMPOSE,
            "transforms": [
                {"_target_": "Activationsd", "keys": "pred", "softmax": True},
                {
                    "_target_": "Invertd",
                    "keys": "pred",
                    "transform": "@preprocessing",
                    "orig_keys": "image",
                    "meta_key_postfix": "meta_dict",
                    "nearest_interp": False,
                    "to_tensor": True,
                },
                {"_target_": "AsDiscreted", "keys": "pred", "argmax": True},
                {"_target_": "SaveImaged", "keys": "pred", "output_dir": "@output_dir"},
            ],
        },
    }


def metadata(channels=2, outputs=("background", "tumour", "vessel")) -> dict[str, Any]:
    return {
        "version": "0.3.1",
        "monai_version": "1.4.0",
        "name": "Made up",
        "task": "breast lesion",
        "authors": "nobody",
        "copyright": "Copyright nobody",
        "intended_use": "tests",
        "network_data_format": {
            "inputs": {
                "image": {
                    "type": "image",
                    "num_channels": channels,
                    "spatial_shape": [20, 16, 12],
                    "dtype": "float32",
                    "value_range": [0, 1],
                    "channel_def": {str(k): f"phase {k}" for k in range(channels)},
                }
            },
            "outputs": {
                "pred": {
                    "num_channels": len(outputs),
                    "channel_def": {str(k): name for k, name in enumerate(outputs)},
                }
            },
        },
    }


def built(definition: dict[str, Any], seed=1):
    """Return MONAI's network of a network_def with random weights."""
    import torch
    from monai.bundle import ConfigParser

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = ConfigParser({"n": definition}).get_parsed_content("n")
        for value in made.parameters():
            if value.ndim > 1:
                torch.nn.init.normal_(value, 0, 0.3)
    return made.eval()


def write_bundle(folder: Path, inference=None, about=None, *, scripted=False, wrap="") -> Path:
    """Write a bundle and return its folder; `scripted` writes model.ts, else model.pt."""
    import torch

    inference = inference or config()
    (folder / "configs").mkdir(parents=True)
    (folder / "models").mkdir()
    (folder / "configs" / "metadata.json").write_text(json.dumps(about or metadata()))
    (folder / "configs" / "inference.json").write_text(json.dumps(inference))
    made = built(inference["network_def"])
    if scripted:
        torch.jit.script(made).save(str(folder / "models" / "model.ts"))
    else:
        weights = made.state_dict()
        torch.save({wrap: weights} if wrap else weights, folder / "models" / "model.pt")
    return folder


def oblique_grid(shape=(14, 30, 26)) -> Grid:
    """Return a thick-sliced grid turned about two axes, left-handed, rounded as NIfTI stores it."""
    c, s = np.cos(0.2), np.sin(0.2)
    about_z = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    about_x = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    affine = np.eye(4)
    affine[:3, :3] = about_z @ about_x @ np.diag([-0.9, 0.8, 2.2])
    affine[:3, 3] = 30, -20, 5
    return Grid(shape, affine.astype(np.float32))


def images(grid: Grid, count=2, seed=3) -> list[np.ndarray]:
    """Return smooth bright blobs on noise, int16, with an empty border along one axis."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        volume = gaussian_filter(rng.normal(0, 1, grid.shape), 1.5) * 900 + 200
        volume += rng.normal(0, 10, grid.shape)
        volume[:, :3] = 0
        made.append(np.clip(volume, 0, 3000).astype(np.int16))
    return made


def by_monai(bundle: Path, inference, arrays, grid, folder: Path, *, without=(), network=None):
    """Return ``pred`` ``(channel, z, y, x)`` of the bundle's own configs, run by MONAI on files.

    Nothing of napari-mamamia takes part: images are NIfTI files that MONAI reads itself.
    """
    import nibabel as nib
    import torch
    from monai.bundle import ConfigParser

    files = []
    for number, array in enumerate(arrays):
        files.append(folder / f"image_{number}.nii.gz")
        nib.save(nib.Nifti1Image(array.T, np.array(grid.affine)), files[-1])
    left = copy.deepcopy(inference)
    steps = left["postprocessing"]["transforms"]
    drop = {"SaveImaged", *without}
    left["postprocessing"]["transforms"] = [s for s in steps if s["_target_"] not in drop]
    parser = ConfigParser(left)
    keys = left["preprocessing"]["transforms"][0]["keys"]
    data = {"image": files} if isinstance(keys, str) else dict(zip(keys, files, strict=True))
    data = parser.get_parsed_content("preprocessing")(data)
    if network is None:
        network = parser.get_parsed_content("network_def").eval()
        stored = torch.load(bundle / "models" / "model.pt", weights_only=True)
        network.load_state_dict(stored.get("model", stored))
    with torch.no_grad():
        out = parser.get_parsed_content("inferer")(data["image"][None], network)
    data["pred"] = out[0]
    found = parser.get_parsed_content("postprocessing")(data)["pred"]
    return np.asarray(found).transpose(0, 3, 2, 1)

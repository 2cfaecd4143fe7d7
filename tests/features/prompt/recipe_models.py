"""Stand-ins for prompt models with a recipe: small networks whose answers are worked out by hand.

`SPARSE` is called as MedSAM2 and VISTA3D are: an image, coordinates and labels of points. `DENSE`
gets prompts as volumes, with the mask so far, as interactive U-Nets do.
"""

import json
from pathlib import Path

PATCH = (16, 20, 24)
SPARSE = {
    "format": "napari-mamamia prompt recipe",
    "version": 1,
    "title": "Stand-in with points",
    "file": "network.ts",
    "licence": "Stand-in licence",
    "patch": list(PATCH),
    "inputs": [
        {"kind": "channels", "channels": ["image"]},
        {"kind": "points"},
        {"kind": "point labels", "type": "int64"},
    ],
    "points": {"axes": "xyz", "box": [2, 3], "count": 4},
}
DENSE = {
    "format": "napari-mamamia prompt recipe",
    "version": 1,
    "title": "Stand-in with volumes",
    "file": "network.onnx",
    "patch": list(PATCH),
    "inputs": [
        {"kind": "channels", "channels": ["image"]},
        {"kind": "channels", "channels": ["mask", "include", "exclude"]},
    ],
    "point_radius": 2,
    "output": "probabilities",
}


def write_recipe(folder: Path, recipe: dict) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "mamamia_prompt.json").write_text(json.dumps(recipe))
    return folder


def write_sparse(folder: Path, **changes) -> Path:
    """Write a network that marks balls of 3 voxels around points, and the inside of boxes."""
    import torch
    from torch import nn

    class Sparse(nn.Module):
        def forward(self, image, points, labels):
            shape = image.shape[2:]
            z = torch.arange(shape[0]).reshape(-1, 1, 1)
            y = torch.arange(shape[1]).reshape(1, -1, 1)
            x = torch.arange(shape[2]).reshape(1, 1, -1)
            marked = torch.full_like(image[0, 0], -1.0)
            for n in range(points.shape[1]):
                px, py, pz = points[0, n, 0], points[0, n, 1], points[0, n, 2]
                ball = (z - pz) ** 2 + (y - py) ** 2 + (x - px) ** 2 <= 9
                if int(labels[0, n]) == 1:
                    marked = torch.where(ball, torch.ones_like(marked), marked)
                if int(labels[0, n]) == 0:
                    marked = torch.where(ball, -torch.ones_like(marked), marked)
                if int(labels[0, n]) == 3:
                    low = points[0, n - 1]
                    box = (z >= low[2]) & (z < pz) & (y >= low[1]) & (y < py)
                    box = box & (x >= low[0]) & (x < px)
                    marked = torch.where(box, torch.ones_like(marked), marked)
            return marked[None, None], image.mean()

    write_recipe(folder, SPARSE | changes)
    torch.jit.save(torch.jit.script(Sparse()), str(folder / "network.ts"))
    return folder


def write_dense(folder: Path, **changes) -> Path:
    """Write a network whose object is mask + include - 3 exclude, voxel for voxel."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    shape = [1, None, *PATCH]
    weight = np.array([1, 1, -3], np.float32).reshape(1, 3, 1, 1, 1)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["prompts", "weight"], ["sum"]),
            helper.make_node("Mul", ["image", "zero"], ["nothing"]),
            helper.make_node("Add", ["sum", "nothing"], ["object"]),
        ],
        "dense",
        [
            helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, *PATCH]),
            helper.make_tensor_value_info("prompts", TensorProto.FLOAT, [1, 3, *PATCH]),
        ],
        [helper.make_tensor_value_info("object", TensorProto.FLOAT, shape)],
        [
            numpy_helper.from_array(weight, "weight"),
            numpy_helper.from_array(np.zeros(1, np.float32), "zero"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    write_recipe(folder, DENSE | changes)
    onnx.save(model, folder / "network.onnx")
    return folder

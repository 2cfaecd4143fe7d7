"""LPIPS: a perceptual distance between two images, computed from a network's features.

Source: R. Zhang et al., CVPR 2018; torchmetrics 1.9.0 (behaviour, no code).
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import MissingExtraError
from napari_mamamia.features.challenge.io.answer_files import read_weights

_SHIFT: Final = (-0.030, -0.088, -0.188)
_SCALE: Final = (0.458, 0.448, 0.450)
_LAYERS: Final = ((4, 2), (1, 2), (1, 1), (1, 1), (1, 1))
"""Stride and padding of AlexNet's five convolutions."""
_POOLED: Final = (1, 2)
_TINY: Final = 1e-8


def load_alexnet(path: str) -> Callable[[NDArray[np.float64], NDArray[np.float64]], float]:
    """Load the weights in an .npz file, and return a function for the LPIPS of two images.

    The file has ``conv0`` to ``conv4``, ``bias0`` to ``bias4`` and ``head0`` to ``head4``.

    Raises
    ------
    FormatError
        If the file cannot be read.
    MissingExtraError
        If torch is not installed.
    """
    try:
        import torch
        from torch.nn import functional
    except ImportError as error:
        raise MissingExtraError("torch", "segment") from error
    arrays = {name: torch.tensor(array).float() for name, array in read_weights(path).items()}
    shift, scale = (torch.tensor(numbers)[None, :, None, None] for numbers in (_SHIFT, _SCALE))

    def list_features(image: NDArray[np.float64]) -> list[Any]:
        signal = torch.from_numpy(image).float()[None, None].expand(-1, 3, -1, -1)
        signal, features = (signal - shift) / scale, []
        for number, (stride, padding) in enumerate(_LAYERS):
            if number in _POOLED:
                signal = functional.max_pool2d(signal, 3, 2)
            weights, bias = arrays[f"conv{number}"], arrays[f"bias{number}"]
            signal = functional.conv2d(signal, weights, bias, stride=stride, padding=padding).relu()
            norm = torch.sqrt(_TINY + (signal**2).sum(dim=1, keepdim=True))
            features.append(signal / norm)
        return features

    def distance(image: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
        total = 0.0
        with torch.no_grad():
            pairs = zip(list_features(image), list_features(truth), strict=True)
            for number, (one, other) in enumerate(pairs):
                head = arrays[f"head{number}"].reshape(1, -1, 1, 1)
                total += functional.conv2d((one - other) ** 2, head).mean()
        return float(total)

    return distance

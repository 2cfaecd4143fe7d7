"""The network of the learned brush in numpy: loads its weights and computes its output."""

import json
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray

_FILE: Final = "brush.safetensors"
_HEADER: Final = 8  # number of bytes that hold the length of the header

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A network with its weights by layer, and the SHA-256 of the weights file."""

    weights: dict[str, Floats]
    sha256: str

    def predict(self, patch: Floats) -> Floats:
        """Return the log odds that points belong to the lesion, for a patch from `make_patch`."""
        fine = self._convolve("down1b", self._convolve("down1a", patch))
        middle = self._convolve("down2b", self._convolve("down2a", _halve(fine)))
        low = self._convolve("low_b", self._convolve("low_a", _halve(middle)))
        middle = self._convolve("up2a", np.concatenate([_double(low), middle]))
        middle = self._convolve("up2b", middle)
        fine = self._convolve("up1a", np.concatenate([_double(middle), fine]))
        fine = self._convolve("up1b", fine)
        odds: Floats = np.tensordot(self.weights["out.weight"][0, :, 0, 0, 0], fine, 1)
        odds += np.tensordot(self.weights["skip.weight"][0, :, 0, 0, 0], patch, 1)
        odds += self.weights["out.bias"][0]
        return odds

    def _convolve(self, layer: str, image: Floats) -> Floats:
        """Return a zero-padded 3 x 3 x 3 convolution with negative values set to 0 (ReLU).

        The rows of the padded image are stored as one long row. The offset of a neighbour is
        therefore constant, and each of the 27 matrix products reads the image without a copy.
        """
        weight, bias = self.weights[f"{layer}.weight"], self.weights[f"{layer}.bias"]
        n_in, n_z, n_y, n_x = image.shape
        padded = np.zeros((n_in, n_z + 2, n_y + 2, n_x + 2), np.float32)
        padded[:, 1:-1, 1:-1, 1:-1] = image
        flat = padded.reshape(n_in, -1)
        steps = ((n_y + 2) * (n_x + 2), n_x + 2, 1)
        first = sum(steps)
        n_values = flat.shape[1] - 2 * first
        out = np.zeros((len(weight), flat.shape[1]), np.float32)
        total = out[:, first : first + n_values]
        product = np.empty(total.shape, np.float32)
        for z, y, x in np.ndindex(3, 3, 3):
            start = z * steps[0] + y * steps[1] + x * steps[2]
            np.matmul(weight[:, :, z, y, x], flat[:, start : start + n_values], out=product)
            total += product
        total += bias[:, None]
        np.maximum(total, 0, out=total)
        return out.reshape(len(weight), *padded.shape[1:])[:, 1:-1, 1:-1, 1:-1]


def parse_weights(content: bytes) -> dict[str, Floats]:
    """Return the arrays in a safetensors file, which must contain only float32 arrays."""
    start = _HEADER + int.from_bytes(content[:_HEADER], "little")
    header = json.loads(content[_HEADER:start])
    weights = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        first, last = entry["data_offsets"]
        values = np.frombuffer(content[start + first : start + last], "<f4")
        weights[name] = values.reshape(entry["shape"]).astype(np.float32)
    return weights


def read_network(content: bytes) -> Network:
    """Return the network from the content of its safetensors file."""
    return Network(parse_weights(content), sha256(content).hexdigest())


@cache
def load_network() -> Network:
    """Return the network that is included in the program."""
    return read_network(files(__package__).joinpath(_FILE).read_bytes())


def _halve(image: Floats) -> Floats:
    """Return the maximum of each block of 2 x 2 x 2 values."""
    n_in, n_z, n_y, n_x = image.shape
    blocks = image.reshape(n_in, n_z // 2, 2, n_y // 2, 2, n_x // 2, 2)
    halved: Floats = blocks.max(axis=(2, 4, 6))
    return halved


def _double(image: Floats) -> Floats:
    """Return the image with each value repeated in a block of 2 x 2 x 2."""
    return image.repeat(2, 1).repeat(2, 2).repeat(2, 3)

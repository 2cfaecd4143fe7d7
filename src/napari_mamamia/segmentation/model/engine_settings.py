"""Settings of a model run, and the record of the run; torch is not needed."""

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import Backend
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.provenance import Setting
from napari_mamamia.segmentation.model.device import DEVICES, is_device

BACKENDS = (Backend.TORCH, Backend.OPENVINO)
PRECISIONS = ("fp32", "bf16")
_FILE_NAME: Final = re.compile(r"^\w[\w.-]*$")


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Settings of a run; with the defaults, the mask is the same as nnU-Net's.

    Parameters
    ----------
    folds
        The names of the folds to average (``"0"`` to ``"4"``, or ``"all"``); if empty, all
        available folds are averaged.
    step
        The distance of tiles as a fraction of the patch, above 0 and at most 1; nnU-Net uses 0.5.
    mirroring
        Whether to average mirrored copies along the axes that the checkpoint allows.
    device, backend, precision
        Members of `DEVICES` (or ``cuda:N``), `BACKENDS` and `PRECISIONS`. For nnU-Net, only torch
        with fp32 on the CPU is exact. "torch" runs a network in a single file with the runtime of
        its format, which is ONNX Runtime for ONNX; "openvino" runs every format with OpenVINO.
    threads
        The number of CPU threads; None keeps torch's number.
    checkpoint
        The file name in each fold's folder; if empty, ``checkpoint_final.pth``, or else
        ``checkpoint_best.pth``.
    accept_trainer
        Whether to assume that a trainer unknown to nnU-Net uses the network in the plans.
    keep_probability
        Whether to return the probability map of the foreground too.
    most_copies
        The largest number of mirrored copies, including the tile itself; the last axes of the
        checkpoint are used. None uses all copies, as in nnU-Net.

    Raises
    ------
    ModelError
        If a value is out of range.
    """

    folds: tuple[str, ...] = ()
    step: float = 0.5
    mirroring: bool = True
    device: str = "auto"
    backend: str = "torch"
    precision: str = "fp32"
    threads: int | None = None
    checkpoint: str = ""
    accept_trainer: bool = False
    keep_probability: bool = False
    most_copies: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.step <= 1:
            raise ModelError(
                f"expected the step to be above 0 and up to 1, such as 0.5, but got {self.step}"
            )
        if self.most_copies is not None and self.most_copies < 1:
            raise ModelError(f"expected at least 1 copy of a tile, but got {self.most_copies}")
        if self.threads is not None and self.threads < 1:
            raise ModelError(f"expected at least 1 thread, but got {self.threads}")
        if self.checkpoint and not _FILE_NAME.match(self.checkpoint):
            raise ModelError(
                "expected the checkpoint to be a file name in a fold's folder, such as "
                f"checkpoint_best.pth, but got {self.checkpoint!r}; omit the folders"
            )
        if not is_device(self.device):
            raise ModelError(
                f"expected the device to be one of {', '.join(DEVICES)} or cuda:N, but got "
                f"{self.device!r}"
            )
        for name, value, names in (
            ("backend", self.backend, BACKENDS),
            ("precision", self.precision, PRECISIONS),
        ):
            if value not in names:
                raise ModelError(
                    f"expected the {name} to be one of {', '.join(names)}, but got {value!r}"
                )


@dataclass(frozen=True, slots=True)
class TilePlan:
    """The cost of a run: number of tiles per fold, and number of mirrored copies of each tile.

    `skipped` is the number of tiles outside the region. `model_shape` is the volume's shape on the
    model's grid, and `bytes_needed` is the memory for the sums, the data and the largest
    preparation step. `first` is the plan for the first stage of a cascade; the tiles of both stages
    are weighted by their number of voxels, which is `tile_voxels` for this plan.
    """

    tiles: int
    skipped: int
    passes: int
    folds: int
    model_shape: tuple[int, ...]
    bytes_needed: int
    tile_voxels: int = 0
    first: "TilePlan | None" = None

    @property
    def forwards(self) -> int:
        """Number of network runs, without those of a first stage."""
        return self.tiles * self.passes * self.folds

    @property
    def work(self) -> float:
        """Cost of the run, as an equivalent number of network runs including a first stage.

        Examples
        --------
        >>> first = TilePlan(1, 0, 2, 1, (16, 16, 16), 0, tile_voxels=4000)
        >>> TilePlan(8, 0, 2, 1, (24, 24, 24), 0, tile_voxels=8000, first=first).work
        17.0
        """
        if self.first is None:
            return float(self.forwards)
        scale = self.first.tile_voxels / max(self.tile_voxels, 1)
        return self.forwards + self.first.work * scale

    @property
    def voxels(self) -> int:
        """Number of voxels of the volumes on the models' grids, including a first stage."""
        n_voxels = math.prod(self.model_shape)
        return n_voxels if self.first is None else n_voxels + self.first.voxels

    @property
    def first_share(self) -> float:
        """Fraction of the work that the first stage takes, from 0 to 1."""
        return (self.work - self.forwards) / self.work if self.work else 0.0

    @property
    def text(self) -> str:
        """The numbers of tiles, copies and folds as text."""
        sentence = f"{self.tiles} tiles x {self.passes} copies x {self.folds} folds"
        return sentence if self.first is None else f"{sentence}, first stage {self.first.text}"

    def with_folds(self, count: int) -> "TilePlan":
        """Return the plan for `count` folds; a first stage uses at most as many folds."""
        first = self.first
        if first is not None:
            first = first.with_folds(min(count, first.folds))
        return replace(self, folds=count, first=first)


@dataclass(frozen=True, slots=True)
class Ran:
    """Record of a run; `cut_short` describes the effect of a time limit, or is ""."""

    folds_asked: tuple[str, ...]
    folds_done: tuple[str, ...]
    tiles: int
    tiles_skipped: int
    passes: int
    step: float
    device: str
    backend: str
    precision: str
    threads: int
    cut_short: str = ""
    seconds: tuple[tuple[str, float], ...] = ()

    def parameters(self) -> tuple[tuple[str, Setting], ...]:
        """Return the parameters of the run for the provenance."""
        return (
            ("folds", ",".join(self.folds_done)),
            ("folds_asked", ",".join(self.folds_asked)),
            ("step", self.step),
            ("mirrored_copies", self.passes),
            ("tiles", self.tiles),
            ("tiles_skipped", self.tiles_skipped),
            ("device", self.device),
            ("backend", self.backend),
            ("precision", self.precision),
            ("threads", self.threads),
            ("cut_short", self.cut_short),
        )


@dataclass(frozen=True, slots=True, eq=False)
class EngineResult:
    """The result of a run: labels on the case's grid ``(z, y, x)``, and the probability map.

    Labels are uint8, or uint16 if the model has 255 labels or more. `probability` is a float16
    array ``(z, y, x)`` with the probability that a voxel is not background, or None if not
    requested. `peak_memory_bytes` is the peak resident memory of the worker process, or None if the
    model ran in this process.
    """

    labels: NDArray[Any]
    ran: Ran
    probability: NDArray[np.float16] | None = None
    peak_memory_bytes: int | None = None

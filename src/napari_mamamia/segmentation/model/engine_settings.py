"""What a model's run is asked to do, and what it then did. No torch here."""

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import Backend
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.provenance import Setting
from napari_mamamia.segmentation.model.device import DEVICES

BACKENDS = (Backend.TORCH, Backend.OPENVINO)
PRECISIONS = ("fp32", "bf16")
_FILE_NAME: Final = re.compile(r"^\w[\w.-]*$")


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How a model is run; the defaults are nnU-Net's own, so the mask is too.

    Parameters
    ----------
    folds
        Names of the folds to average (``"0"`` .. ``"4"``, ``"all"``); empty takes all that are
        there.
    step
        Distance of tiles as a share of the patch, above 0 and at most 1; nnU-Net's is 0.5.
    mirroring
        Whether mirrored copies are averaged, along the axes that the checkpoint allows.
    device, backend, precision
        One of `DEVICES`, `BACKENDS`, `PRECISIONS`. For nnU-Net, only torch with fp32 on the
        processor is exact. "torch" runs a network in a single file with what its format is made
        for, which for ONNX is ONNX Runtime; "openvino" runs every format with OpenVINO.
    threads
        Threads of the processor; None leaves torch's number as it is.
    checkpoint
        File name in each fold's folder; empty takes ``checkpoint_final.pth``, else ``_best``.
    accept_trainer
        Whether a trainer that nnU-Net does not have is taken to build the plans' own network.
    keep_probability
        Whether the foreground's probability map is returned too.
    most_copies
        No more mirrored copies than that, the tile itself counted: of the checkpoint's axes the
        last ones are kept. None takes all; nnU-Net's own.

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
            raise ModelError(f"the step must lie above 0 and up to 1, got {self.step}: use 0.5")
        if self.most_copies is not None and self.most_copies < 1:
            raise ModelError(
                f"there must be at least 1 copy of a tile, got {self.most_copies}: use 1 or more"
            )
        if self.threads is not None and self.threads < 1:
            raise ModelError(f"threads must be at least 1, got {self.threads}: use 1 or more")
        if self.checkpoint and not _FILE_NAME.match(self.checkpoint):
            raise ModelError(
                "a checkpoint should be the name of a file in a fold's folder, such as "
                f"checkpoint_best.pth, got {self.checkpoint!r}: leave the folders out"
            )
        for name, value, names in (
            ("device", self.device, DEVICES),
            ("backend", self.backend, BACKENDS),
            ("precision", self.precision, PRECISIONS),
        ):
            if value not in names:
                raise ModelError(
                    f"the {name} should be one of {', '.join(names)}, got {value!r}: choose another"
                )


@dataclass(frozen=True, slots=True)
class TilePlan:
    """What a run would cost: `tiles` to compute in each fold, `passes` mirrored copies of each.

    `skipped` tiles lie outside the region. `model_shape` is the volume's shape on the model's grid,
    and `bytes_needed` what the sums, the data and the largest step of preparing it take, in bytes.
    `first` is a cascade's first stage; its tiles count by voxels, of which a tile here has
    `tile_voxels`.
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
        """How often the network runs, that of a first stage left out."""
        return self.tiles * self.passes * self.folds

    @property
    def work(self) -> float:
        """How often the network could run in the same time, a first stage counted in.

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
        """Voxels of the volumes on the models' grids, a first stage's among them."""
        n_voxels = math.prod(self.model_shape)
        return n_voxels if self.first is None else n_voxels + self.first.voxels

    @property
    def first_share(self) -> float:
        """Share of the work that a first stage is, 0 to 1."""
        return (self.work - self.forwards) / self.work if self.work else 0.0

    @property
    def text(self) -> str:
        """Tiles, copies and folds for people."""
        sentence = f"{self.tiles} tiles x {self.passes} copies x {self.folds} folds"
        return sentence if self.first is None else f"{sentence}, first stage {self.first.text}"

    def with_folds(self, count: int) -> "TilePlan":
        """Return the plan with `count` folds; a first stage has no more than that."""
        first = self.first
        if first is not None:
            first = first.with_folds(min(count, first.folds))
        return replace(self, folds=count, first=first)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run did. `cut_short` says in plain words what the time limit cost, "" if nothing."""

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
        """Return what provenance keeps of the run."""
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
    """Labels on the case's grid, ``(z, y, x)`` uint8 (uint16 from 255 labels on).

    `probability` is float16 ``(z, y, x)``, 0 to 1: that a voxel is not background; None unless it
    was asked for. `peak_memory_bytes` is the highest resident memory of the process that ran it,
    None where it is this one.
    """

    labels: NDArray[Any]
    ran: Ran
    probability: NDArray[np.float16] | None = None
    peak_memory_bytes: int | None = None

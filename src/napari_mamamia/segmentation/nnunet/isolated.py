"""Taking the numbers out of a refused checkpoint: it is opened in a closed room, never here.

Whatever the file runs finds no network, a read-only system with no person's files, one fresh
folder to write to, and limits of time and memory. Only a safetensors file is taken out.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.choices import IsolationKind
from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.sandbox.external import require_plain_file
from napari_mamamia.segmentation.sandbox.isolation import (
    Isolation,
    find_isolation,
    require_no_root,
)
from napari_mamamia.segmentation.sandbox.limits import Ending, RunLimits, usual_memory_bytes
from napari_mamamia.segmentation.sandbox.pipes import Wording
from napari_mamamia.segmentation.sandbox.run import run_in_sandbox
from napari_mamamia.segmentation.sandbox.sandbox import find_interpreter, lay_out_module

_MODULE: Final = Path(__file__).with_name("unpickle.py")
_RESULT: Final = "weights.safetensors"  # nnunet_unpickle.RESULT; importing it would import torch
_TORCH_BYTES: Final = 2 * 10**9  # torch alone takes 0.3 to 1 GB
_PER_BYTE: Final = 5  # the file, its pickled half and its copy are in memory at once
_SCRATCH_BYTES: Final = 64 * 2**20
_ROOM_FOR_HEADER: Final = 16 * 2**20
_PROGRAM: Final = "opening the checkpoint"


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What opening one checkpoint may take: seconds, and bytes of memory (0: by its size)."""

    seconds: float = 120.0
    memory_bytes: int = 0

    def for_file(self, checkpoint: Path) -> RunLimits:
        """Return the limits of a run; what it may write follows from the file's size too."""
        size = checkpoint.stat().st_size
        usual = min(_TORCH_BYTES + _PER_BYTE * size, usual_memory_bytes())
        return RunLimits(
            seconds=self.seconds,
            memory_bytes=self.memory_bytes or usual,
            output_bytes=size + _ROOM_FOR_HEADER,
            scratch_bytes=_SCRATCH_BYTES,
        )


def sandbox(*, as_root: bool = False) -> Isolation:
    """Return what makes a closed room on this computer.

    Raises
    ------
    ModelError
        If nothing does; the message says why, and there is no way around it. Or if this is root,
        unless `as_root` allows that.
    """
    require_no_root(as_root=as_root)
    check = find_isolation((IsolationKind.BUBBLEWRAP,))
    if check.usable:
        return check.usable[0]
    raise ModelError(
        "a checkpoint that wants to run something is only opened in a closed room, but this "
        f"computer has none ({'; '.join(check.reasons)}): convert it on a computer that has one, "
        "or ask the model's author for a clean file"
    )


def taken_out(
    checkpoint: Path, isolation: Isolation, work: Path, limits: SandboxLimits | None = None
) -> Path:
    """Open a checkpoint in a closed room and return what came out of it.

    The file that is returned lies in `work`, is plain and of a possible size; nothing else of it
    has been looked at, see `nnunet_convert`.

    Parameters
    ----------
    checkpoint
        The file.
    isolation
        From `sandbox`.
    work
        An empty folder that nothing else uses; the caller removes it.
    limits
        None takes the usual ones.

    Raises
    ------
    ModelError
        If there is no room, a limit was reached, or the file could not be opened; with the reason.
    """
    if not isolation.is_closed:
        raise ModelError(
            f"{checkpoint} is opened in a closed room only, got none: install bubblewrap"
        )
    allowed = (limits or SandboxLimits()).for_file(checkpoint)
    layout = lay_out_module(_MODULE, checkpoint, {}, work, find_interpreter())
    wording = Wording(_PROGRAM, _PROGRAM, "the file")
    log = work / "log.txt"
    run = run_in_sandbox(layout, isolation, allowed, work, log, wording)
    if run.ending is not Ending.FINISHED:
        raise ModelError(f"{checkpoint} could not be opened in the closed room: {run.reason}")
    result = layout.output[0] / _RESULT
    require_plain_file(result, allowed.output_bytes)
    return result

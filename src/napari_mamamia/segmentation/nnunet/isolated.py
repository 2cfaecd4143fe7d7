"""Extract the weights from a rejected checkpoint, which is opened only in a sandbox.

Code in the file has no network access, sees a read-only system without personal files, can write
only to one empty folder, and has limited time and memory. Only a safetensors file is taken from the
sandbox.
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
from napari_mamamia.segmentation.sandbox.pipes import Wording
from napari_mamamia.segmentation.sandbox.run import run_in_sandbox
from napari_mamamia.segmentation.sandbox.sandbox import (
    Ending,
    RunLimits,
    find_interpreter,
    lay_out_module,
    usual_memory_bytes,
)

_MODULE: Final = Path(__file__).with_name("unpickle.py")
_RESULT: Final = "weights.safetensors"  # unpickle.RESULT; importing it would import torch
_TORCH_BYTES: Final = 2 * 10**9  # torch alone takes 0.3 to 1 GB
_PER_BYTE: Final = 5  # the file, its pickled half and its copy are in memory at once
_SCRATCH_BYTES: Final = 64 * 2**20
_ROOM_FOR_HEADER: Final = 16 * 2**20
_PROGRAM: Final = "opening the checkpoint"


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits for opening one checkpoint, in seconds and bytes; 0 bytes uses the file size."""

    seconds: float = 120.0
    memory_bytes: int = 0

    def for_file(self, checkpoint: Path) -> RunLimits:
        """Return the limits for a file, with an output limit that depends on the file's size."""
        size = checkpoint.stat().st_size
        usual = min(_TORCH_BYTES + _PER_BYTE * size, usual_memory_bytes())
        return RunLimits(
            seconds=self.seconds,
            memory_bytes=self.memory_bytes or usual,
            output_bytes=size + _ROOM_FOR_HEADER,
            scratch_bytes=_SCRATCH_BYTES,
        )


def sandbox(*, as_root: bool = False) -> Isolation:
    """Return the sandbox that this computer supports.

    Raises
    ------
    ModelError
        If this computer has no sandbox, or if the user is root and `as_root` is False.
    """
    require_no_root(as_root=as_root)
    check = find_isolation((IsolationKind.BUBBLEWRAP,))
    if check.usable:
        return check.usable[0]
    raise ModelError(
        "a checkpoint that contains code is opened only in a sandbox, but this computer has none "
        f"({'; '.join(check.reasons)}); convert it on a computer with a sandbox, or ask the "
        "model's author for a clean file"
    )


def taken_out(
    checkpoint: Path, isolation: Isolation, work: Path, limits: SandboxLimits | None = None
) -> Path:
    """Open a checkpoint in a sandbox and return the path of the extracted file.

    The returned file is in `work`, is a regular file and has a plausible size; its content is not
    checked here, but in `convert`.

    Parameters
    ----------
    checkpoint
        The checkpoint file.
    isolation
        The result of `sandbox`.
    work
        An empty folder for this run only; the caller removes it.
    limits
        The limits of the run; None for the default limits.

    Raises
    ------
    ModelError
        If there is no sandbox, a limit was exceeded, or the file could not be opened.
    """
    if not isolation.is_closed:
        raise ModelError(
            f"{checkpoint} can only be opened in a sandbox, but this computer has none; install "
            "bubblewrap"
        )
    allowed = (limits or SandboxLimits()).for_file(checkpoint)
    layout = lay_out_module(_MODULE, checkpoint, {}, work, find_interpreter())
    wording = Wording(_PROGRAM, _PROGRAM, "the file")
    log = work / "log.txt"
    run = run_in_sandbox(layout, isolation, allowed, work, log, wording)
    if run.ending is not Ending.FINISHED:
        raise ModelError(f"{checkpoint} could not be opened in the sandbox: {run.reason}")
    result = layout.output[0] / _RESULT
    require_plain_file(result, allowed.output_bytes)
    return result

"""Limits of a submission, and the possible ends of its run."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from napari_mamamia.core.program.system import total_memory_bytes

CHALLENGE_SECONDS: Final = 300.0
"""The challenge's time limit for one case, in seconds. Source: its rules, 5 minutes per image."""

GIGABYTE: Final = 10**9
_MEMORY_SHARE: Final = 0.75


def usual_memory_bytes() -> int:
    """Return three quarters of this computer's memory in bytes, or 8 GB if it is unknown."""
    total = total_memory_bytes()
    return 8 * GIGABYTE if total is None else int(total * _MEMORY_SHARE)


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits for one case; exceeding one ends the run.

    Parameters
    ----------
    seconds
        Wall-clock time, including the start of Python and the loading of weights.
    memory_bytes
        Memory of all its processes together, including kernel memory and folders in memory:
        `resources.RESOURCES`.
    processes
        Processes at one time (and threads, if the kernel counts them).
    output_bytes
        Total size of the files that it writes, including deleted files that are still open.
    log_bytes
        Size of the log of its prints; further output is counted and dropped without ending the run.
    scratch_bytes
        Size of each temporary folder in memory.
    handles
        Open files, pipes, sockets, file locks and epoll watches of all its processes together.
    """

    seconds: float = CHALLENGE_SECONDS
    memory_bytes: int = 0
    processes: int = 512
    output_bytes: int = 20 * GIGABYTE
    log_bytes: int = 2 * 2**20
    scratch_bytes: int = 2 * GIGABYTE
    handles: int = 65_536

    def __post_init__(self) -> None:
        if not self.memory_bytes:
            object.__setattr__(self, "memory_bytes", usual_memory_bytes())
        for name in (
            "seconds",
            "memory_bytes",
            "processes",
            "output_bytes",
            "log_bytes",
            "handles",
        ):
            if not getattr(self, name) > 0:
                raise ValueError(
                    f"expected the limit {name} to be above 0, but got {getattr(self, name)}"
                )


class Ending(StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    FAILED = "failed"
    """The submission raised an error."""
    DIED = "died"
    """Its process ended without reporting an error."""
    TIME = "time limit"
    MEMORY = "memory limit"
    PROCESSES = "process limit"
    OUTPUT = "output limit"
    HANDLES = "handle limit"


@dataclass(frozen=True, slots=True)
class RunOfSubmission:
    """The end of a run, its reason ("" if it finished), and the resources used.

    `peak_bytes` is the largest memory counted for all its processes together, None if unknown.
    `dropped_bytes` of its prints are not in the log.
    """

    ending: Ending
    reason: str
    seconds: float
    peak_bytes: int | None
    dropped_bytes: int

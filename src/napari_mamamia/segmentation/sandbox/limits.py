"""What a submission may use, and how a run of it ended."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from napari_mamamia.core.program.system import total_memory_bytes

CHALLENGE_SECONDS: Final = 300.0
"""Seconds that the challenge allows for one case. Source: its rules, 5 minutes per image."""

GIGABYTE: Final = 10**9
_MEMORY_SHARE: Final = 0.75


def usual_memory_bytes() -> int:
    """Return three quarters of this computer's memory in bytes, 8 GB where it is not told."""
    total = total_memory_bytes()
    return 8 * GIGABYTE if total is None else int(total * _MEMORY_SHARE)


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one case may use; more ends the run.

    Parameters
    ----------
    seconds
        Wall-clock time, the start of Python and the loading of weights counted.
    memory_bytes
        Memory of all its processes together, with what the kernel and its folders in memory hold
        for them: `resources.RESOURCES`.
    processes
        Processes at one time (and threads, where the system counts them).
    output_bytes
        Files that it writes, together, and those that it keeps without a name.
    log_bytes
        What is kept of its prints; more is counted and dropped, which ends nothing.
    scratch_bytes
        Each of its temporary folders, which lie in memory.
    handles
        Open files, pipes, sockets, file locks and watches of epoll of all its processes together.
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
                raise ValueError(f"the limit {name} must be above 0, got {getattr(self, name)}")


class Ending(StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    FAILED = "failed"
    """The submission raised an error."""
    DIED = "died"
    """Its process ended by itself without saying so."""
    TIME = "time limit"
    MEMORY = "memory limit"
    PROCESSES = "process limit"
    OUTPUT = "output limit"
    HANDLES = "handle limit"


@dataclass(frozen=True, slots=True)
class RunOfSubmission:
    """How a run ended, why in plain words ("" if it finished), and what it used.

    `peak_bytes` is the most memory that was counted of all its processes together, None where
    nothing tells it. `dropped_bytes` of its prints are not in the log.
    """

    ending: Ending
    reason: str
    seconds: float
    peak_bytes: int | None
    dropped_bytes: int

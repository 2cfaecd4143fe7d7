"""Times of the stages of longer work."""

import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Laps:
    """Seconds of each stage; `done` lists finished stages as (name, seconds)."""

    last: float = field(default_factory=time.perf_counter)
    done: list[tuple[str, float]] = field(default_factory=list)

    def add(self, name: str) -> None:
        """End a stage now."""
        now = time.perf_counter()
        self.done.append((name, round(now - self.last, 3)))
        self.last = now

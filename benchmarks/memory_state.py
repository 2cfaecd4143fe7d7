"""Whether the machine's memory is slow for once: a walk through objects that are always the same.

A virtual machine may drop what it keeps of a program's page tables when much memory came and went;
each page then costs microseconds at its next touch, as time of the program. The walk through 8 MB
of plain objects tells that from work of ours.

python benchmarks/memory_state.py  # 30 walks, each after another thread took and freed memory
"""

import random
import statistics
import threading
import time

import numpy as np

N_OBJECTS, N_VISITED = 40_000, 4_000
SLOW = 3.0
"""A walk that takes this many times the median of all is one through slow memory."""


class MemoryWalk:
    """Objects spread over 8 MB, a tenth of which are visited in random order."""

    def __init__(self) -> None:
        objects = [(k, [k], str(k), {"k": k}) for k in range(N_OBJECTS)]
        random.Random(1).shuffle(objects)
        self._objects = objects[:N_VISITED]

    def walk(self) -> float:
        """Visit them; return the processor time of this thread in ms."""
        start = time.thread_time()
        for number, numbers, text, by_name in self._objects:
            _ = number + numbers[0] + len(text) + by_name["k"]
        return 1e3 * (time.thread_time() - start)


def is_slow(walk: float, walks: list[float]) -> bool:
    """Return whether a walk of all went through slow memory."""
    return walk > SLOW * statistics.median(walks)


def take_and_free() -> None:
    """Take and free as much memory as reading the phases of a case does."""
    for _ in range(6):
        phase = np.ones((160, 448, 448), np.float32)
        phase = phase + 1


def main() -> None:
    memory, walks = MemoryWalk(), []
    for _ in range(30):
        memory.walk()
        other = threading.Thread(target=take_and_free)
        other.start()
        other.join()
        walks.append(memory.walk())
    slow = sorted(walk for walk in walks if is_slow(walk, walks))
    said = ", ".join(f"{walk:.0f}" for walk in slow) or "none"
    print(f"median {statistics.median(walks):.1f} ms of the processor; slow: {said}")


if __name__ == "__main__":
    main()

"""Time and memory of kinetic maps, of live FTV, and how long a map holds up another thread.

    python benchmarks/kinetics.py [--rounds N] [--check]

Phases are int16 noise around tissue, 5 of them at 0, 90, 180, 300, 460 s. The region has
64 x 256 x 256 voxels, the volume 170 x 512 x 512. Memory is what the map's job allocates beside the
phases (tracemalloc, peak), its result included. FTV is counted in a box of 30 x 80 x 80 voxels and
in the whole region, thresholds moved each time. The heartbeat is a timer of 5 ms in the main thread
while a map is computed in another one. ``--check`` exits 1 when a limit of issue 6 is missed:
150 ms a map of the region, 1.5 s and 1 GB a map of the volume, 50 ms for FTV and for the heartbeat.
"""

import argparse
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.kinetics.map_blocks import MapRecipe
from napari_mamamia.kinetics.map_kinds import MAPS, MapKind, MapNeeds, map_recipe
from napari_mamamia.kinetics.time_axis import TimingRule
from napari_mamamia.kinetics.timing import choose_curve_phases, choose_phases
from napari_mamamia.kinetics.tumour_volume import (
    FtvImages,
    FtvSettings,
    functional_tumour_volume,
    prepare_ftv,
)

TIMES = (0.0, 90.0, 180.0, 300.0, 460.0)
REGION, VOLUME = (64, 256, 256), (170, 512, 512)
REGION_MS, VOLUME_S, MEMORY_MB, LIVE_MS = 150.0, 1.5, 1000.0, 50.0


def phases(shape: tuple[int, int, int]) -> NDArray[np.int16]:
    """Return five phases: noise, with blobs that enhance and wash out."""
    rng = np.random.default_rng(0)
    part = rng.normal(300, 40, (5, 8, *shape[1:]))
    blobs = rng.random((1, 8, *(n // 16 for n in shape[1:]))) > 0.8
    rise = np.array([0, 1.0, 1.3, 1.2, 1.0]).reshape(5, 1, 1, 1)
    part += 300 * rise * blobs.repeat(16, 2).repeat(16, 3)
    repeated = np.concatenate([part.astype(np.int16)] * -(-shape[0] // 8), axis=1)
    return np.ascontiguousarray(repeated[:, : shape[0]])


KINDS = tuple(MapKind[name] for name in ("PE", "SER", "WASH_IN", "WASH_OUT", "PEAK", "TYPE"))
"""Maps that five phases give; the others need ultrafast ones."""


def recipe_of(kind: MapKind) -> MapRecipe:
    choose = choose_curve_phases if MAPS[kind].of_curve else choose_phases
    return map_recipe(kind, MapNeeds(choose(TIMES), TIMES, TimingRule()))


def seconds(work: Callable[[], Any], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return float(np.median(times))


def peak_mb(work: Callable[[], Any]) -> float:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def longest_beat_ms(work: Callable[[], Any]) -> float:
    """Return the longest gap between two beats while `work` runs in another thread."""
    thread = threading.Thread(target=work)
    longest, last = 0.0, time.perf_counter()
    thread.start()
    while thread.is_alive():
        time.sleep(0.005)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return longest * 1e3


def all_maps(signal: NDArray[np.int16]) -> list[NDArray[Any]]:
    return [recipe_of(kind).compute(signal) for kind in KINDS]


def live_ms(images: FtvImages, rounds: int) -> float:
    """Return the median time of a count, under other thresholds each time."""
    moved = iter(np.linspace(0.3, 0.9, rounds))
    return 1e3 * seconds(
        lambda: functional_tumour_volume(images, 1.0, FtvSettings(next(moved))), rounds
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    missed = []
    region = phases(REGION)
    print(f"{'map':28} {'64x256x256':>12} {'170x512x512':>12} {'memory':>9} {'beat':>8}")
    volume = phases(VOLUME)
    for kind in KINDS:
        recipe = recipe_of(kind)
        small = 1e3 * seconds(lambda r=recipe: r.compute(region), options.rounds)
        large = seconds(lambda r=recipe: r.compute(volume), max(options.rounds // 2, 1))
        memory = peak_mb(lambda r=recipe: r.compute(volume))
        beat = longest_beat_ms(lambda r=recipe: r.compute(volume))
        print(f"{kind:28} {small:9.1f} ms {large:10.2f} s {memory:6.0f} MB {beat:5.0f} ms")
        limits = (REGION_MS, VOLUME_S, MEMORY_MB, LIVE_MS)
        found = (small, large, memory, beat)
        missed += [f"{kind}: {a:.1f}" for a, b in zip(found, limits, strict=True) if a > b]
    every = 1e3 * seconds(lambda: all_maps(region), options.rounds)
    print(f"all {len(KINDS)} maps of the region: {every:.0f} ms")
    choice = choose_phases(TIMES)
    for box in (Box((10, 50, 50), (40, 130, 130)), Box.whole(REGION)):
        prepared = 1e3 * seconds(lambda b=box: prepare_ftv(region, choice, [b]), options.rounds)
        images = prepare_ftv(region, choice, [box])
        live = live_ms(images, 10 * options.rounds)
        print(f"FTV in {box.shape}: prepared once {prepared:.1f} ms, then {live:.1f} ms")
        missed += [f"FTV {box.shape}: {live:.1f} ms"] if live > LIVE_MS else []
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())

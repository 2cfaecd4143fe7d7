"""Time and memory of perfusion: the linear fit of a volume, least squares in a lesion, T1.

    python benchmarks/perfusion.py [--check]

The volume has 60 x 320 x 320 voxels and 40 phases 7 s apart, int16: the block of
`phantoms.perfusion_case` repeated. Seconds are of the clock and of the processor; memory is what
the fit allocates beside the phases (tracemalloc, peak), its four maps included. The lesion has
20,000 voxels of it. Accuracy is the greatest and median error of Ktrans over noise-free curves
(Ktrans .01 to .5 1/min, ve .05 to .5) by spacing. ``--check`` exits 1 when a limit is missed: 10 us
of the processor for a voxel of the linear fit, 250 us for one of least squares, 1 GB for the
volume, 20 s of the processor for an ultrafast map of it.
"""

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.choices import TissueModel
from napari_mamamia.core.grid import Grid
from napari_mamamia.features.perfusion.kinetics.arterial_input import ArterialInput, plasma_curve
from napari_mamamia.features.perfusion.kinetics.fit import (
    LinearFit,
    RefinedFit,
    tissue_concentration_mm,
)
from napari_mamamia.features.perfusion.kinetics.spoiled_echo import SpoiledEcho
from napari_mamamia.features.perfusion.kinetics.t1_map import t1_of_flip_angles
from napari_mamamia.features.perfusion.services.fit_cases import fit_case
from napari_mamamia.features.perfusion.services.settings import PerfusionSettings
from napari_mamamia.kinetics.map_blocks import MapRecipe
from napari_mamamia.kinetics.ultrafast import UltrafastMeasure, ultrafast_formula
from phantoms.perfusion_case import (
    FLIP_DEGREES,
    RELAXIVITY,
    REPETITION_S,
    perfusion_phantom,
)

SHAPE = (60, 320, 320)
N_PHASES, SPACING_S, ARRIVAL_S = 40, 7.0, 22.0
LINEAR_US, REFINED_US, MEMORY_MB = 10.0, 250.0, 1000.0
MAP_S = 20.0
LESION = 20_000


def volume() -> Case:
    """Return the block repeated over the volume."""
    block = perfusion_phantom(
        spacing_s=SPACING_S, n_phases=N_PHASES, arrival_s=ARRIVAL_S, noise=0.02, shape=(20, 32, 32)
    ).case
    signal = np.tile(block.signal, (1, 3, 10, 10))
    phases = tuple(Phase(k, k * SPACING_S) for k in range(N_PHASES))
    return Case("VOLUME", Grid(SHAPE, np.diag([1.0, 1.0, 2.0, 1.0])), signal, phases)


def measured(work: Callable[[], Any]) -> tuple[float, float]:
    """Return seconds of the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor


def accuracy(fit: type[LinearFit] | type[RefinedFit], model: TissueModel, spacing_s: float) -> str:
    minutes = np.arange(-2 * spacing_s, 420, spacing_s) / 60
    fine = plasma_curve(ArterialInput(), 7.0, 0.05 / 60)
    vp = 0.05 if model is TissueModel.EXTENDED else 0.0
    pairs = [(k, v) for k in (0.01, 0.05, 0.1, 0.25, 0.5) for v in (0.05, 0.1, 0.2, 0.5)]
    curves = [tissue_concentration_mm(fine, minutes, k, v, vp) for k, v in pairs]
    found = fit(model, plasma_curve(ArterialInput(), 7.0), minutes).fit(np.stack(curves, axis=1))
    error = 100 * np.abs(found.ktrans_per_min / np.array([k for k, _ in pairs]) - 1)
    lost = int(np.isnan(error).sum())
    return f"median {np.nanmedian(error):.2f} %, greatest {np.nanmax(error):.1f} %, none {lost}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    case = volume()
    echo = SpoiledEcho(REPETITION_S, FLIP_DEGREES, RELAXIVITY)
    missed = []
    count = int(np.prod(SHAPE))
    for model in TissueModel:
        settings = PerfusionSettings(
            model, ArterialInput(), RELAXIVITY, "", t10_s=1.4, arrival_s=ARRIVAL_S
        )
        clock, processor = measured(lambda s=settings: fit_case(case, None, 1.4, echo, s))
        each = 1e6 * processor / count
        print(f"{model}: volume {clock:.1f} s, processor {processor:.1f} s, {each:.1f} us a voxel")
        missed += [f"{model} linear: {each:.1f} us"] if each > LINEAR_US else []
        mask = np.zeros(count, np.bool_)
        mask[:LESION] = True
        part = Case(
            "PART",
            Grid((1, 1, LESION), np.eye(4)),
            case.signal.reshape(N_PHASES, 1, 1, -1)[..., :LESION],
            case.phases,
        )
        inside = mask[:LESION].reshape(1, 1, -1)
        clock, processor = measured(
            lambda s=settings, p=part, m=inside: fit_case(p, m, 1.4, echo, s)
        )
        each = 1e6 * processor / LESION
        print(f"{model}: lesion of {LESION} voxels {clock:.1f} s, {each:.0f} us a voxel")
        missed += [f"{model} least squares: {each:.0f} us"] if each > REFINED_US else []
    tracemalloc.start()
    fit_case(case, None, 1.4, echo, settings)
    memory = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    print(f"memory of the volume's fit: {memory:.0f} MB beside {case.signal.nbytes / 1e6:.0f} MB")
    missed += [f"memory: {memory:.0f} MB"] if memory > MEMORY_MB else []
    for measure in UltrafastMeasure:
        formula = ultrafast_formula(measure, tuple(case.times_s), counted_from_s=20.0)
        recipe = MapRecipe(formula, tuple(range(N_PHASES)))
        clock, processor = measured(lambda r=recipe: r.compute(case.signal))
        print(f"map {measure}: {clock:.1f} s, processor {processor:.1f} s")
        missed += [f"map {measure}: {processor:.1f} s"] if processor > MAP_S else []
    flips = np.stack([case.signal[0].astype(np.float64) * f for f in (1.0, 1.5, 1.4, 1.1)])
    clock, processor = measured(lambda: t1_of_flip_angles(flips, (3, 6, 9, 15), 0.005))
    print(f"T1 of four flip angles: {clock:.1f} s, processor {processor:.1f} s")
    for model in TissueModel:
        for fit in (LinearFit, RefinedFit):
            for spacing_s in (3.5, 7.0, 15.0):
                told = accuracy(fit, model, spacing_s)
                print(f"{model} {fit.__name__} at {spacing_s:g} s: Ktrans {told}")
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())

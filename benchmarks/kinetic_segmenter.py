"""Dice of the kinetic segmenter on phantoms, case by case, and its time on large cases.

Run: python benchmarks/kinetic_segmenter.py [--cases N] [--seed S] [--time]
A phantom was drawn by this project, with the contrast curves that the segmenter looks for: these
numbers show what it can and cannot do there and are no evidence for patients. Cases are those of
the phantom data set (`phantom.case_mix`): from the thirteenth on, sizes and noise vary.
``best`` is Dice of the mask with all tumours, ``lesion`` with the one it meets best, ``of five``
the best candidate's, ``click`` and ``box`` with the primary tumour after a click on its middle
and with a box drawn two voxels around it. ``--time`` prints seconds and the longest wait between
two signs of progress instead.
"""

import argparse
import time

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import Progress, listening
from napari_mamamia.metrics.overlap import dice
from napari_mamamia.phantom import Phantom, make_phantom
from napari_mamamia.phantom.case_mix import plan_case
from napari_mamamia.segmentation.kinetic.kinetic import KineticSegmenter
from napari_mamamia.segmentation.model.segmenter import (
    BoxPrompt,
    Candidate,
    Click,
    Prediction,
    Prompt,
)
from phantoms.full_size import benchmark_phantom

COLUMNS = ("best", "lesion", "of five", "click", "box")
FOUND = 0.3
SIZES = ((96, 192, 192), (160, 448, 448))


def made(index: int, seed: int) -> Phantom:
    for attempt in range(20):
        try:
            return make_phantom(plan_case(index, seed, attempt).spec)
        except CaseError:
            continue
    raise CaseError(f"no patient was found for case {index} of seed {seed}: take another seed")


def predicted(case: Case, prompt: Prompt | None = None) -> Prediction:
    return KineticSegmenter().predict(case, prompt)


def painted(candidate: Candidate, shape: tuple[int, int, int]) -> NDArray[np.bool_]:
    mask = np.zeros(shape, dtype=np.bool_)
    mask[candidate.box.slices] = candidate.crop
    return mask


def middle(mask: NDArray[np.bool_]) -> tuple[int, int, int]:
    voxels = np.argwhere(mask)
    z, y, x = voxels[((voxels - voxels.mean(axis=0)) ** 2).sum(axis=1).argmin()]
    return (int(z), int(y), int(x))


def scores(phantom: Phantom) -> list[float]:
    case, primary = phantom.case, phantom.lesions == 1
    every = [phantom.lesions == n for n in range(1, len(phantom.spec.tumours) + 1)]
    found = predicted(case)
    shape = case.grid.shape
    candidates = [painted(candidate, shape) for candidate in found.candidates]
    box = Box.around(primary).grown((2, 2, 2), shape)
    return [
        dice(found.mask.array, phantom.reference.array),
        max(dice(found.mask.array, one) for one in every),
        max((dice(mask, one) for mask in candidates for one in every), default=0.0),
        dice(predicted(case, Click(middle(primary))).mask.array, primary),
        dice(predicted(case, BoxPrompt(box)).mask.array, primary),
    ]


def print_scores(n_cases: int, seed: int) -> None:
    print("case         " + "".join(f"{name:>9}" for name in COLUMNS) + "  primary tumour, breast")
    rows = []
    for index in range(n_cases):
        phantom = made(index, seed)
        rows.append(scores(phantom))
        spec, tumour = phantom.spec, phantom.spec.tumours[0]
        print(
            f"{spec.case_id:13}" + "".join(f"{value:9.2f}" for value in rows[-1]) + f"  "
            f"{tumour.longest_mm:.0f} mm {tumour.kind} {tumour.curve}, density "
            f"{spec.breast_density}, background {spec.background_enhancement_percent:.0f} %, CNR "
            f"{spec.contrast_to_noise:.0f}, {spec.orientation}"
        )
    table = np.nan_to_num(np.array(rows))
    for name, line in (
        ("mean", table.mean(axis=0)),
        ("median", np.median(table, axis=0)),
        (f"share > {FOUND}", (table > FOUND).mean(axis=0)),
    ):
        print(f"{name:13}" + "".join(f"{value:9.2f}" for value in line))


def print_times() -> None:
    for shape in SIZES:
        case = benchmark_phantom(shape).case
        for _ in range(3):
            waits, last = [0.0], [time.perf_counter()]

            def report(_: Progress, waits: list[float] = waits, last: list[float] = last) -> None:
                now = time.perf_counter()
                waits.append(now - last[0])
                last[0] = now

            started = time.process_time()
            with listening(report):
                found = KineticSegmenter().predict(case)
            busy = time.process_time() - started
            print(
                f"{'x'.join(map(str, shape))}, {len(case.phases)} phases: {found.seconds:.2f} s "
                f"({busy:.2f} s of processor), longest wait {max(waits):.2f} s"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=36)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time", action="store_true")
    chosen = parser.parse_args()
    if chosen.time:
        print_times()
    else:
        print_scores(chosen.cases, chosen.seed)


if __name__ == "__main__":
    main()

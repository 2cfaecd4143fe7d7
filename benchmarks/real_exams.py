"""The kinetic segmenter on one real exam that `mamamia import` wrote: a row of docs/real_exams.md.

Run: python benchmarks/real_exams.py DATASET [--seg SEG | --box Z0 Z1 Y0 Y1 X0 X1] [--percentiles]
DATASET holds one imported exam. The reference is what UCSF's rule calls tumour (--seg: a SEG of
UCSF; of a "Breast Tissue" SEG the voxels with PE >= 70 and 9 of 26 neighbours that pass too), or a
radiologist's box (--box, first and last voxel of z, y, x). Without one, only what is found is
printed. ``first`` is the first candidate's Dice with the reference (its share in the box for a
box), ``rank`` the first candidate of which more than half lies in it, ``click`` and ``middle`` Dice
after a click on the reference's voxel nearest to its centroid and on the middle of its box,
``box`` after a box around it. --percentiles shows the first candidate for other levels of the
chest, the constant that decides most in a sagittal exam of one breast.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pydicom
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.metrics.overlap import dice
from napari_mamamia.segmentation.kinetic import breast
from napari_mamamia.segmentation.kinetic.kinetic import KineticSegmenter
from napari_mamamia.segmentation.model.segmenter import BoxPrompt, Click, Prediction, Prompt
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.case.open_case import load_case

Bools = NDArray[np.bool_]
LEVELS = (70.0, 80.0, 85.0, 90.0, 95.0)
PE, NEIGHBOURS = 70.0, 9


def read_case(folder: Path) -> Case:
    opened = open_data_set(folder)
    files = opened.data_set.cases[0]
    return load_case(files, opened.record(files.case_id))


def seg_voxels(path: Path, case: Case) -> Bools:
    """Return a SEG's voxels on the case: slices by their place, pixels by index."""
    seg = pydicom.dcmread(path)
    to_voxel = np.linalg.inv(np.diag([-1, -1, 1, 1]) @ case.grid.affine)
    shared = seg.SharedFunctionalGroupsSequence[0]
    out = np.zeros(case.grid.shape, dtype=np.bool_)
    for frame, pixels in zip(seg.PerFrameFunctionalGroupsSequence, seg.pixel_array, strict=True):
        place = frame if "PlaneOrientationSequence" in frame else shared
        row, column = np.reshape(place.PlaneOrientationSequence[0].ImageOrientationPatient, (2, 3))
        position = np.array(frame.PlanePositionSequence[0].ImagePositionPatient, dtype=float)
        down, right = to_voxel[:3, :3] @ column, to_voxel[:3, :3] @ row
        a, b = int(np.abs(down).argmax()), int(np.abs(right).argmax())
        k = round(float((to_voxel @ [*position, 1])[3 - a - b]))
        plane = pixels[:: int(np.sign(down[a])), :: int(np.sign(right[b]))] > 0
        np.moveaxis(out.transpose(2, 1, 0), (a, b, 3 - a - b), (0, 1, 2))[:, :, k] = plane
    if "PE" in seg.SeriesDescription:
        return out
    before = case.signal[0].astype(np.float64)
    rise = 100 * (case.signal[1] - before) / np.maximum(before, 1)
    passed = (before >= before[out].min()) & (rise >= PE)
    around = ndimage.convolve(
        passed.astype(np.uint8), np.ones((3, 3, 3), np.uint8), mode="constant"
    )
    found: Bools = out & passed & (around - passed >= NEIGHBOURS)
    return found


def predicted(case: Case, prompt: Prompt | None = None) -> Prediction:
    return KineticSegmenter().predict(case, prompt)


def rank_of(made: Prediction, reference: Bools) -> int | None:
    for one in made.candidates:
        if reference[one.box.slices][one.crop].mean() > 0.5:
            return one.rank
    return None


def nearest_to_centroid(reference: Bools) -> tuple[int, int, int]:
    voxels = np.argwhere(reference)
    z, y, x = voxels[((voxels - voxels.mean(axis=0)) ** 2).sum(axis=1).argmin()]
    return (int(z), int(y), int(x))


def print_row(case: Case, reference: Bools | None, *, is_box: bool) -> None:
    started = time.process_time()
    made = predicted(case)
    seconds = time.process_time() - started
    unsure = dict(made.parameters)["unsure"]
    ml = made.mask.volume_mm3 / 1000
    print(f"{case.case_id}: {seconds:.1f} s of processor; first candidate {ml:.1f} ml")
    if reference is not None:
        box = Box.around(reference)
        middle = tuple((a + b) // 2 for a, b in zip(box.start, box.stop, strict=True))
        prompts = {
            "click": Click(nearest_to_centroid(reference)),
            "middle": Click(middle),
            "box": BoxPrompt(box),
        }

        def judged(mask: Bools) -> float:
            inside = float(reference[mask].mean()) if mask.any() else 0.0
            return inside if is_box else dice(mask, reference)

        reference_ml = np.count_nonzero(reference) * case.grid.voxel_volume_mm3 / 1000
        print(f"  reference {reference_ml:.1f} ml; rank {rank_of(made, reference)}")
        print(f"  first {judged(made.mask.array):.2f}", end="")
        for name, prompt in prompts.items():
            print(f"  {name} {judged(predicted(case, prompt).mask.array):.2f}", end="")
        print()
    for one in made.candidates:
        print(f"  {one.rank}: score {one.score:.2f}, {'; '.join(one.reasons)}")
    print(f"  unsure: {unsure}")


def print_percentiles(case: Case, reference: Bools) -> None:
    usual = breast._DEEPEST
    for level in LEVELS:
        breast._DEEPEST = level
        print(f"  percentile {level:g}: first {dice(predicted(case).mask.array, reference):.2f}")
    breast._DEEPEST = usual


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data_set", type=Path)
    parser.add_argument("--seg", type=Path)
    parser.add_argument("--box", type=int, nargs=6)
    parser.add_argument("--percentiles", action="store_true")
    asked = parser.parse_args()
    case = read_case(asked.data_set)
    reference = None if asked.seg is None else seg_voxels(asked.seg, case)
    if asked.box is not None:
        reference = np.zeros(case.grid.shape, dtype=np.bool_)
        z0, z1, y0, y1, x0, x1 = asked.box
        reference[z0 : z1 + 1, y0 : y1 + 1, x0 : x1 + 1] = True
    print_row(case, reference, is_box=asked.box is not None)
    if asked.percentiles and reference is not None:
        print_percentiles(case, reference)


if __name__ == "__main__":
    main()

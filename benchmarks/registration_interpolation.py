"""Which interpolation leaves the volume that enhances nearest to that of an unmoved case.

    python benchmarks/registration_interpolation.py [--seeds 6] [--check]

Phantoms of 40 x 112 x 112 voxels of 2.5 x 2 x 2 mm in which the patient moves by 3 to 6 mm between
phase 0 and phase 1: the anatomy is drawn at its other place, nothing is resampled, and the noise is
drawn anew for each voxel, the same as in the phantom without motion. Phase 0 is registered rigidly
and read between its voxels in each way, whether it fits better or not. Told are FTV
(ucsf-extension, UCSF-FTV, box of the mask + 10 mm) and the Dice of the voxels with PE >= 70 % in
that box, against the unmoved case and (FTV) the noiseless
one. ``--check`` exits 1 unless the default has the smallest mean error of FTV.
"""

import argparse
import os
import sys
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Case
from napari_mamamia.core.choices import Interpolation, TransformKind
from napari_mamamia.kinetics.map_blocks import percent_enhancement
from napari_mamamia.kinetics.registration.registration import register_phases, resample
from napari_mamamia.kinetics.registration.settings import RegistrationSettings
from napari_mamamia.kinetics.timing import choose_phases
from napari_mamamia.kinetics.tumour_volume import (
    box_around_mask,
    functional_tumour_volume,
    prepare_ftv,
)
from napari_mamamia.phantom import PhantomSpec, TumourSpec, make_phantom

NOISE_FREE, NOISES = 200.0, (20.0, 10.0, 5.0, 3.0, 2.0)
TIMES = (0.0, 120.0, 300.0, 480.0)
HEAD = ("CNR", "unmoved", "moved", *(str(one) for one in Interpolation))


def spec_of(seed: int, contrast: float) -> PhantomSpec:
    """Return an unmoved phantom; tumours of 20 to 35 mm."""
    size = 20.0 + 3.0 * (seed % 6)
    return PhantomSpec(
        case_id=f"P{seed}",
        seed=100 + seed,
        shape=(40, 112, 112),
        spacing_mm=(2.5, 2.0, 2.0),
        times_s=TIMES,
        tumours=(TumourSpec(size),),
        contrast_to_noise=contrast,
    )


def moved(spec: PhantomSpec) -> PhantomSpec:
    """Return the same patient, elsewhere in phase 0 by 3 to 6 mm that are no whole voxels."""
    rng = np.random.default_rng(spec.seed)
    way = rng.normal(size=3)
    step = tuple(float(mm) for mm in way / np.linalg.norm(way) * rng.uniform(3, 6))
    still = (0.0, 0.0, 0.0)
    return replace(spec, motion_mm=(step, still, still, still))


def enhancing(case: Case, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    box = box_around_mask(mask, case.grid)
    percent = percent_enhancement(case.signal[:, *box.slices], choose_phases(TIMES).early)
    with np.errstate(invalid="ignore"):
        found: NDArray[np.bool_] = percent >= 70
    return found


def ftv(case: Case, mask: NDArray[np.bool_]) -> float:
    box = box_around_mask(mask, case.grid)
    images = prepare_ftv(case.signal, choose_phases(TIMES), (box,))
    return functional_tumour_volume(images, case.grid.voxel_volume_mm3).volume_cc


def dice(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    return float(2 * np.count_nonzero(a & b) / max(1, np.count_nonzero(a) + np.count_nonzero(b)))


def measure(seed: int, contrast: float) -> tuple[float, list[float], list[float]]:
    """Return FTV without noise, FTVs of each column after CNR, and their Dice with unmoved."""
    spec = spec_of(seed, contrast)
    still, away = make_phantom(spec), make_phantom(moved(spec))
    clean = make_phantom(spec_of(seed, NOISE_FREE))
    mask = still.reference.array
    cases = [still.case, away.case]
    rigid = RegistrationSettings(TransformKind.RIGID)
    warp = register_phases(away.case, rigid, mask).warps[0]
    for one in Interpolation:
        signal = away.case.signal.copy()
        resample(away.case, 0, warp, one, signal[0])
        cases.append(replace(away.case, signal=signal))
    truth = enhancing(still.case, mask)
    return (
        ftv(clean.case, mask),
        [ftv(case, mask) for case in cases],
        [dice(truth, enhancing(case, mask)) for case in cases],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    errors: dict[str, list[float]] = {name: [] for name in HEAD[2:]}
    print("FTV in cc (Dice of the enhancing voxels with the unmoved case)")
    print(f"{'CNR':>4} {'seed':>4} {'no noise':>9} " + " ".join(f"{name:>15}" for name in HEAD[1:]))
    for contrast in NOISES:
        for seed in range(given.seeds):
            clean, volumes, overlaps = measure(seed, contrast)
            pairs = zip(volumes, overlaps, strict=True)
            cells = " ".join(f"{cc:8.2f} ({d:.2f})" for cc, d in pairs)
            print(f"{contrast:4.0f} {seed:4d} {clean:9.2f} {cells}", flush=True)
            for name, volume in zip(HEAD[2:], volumes[1:], strict=True):
                errors[name].append(100 * abs(volume - volumes[0]) / volumes[0])
    for place, contrast in enumerate(NOISES):
        part = slice(place * given.seeds, (place + 1) * given.seeds)
        cells = ", ".join(f"{k} {np.mean(v[part]):.1f} %" for k, v in errors.items())
        print(f"CNR {contrast:g}: FTV off by {cells} of the unmoved case's on average")
    means = {name: float(np.mean(values)) for name, values in errors.items()}
    print("all: " + ", ".join(f"{name} {value:.1f} %" for name, value in means.items()))
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    chosen = str(RegistrationSettings().interpolation)
    best = min((str(one) for one in Interpolation), key=lambda name: means[name])
    return int(given.check and best != chosen)


if __name__ == "__main__":
    sys.exit(main())

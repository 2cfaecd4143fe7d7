"""Compare tools on lesions of a split that the network never saw: Dice after 1, 3, 5, 10 presses.

    python tools/train_brush/judge.py judge --sarcomas FOLDER --slices FOLDER

A robot presses where the largest wrong part is deepest, with a circle of 1.3 depths and a hand that
is off by 1.5 mm. SLICES holds `images` and `masks` of breast slices (PNG); without it they are left
out, and so is a scene whose files are absent.
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import label
from worlds import MODALITIES, read_splits

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.brush.features import FeatureImages, measure_features
from napari_mamamia.smartpaint.evidence import stroke
from napari_mamamia.smartpaint.learned.network import read_network
from refining import tools as refining_tools
from refining.peers import RandomWalker
from refining.robot import Gesture, RefiningTool, run_robot
from refining.scenes import MARGIN_MM, Bools, Scene, SceneError, load_scene, read_list
from refining.scenes import _read_files as read_files
from refining.starts import STARTS

FACTOR = 1.3
BUDGET = 10
AFTER = (1, 3, 5, 10)
SIZES = (100, 150_000)
"""Voxels of a lesion that is used."""
MOST_WALKED = 250_000
"""Voxels of a scene that the random walker still labels in a few seconds."""
LISTED = {"judge": "report", "tune": "tune"}


class Evidence(refining_tools.EvidenceBrush):
    """The evidence brush of a reader who never takes the plain sphere."""

    def stroke(self, gesture: Gesture) -> None:
        """Do what the gesture asks for."""
        self.n_in_vain = 0
        super().stroke(gesture)


class Learned(refining_tools.LearnedBrush, Evidence):
    """The learned brush of the same reader."""


TOOLS = {
    "sphere": refining_tools.Sphere,
    "evidence": Evidence,
    "learned": Learned,
    "walker": RandomWalker,
}


def list_scenes(split: str, sarcomas: Path, slices: Path | None, cache: Path) -> Iterator[Scene]:
    """Yield the scenes of a split; `groups` names the kind of each."""
    yield from _list_sarcomas(split, sarcomas)
    yield from _list_others(split, cache)
    if slices is not None:
        yield from _list_slices(split, slices)


def _list_sarcomas(split: str, folder: Path) -> Iterator[Scene]:
    for patient in read_splits()[split]:
        for modality in MODALITIES:
            stem = folder / f"STS_{patient}" / modality
            files = [Path(f"{stem}_{name}.nii.gz") for name in ("image", "mask")]
            if all(path.exists() for path in files):
                case, reference = read_files(files[0], files[1], "largest")
                yield make_scene(f"{patient} {modality}", f"sarcoma {modality}", case, reference)


def _list_others(split: str, cache: Path) -> Iterator[Scene]:
    """Yield the scenes of `benchmarks/refine_scenes.json` that are neither sarcomas nor slices."""
    for spec in read_list():
        source = spec.source.get("image", "")
        if spec.set != LISTED[split] or "sts" in source or spec.source["kind"] == "slice":
            continue
        try:
            scene = load_scene(spec, cache, fetches=False)
        except SceneError as error:
            print(f"without {spec.name}: {error}", file=sys.stderr)
            continue
        yield Scene(scene.name, spec.groups[-1:], scene.case, scene.reference, scene.images)


def _list_slices(split: str, folder: Path) -> Iterator[Scene]:
    """Yield the slices of every second patient."""
    images = sorted((folder / "images").glob("*.png"))
    patients = sorted({path.stem.split("_")[0] for path in images})
    chosen = patients[split == "judge" :: 2]
    for path in images:
        if path.stem.split("_")[0] in chosen:
            yield read_slice(path, folder / "masks" / path.name)


def make_scene(name: str, kind: str, case: Case, reference: Bools) -> Scene:
    """Return the surroundings of a lesion; the noise is that of the whole image."""
    images = measure_features(case)
    margin = [int(np.ceil(MARGIN_MM / step)) for step in case.grid.spacing_mm]
    box = Box.around(reference).grown(margin, reference.shape)
    grid = Grid(box.shape, np.diag([*case.grid.spacing_mm[::-1], 1.0]))
    signal = np.ascontiguousarray(case.signal[(slice(None), *box.slices)])
    crop = Case(name, grid, signal, tuple(Phase(p.index, p.time_s) for p in case.phases))
    features = FeatureImages(crop, images.channels, images.missing)
    return Scene(name, (kind,), crop, reference[box.slices].copy(), features)


def read_slice(image: Path, mask: Path) -> Scene:
    """Return a breast slice and the largest part of its mask; 0.7 mm are assumed."""
    values = np.asarray(Image.open(image).convert("L"), np.float32)[None]
    inside = np.asarray(Image.open(mask).convert("L"))[None] > 0
    parts, _ = label(inside, np.ones((3, 3, 3)))
    sizes = np.bincount(parts.ravel())
    sizes[0] = 0
    grid = Grid(values.shape, np.diag([0.7, 0.7, 2.0, 1.0]))
    case = Case(image.stem, grid, values[None], (Phase(0),))
    return make_scene(image.stem, "breast slice", case, parts == sizes.argmax())


def run_scene(scene: Scene, start: Bools, tool: str, hand: int) -> dict[str, object]:
    """Return what a tool reached on a scene."""
    corrected: RefiningTool = TOOLS[tool](scene, start)
    run = run_robot(scene, corrected, hand, BUDGET, sweeps=False)
    return {
        "scene": scene.name,
        "kind": scene.groups[0],
        "tool": tool,
        "dice": [round(run.after(count), 4) for count in AFTER],
        "to85": run.strokes_to(0.85, BUDGET),
        "to90": run.strokes_to(0.9, BUDGET),
        "falls": run.falls,
        "ms": round(float(np.median(run.ms or [0.0])), 1),
        "p95": round(float(np.percentile(run.ms or [0.0], 95)), 1),
    }


def print_table(rows: list[dict[str, object]]) -> None:
    """Print means of each kind, start and tool."""
    groups: dict[tuple[str, ...], list[dict[str, object]]] = defaultdict(list)
    for row in rows:
        for kind in (row["kind"], "slices" if row["kind"] == "breast slice" else "3-D"):
            groups[str(row["start"]), str(kind), str(row["tool"])].append(row)
    print("start | kind | tool | n | Dice after 1, 3, 5, 10 | median | to .85, .90 | falls | ms")
    for key, group in sorted(groups.items()):
        dice = np.array([row["dice"] for row in group])
        means = {
            name: np.mean([row[name] for row in group]) for name in ("to85", "to90", "falls", "ms")
        }
        print(
            " | ".join(key),
            f"| {len(group)} | {' '.join(f'{x:.3f}' for x in dice.mean(axis=0))}",
            f"| {np.median(dice[:, -1]):.3f} | {means['to85']:.1f}, {means['to90']:.1f}",
            f"| {means['falls']:.1f} | {means['ms']:.0f}",
        )


def main() -> None:
    """Run the tools on a split."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("split", choices=LISTED)
    parser.add_argument("--sarcomas", type=Path, required=True)
    parser.add_argument("--slices", type=Path)
    parser.add_argument("--cache", type=Path, required=True, help="folder of other scenes")
    parser.add_argument("--tools", default="sphere,evidence,learned")
    parser.add_argument("--starts", default="empty,half,leak,shifted,dilated")
    parser.add_argument("--kinds", default="", help="only kinds with one of these texts")
    parser.add_argument("--hand", type=int, default=37)
    parser.add_argument("--weights", type=Path, help="default: those of the program")
    parser.add_argument("--out", type=Path, help="JSON lines, one for each run")
    given = parser.parse_args()
    if given.weights is not None:
        network = read_network(given.weights.read_bytes())
        stroke.load_network = lambda: network
    rows = []
    begun = time.perf_counter()
    for scene in list_scenes(given.split, given.sarcomas, given.slices, given.cache):
        is_asked = any(kind in scene.groups[0] for kind in given.kinds.split(","))
        if not is_asked or not SIZES[0] <= scene.reference.sum() <= SIZES[1]:
            continue
        for start in given.starts.split(","):
            mask = STARTS[start](scene)
            for tool in given.tools.split(","):
                if tool == "walker" and scene.reference.size > MOST_WALKED:
                    continue
                row = {"start": start, **run_scene(scene, mask, tool, given.hand)}
                rows.append(row)
                if given.out is not None:
                    with given.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
        print(f"{time.perf_counter() - begun:.0f} s {scene.name}", file=sys.stderr, flush=True)
    print_table(rows)


if __name__ == "__main__":
    main()

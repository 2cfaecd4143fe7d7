"""Draws the figures of the methods pages: ``python docs/draw_figures.py [FOLDER]``.

Each figure is drawn from phantoms or made-up tables by the functions that the page describes, so
that a figure shows what the program computes. It needs no display.
"""

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

import napari_mamamia as mm
from napari_mamamia.core.case import Case
from napari_mamamia.core.edits import Action, Brush, Tool

BLUE, ORANGE, GREEN, VERMILION, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#777777"
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "napari-mamamia",
    "figure.dpi": 110,
    "savefig.facecolor": "white",
}


def main() -> None:
    """Draw every figure into the folder."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "images"
    target.mkdir(parents=True, exist_ok=True)
    plt.rcParams.update(STYLE)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        data_set = mm.make_phantoms(Path(folder) / "phantoms", 6, shape=(40, 110, 160))
        case = data_set["PHANTOM_001"]
        charts: dict[str, Callable[[], Figure]] = {
            "method_case_metrics": draw_distances,
            "method_kinetics": draw_curve_types,
            "method_perfusion": draw_tofts,
            "method_ultrafast": draw_steepest_rise,
            "method_cohort": draw_groups,
            "method_ranking": draw_weights,
            "method_intervals": draw_bootstrap,
            "method_detection": draw_froc,
            "method_classifiers": draw_classifier,
        }
        images: dict[str, Callable[[], Figure]] = {
            "method_growth": lambda: draw_growth(case),
            "method_brush": lambda: draw_stroke(case),
            "method_tumour_volume": lambda: draw_ftv(case),
            "method_kinetic_segmenter": lambda: draw_candidates(case),
            "method_measuring": lambda: draw_diameters(case),
            "method_mask_tools": lambda: draw_mask_tools(case),
            "method_phantoms": lambda: draw_phases(data_set),
            "method_motion": draw_motion,
        }
        for name, draw in charts.items():
            draw().savefig(target / f"{name}.svg", metadata={"Date": None})
        for name, draw in images.items():
            file = target / f"{name}.png"
            draw().savefig(file)
            Image.open(file).convert("RGB").quantize(128).save(file, optimize=True)


# Slices of an image


class Slices:
    """The slices of a case around its reference, in display orientation."""

    def __init__(self, case: "mm.Case", margin: int = 16) -> None:
        self.frame = case.grid.display_frame()
        expert = self.frame.to_display(case.reference.array)
        self.middle = int(expert.sum(axis=(1, 2)).argmax())
        y, x = (round(n) for n in np.argwhere(expert[self.middle]).mean(axis=0))
        self.rows = slice(max(y - margin, 0), y + margin)
        self.columns = slice(max(x - margin, 0), x + margin)
        _, row_mm, column_mm = self.frame.per_axis(case.spacing_mm)
        self.aspect = row_mm / column_mm

    def crop(self, array: np.ndarray, slice_index: int | None = None) -> np.ndarray:
        """Return a slice around the lesion, by default the one with most of it."""
        index = self.middle if slice_index is None else slice_index
        return self.frame.to_display(np.asarray(array))[index, self.rows, self.columns]

    def show(self, axes: Axes, image: np.ndarray, title: str, **options: object) -> None:
        """Draw a slice in grey with square millimetres, without axes."""
        options = {"cmap": "gray", **options}
        axes.imshow(image, aspect=self.aspect, interpolation="nearest", **options)
        axes.set_title(title, fontsize=9)
        axes.axis("off")


def outline(axes: Axes, mask: np.ndarray, colour: str, style: str = "-") -> None:
    """Draw the outline of a mask along the edges of its pixels."""
    if mask.any():
        fine = np.kron(np.pad(mask, 1), np.ones((8, 8)))
        rows = (np.arange(fine.shape[0]) + 0.5) / 8 - 1.5
        columns = (np.arange(fine.shape[1]) + 0.5) / 8 - 1.5
        axes.contour(columns, rows, fine, [0.5], colors=colour, linewidths=1.4, linestyles=style)


def subtract(case: "mm.Case") -> np.ndarray:
    """Return the first post-contrast phase minus the phase before contrast."""
    return case.signal[1].astype(float) - case.signal[0]


def draw_growth(case: "mm.Case") -> Figure:
    """Show an outline in one slice and the region that grows from it in five slices."""
    view = Slices(case)
    expert = case.reference.array
    axis = 0
    index = int(expert.sum(axis=(1, 2)).argmax())
    grown = mm.grow(case, outline=mm.Outline(axis, index, expert[index]), progress=False)
    figure, axes = plt.subplots(1, 5, figsize=(9, 2.2), layout="constrained")
    image = subtract(case)
    for panel, shift in zip(axes, (-2, -1, 0, 1, 2), strict=True):
        number = view.middle + shift
        view.show(panel, view.crop(image, number), f"slice {number + 1}")
        outline(panel, view.crop(expert, number), BLUE)
        outline(panel, view.crop(grown.mask.array, number), ORANGE)
    dice = mm.metrics.dice(case.reference, grown.mask)
    figure.suptitle(
        f"The outline of slice {view.middle + 1}, grown to 3-D (orange); "
        f"reference (blue), Dice {dice:.2f}",
        fontsize=9,
    )
    return figure


def draw_stroke(case: "mm.Case") -> Figure:
    """Show two strokes of the SmartPaint brush: one that adds, and one that removes a leak."""
    from scipy import ndimage

    from napari_mamamia.smartpaint.brush.features import measure_features
    from napari_mamamia.smartpaint.evidence.stroke import prepare_stroke, settle_stroke, window_mm

    images = measure_features(case.read())
    view = Slices(case)
    expert = case.reference.array
    z = int(expert.sum(axis=(1, 2)).argmax())
    _, y, x = np.argwhere(expert & (np.arange(expert.shape[0]) == z)[:, None, None]).mean(axis=0)
    columns = np.arange(expert.shape[2])
    half = (expert & (columns < x)).astype(np.uint8)
    wide = ndimage.binary_dilation(expert, iterations=1)
    leak = ndimage.shift(expert.astype(float), (0, 0, 5), order=0) > 0
    too_much = (expert | (leak & wide)).astype(np.uint8)
    too_much[z - 2 : z + 3, int(y) - 1 : int(y) + 2, int(x) : int(x) + 10] = 1
    figure, axes = plt.subplots(1, 4, figsize=(9, 2.7), layout="constrained")
    image = view.crop(subtract(case))
    for start, action, point, two in (
        (half, Action.ADD, (z, y, x + 3), axes[:2]),
        (too_much, Action.ERASE, (z, y, x + 8.5), axes[2:]),
    ):
        radius = 7.0 if action is Action.ADD else 5.0
        brush = Brush(tool=Tool.EVIDENCE, action=action, radius_mm=radius, label=1)
        words = np.zeros(expert.shape, np.uint16)
        work = prepare_stroke(images, start, words, brush, (point,))
        settled = settle_stroke(work)
        after = start.copy()
        after[settled.box.slices] = settled.labels
        verb = "add" if action is Action.ADD else "remove"
        for panel, mask, title in (
            (two[0], start, f"press to {verb}"),
            (two[1], after, "mask after the stroke"),
        ):
            view.show(panel, image, title)
            outline(panel, view.crop(expert), BLUE)
            outline(panel, view.crop(mask > 0), ORANGE)
        where = np.zeros(expert.shape)
        where[tuple(round(n) for n in point)] = 1
        row, column = np.argwhere(view.crop(where))[0]
        spacing = case.spacing_mm[2]
        colour = GREEN if action is Action.ADD else VERMILION
        for radius, style in ((brush.radius_mm, "-"), (window_mm(brush), ":")):
            two[0].add_patch(
                plt.Circle((column, row), radius / spacing, fill=False, color=colour, ls=style)
            )
    figure.suptitle(
        "Mask (orange) and reference (blue). Solid: circle of the brush; dotted: limit of all "
        "changes",
        fontsize=9,
    )
    return figure


def draw_ftv(case: "mm.Case") -> Figure:
    """Show the steps of the functional tumour volume in one slice."""
    view = Slices(case)
    maps = mm.kinetics.maps(case, ["pe", "ser"])
    ftv = mm.kinetics.ftv(case, case.reference)
    enhancing, counted = (np.zeros(case.grid.shape, bool) for _ in range(2))
    enhancing[ftv.box.slices], counted[ftv.box.slices] = ftv.enhancing, ftv.mask
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.0), layout="constrained")
    view.show(axes[0], view.crop(subtract(case)), "early minus pre, reference")
    outline(axes[0], view.crop(case.reference.array), BLUE)
    percent = axes[1].imshow(
        view.crop(maps["pe"]), cmap="magma", vmin=0, vmax=250, aspect=view.aspect
    )
    axes[1].set_title("percent enhancement; line: 70 %", fontsize=9)
    axes[1].axis("off")
    outline(axes[1], view.crop(enhancing), "white")
    figure.colorbar(percent, ax=axes[1], shrink=0.8, label="%")
    view.show(axes[2], view.crop(subtract(case)), f"FTV {ftv.volume_cc:.1f} cc, coloured by SER")
    edges = (0, 0.9, 1.0, 1.3, 1.75, 3.0)
    colours = mpl.colors.ListedColormap(["#0000ff", "#800080", "#00c000", "#ff0000", "#ffff00"])
    ratio = np.where(view.crop(counted), view.crop(maps["ser"]), np.nan)
    shown = axes[2].imshow(
        ratio, cmap=colours, norm=mpl.colors.BoundaryNorm(edges, 5), aspect=view.aspect
    )
    figure.colorbar(shown, ax=axes[2], shrink=0.8, label="SER")
    return figure


def draw_candidates(case: "mm.Case") -> Figure:
    """Show the candidates of the kinetic segmenter on the subtraction's projection."""
    found = mm.predict(case, progress=False)
    view = Slices(case)
    difference = view.frame.to_display(subtract(case))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    options = {"vmin": 0, "vmax": float(np.percentile(difference.max(axis=0), 99.7))}
    view.show(axes[0], difference.max(axis=0), "projection of early minus pre", **options)
    view.show(axes[1], difference.max(axis=0), "candidates, the best first (orange)", **options)
    for number, candidate in enumerate(found.candidates):
        array = np.zeros(case.grid.shape, bool)
        array[candidate.box.slices] = candidate.crop
        mask = view.frame.to_display(array).any(axis=0)
        outline(axes[1], mask, ORANGE if number == 0 else BLUE)
        y, x = np.argwhere(mask).mean(axis=0)
        axes[1].annotate(
            f"{number + 1}: {candidate.score:.2f}",
            (x, y),
            xytext=(9, -9),
            textcoords="offset points",
            color="white",
            fontsize=8,
        )
    return figure


def draw_diameters(case: "mm.Case") -> Figure:
    """Show the longest diameter in plane and its perpendicular extent."""
    from scipy.spatial.distance import pdist, squareform

    view = Slices(case)
    mask = view.crop(case.reference.array)
    points = np.argwhere(mask).astype(float)
    spacing = view.frame.per_axis(case.spacing_mm)[1:]
    in_mm = points * spacing
    between = squareform(pdist(in_mm))
    first, last = np.unravel_index(between.argmax(), between.shape)
    along = (in_mm[last] - in_mm[first]) / between.max()
    across = in_mm @ np.array([-along[1], along[0]])
    low, high = points[across.argmin()], points[across.argmax()]
    figure, axes = plt.subplots(figsize=(4.6, 3.6), layout="constrained")
    view.show(axes, view.crop(subtract(case)), "")
    outline(axes, mask, BLUE)
    ends = points[[first, last]]
    axes.plot(ends[:, 1], ends[:, 0], "o-", color=ORANGE, ms=3)
    axes.plot([low[1], high[1]], [low[0], high[0]], "o", color=GREEN, ms=4)
    middle = ends.mean(axis=0) * spacing
    side = np.array([-along[1], along[0]])
    ruler = np.array([middle + side * (n - middle @ side) for n in (across.min(), across.max())])
    ruler = ruler / spacing
    axes.plot(ruler[:, 1], ruler[:, 0], "--", color=GREEN)
    axes.set_title(
        f"longest {between.max():.1f} mm (orange), perpendicular {np.ptp(across):.1f} mm (green)",
        fontsize=9,
    )
    return figure


def draw_mask_tools(case: "mm.Case") -> Figure:
    """Show tools for whole masks on a mask with a hole, a fragment and a strand."""
    from napari_mamamia.smartpaint import mask_tools

    grid = case.grid
    view = Slices(case)
    rough = case.reference.array.copy()
    z, y, x = (round(n) for n in np.argwhere(rough).mean(axis=0))
    rough[z, y : y + 2, x : x + 2] = False
    rough[z - 1 : z + 2, y - 9 : y - 7, x + 8 : x + 11] = True
    rough[z, y : y + 1, x - 12 : x] = True
    figure, axes = plt.subplots(1, 5, figsize=(9, 2.2), layout="constrained")
    panels = {
        "mask": None,
        "keep largest": mask_tools.keep_largest(rough, grid),
        "fill holes": mask_tools.fill_holes(rough, grid, view_axis(view)),
        "margin + 3 mm": mask_tools.margin(rough, grid, 3.0),
        "smooth 2 mm": mask_tools.smooth(rough, grid, 2.0),
    }
    for panel, (name, change) in zip(axes, panels.items(), strict=True):
        after = rough.copy()
        if change is not None and not change[0].is_empty:
            after[change[0].slices] = change[1]
        view.show(panel, view.crop(subtract(case)), name)
        outline(panel, view.crop(rough), BLUE)
        outline(panel, view.crop(after), ORANGE)
    return figure


def view_axis(view: Slices) -> int:
    """Return the array axis of the displayed slices."""
    probe = np.zeros((2, 3, 4))
    return int(np.flatnonzero(np.array(probe.shape) == view.frame.to_display(probe).shape[0])[0])


def draw_phases(data_set: "mm.DataSet") -> Figure:
    """Show the phases of a phantom in the slice with most of its reference."""
    case = data_set["PHANTOM_001"]
    view = Slices(case, margin=1000)
    shown = [view.crop(case.signal[k]) for k in range(min(case.n_phases, 4))]
    top = float(np.percentile(shown[1], 99.7))
    figure, axes = plt.subplots(1, len(shown), figsize=(9, 2.4), layout="constrained")
    for k, (panel, image) in enumerate(zip(axes, shown, strict=True)):
        name = "pre" if k == 0 else f"post {k}"
        view.show(panel, image, f"{name}, {case.times_s[k]:.0f} s", vmin=0, vmax=top)
    outline(axes[1], view.crop(case.reference.array), BLUE)
    return figure


def draw_motion() -> Figure:
    """Show a subtraction of a phantom that moved, before and after registration."""
    from napari_mamamia.kinetics.registration.registration import register_phases
    from napari_mamamia.phantom.phantom_case import make_phantom
    from napari_mamamia.phantom.spec import PhantomSpec

    moved = PhantomSpec(
        seed=11, times_s=(0.0, 120.0, 360.0), motion_mm=((2.0, 4.0, 1.0), (0.0,) * 3, (0.0,) * 3)
    )
    case: Case = make_phantom(moved).case
    registered = register_phases(case)
    frame = case.grid.display_frame()
    figure, axes = plt.subplots(1, 2, figsize=(9, 2.9), layout="constrained")
    residuals = registered.motions[0]
    for panel, shown, name, fit in (
        (axes[0], case, "as scanned", residuals.before),
        (axes[1], registered.case, "registered", residuals.after),
    ):
        difference = frame.to_display(shown.signal[1].astype(float) - shown.signal[0])
        panel.imshow(difference[difference.shape[0] // 2], cmap="gray", vmin=-60, vmax=160)
        panel.set_title(f"phase 1 minus phase 0, {name}: residual {fit.residual_percent:.1f} %")
        panel.axis("off")
    return figure


# Charts


def draw_distances() -> Figure:
    """Show the distances between the contours of two masks, with their 95th percentile."""
    rows, columns = np.mgrid[:24, :34]
    reference = (rows - 12) ** 2 / 81 + (columns - 14) ** 2 / 110 <= 1
    prediction = (rows - 11) ** 2 / 64 + (columns - 15) ** 2 / 130 <= 1
    prediction |= (abs(rows - 11) <= 1) & (columns > 14) & (columns < 32)
    from scipy import ndimage

    def contour(mask: np.ndarray) -> np.ndarray:
        return mask & ~ndimage.binary_erosion(mask)

    grid = mm.Grid.of_spacing((1, *reference.shape), (1.0, 1.0, 1.0))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    left = axes[0]
    left.imshow(np.where(reference | prediction, 0.9, 1.0), cmap="gray", vmin=0, vmax=1)
    outline(left, reference, BLUE)
    outline(left, prediction, ORANGE)
    here, there = np.argwhere(contour(prediction)), np.argwhere(contour(reference))
    between = np.linalg.norm(here[:, None] - there[None], axis=2)
    for point, nearest in zip(here, there[between.argmin(axis=1)], strict=True):
        left.plot([point[1], nearest[1]], [point[0], nearest[0]], color=GREY, lw=0.7)
    left.axis("off")
    left.set_title("reference (blue), prediction (orange), distances d(p → R)", fontsize=9)
    distances = np.sort(np.concatenate([between.min(axis=1), between.min(axis=0)]))
    right = axes[1]
    right.step(distances, np.arange(1, len(distances) + 1) / len(distances), color=BLUE)
    measured = mm.metrics.measure(reference[None], prediction[None], grid)
    for name, key, colour in (
        ("ASSD", "assd_mm", GREEN),
        ("HD95", "hausdorff95_mm", ORANGE),
        ("HD", "hausdorff_mm", VERMILION),
    ):
        right.axvline(measured[key], color=colour, lw=1.2)
        right.text(measured[key], 0.5, f" {name} {measured[key]:.1f} mm", color=colour, rotation=90)
    right.set(xlabel="distance (mm)", ylabel="share of both contours", ylim=(0, 1.02))
    right.set_title(f"Dice {measured['dsc']:.2f}: Dice hardly sees the spike", fontsize=9)
    return figure


def draw_curve_types() -> Figure:
    """Show the classes of the initial rise and of the delayed course."""
    minutes = np.linspace(0, 7.5, 200)
    figure, axes = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
    for name, late, colour in (
        ("persistent, d > 10 %", 1.22, BLUE),
        ("plateau, |d| ≤ 10 %", 1.0, GREEN),
        ("washout, d < −10 %", 0.8, VERMILION),
    ):
        knots = [0, 0.5, 2.5, 7.5]
        signal = np.interp(minutes, knots, [100, 100, 240, 240 * late])
        axes.plot(minutes, signal, color=colour)
        axes.text(7.55, signal[-1], name, color=colour, va="center")
    for time, name in ((2.5, "early\n150 s"), (7.5, "late\n450 s")):
        axes.axvline(time, color=GREY, lw=0.8, ls=":")
        axes.text(time, 92, name, ha="center", va="top", color=GREY, fontsize=8)
    for percent, text in ((50, "PE 50 %: slow below"), (100, "PE 100 %: fast above")):
        axes.plot([0, 4.6], [100 + percent] * 2, color=GREY, lw=0.8, ls="--")
        axes.text(2.6, 102 + percent, text, color=GREY, fontsize=8)
    axes.set(xlim=(0, 10.6), ylim=(70, 305), ylabel="signal (S0 = 100)")
    axes.set_xlabel("minutes after the first post-contrast phase began", loc="left")
    axes.set_xticks([0, 2, 4, 6])
    return figure


def draw_tofts() -> Figure:
    """Show the arterial input and the tissue curves of the Tofts models."""
    from napari_mamamia.features.perfusion.kinetics.arterial_input import (
        ArterialInput,
        InputName,
        plasma_curve,
    )
    from napari_mamamia.features.perfusion.kinetics.fit import tissue_concentration_mm

    minutes = np.linspace(0, 6, 361)
    plasma = plasma_curve(ArterialInput(InputName.PARKER), 6.0)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.9), layout="constrained")
    left.plot(minutes, plasma.at(minutes), color=VERMILION)
    left.set(
        xlabel="minutes after arrival", ylabel="plasma (mM)", title="population input (Parker)"
    )
    for ktrans, ve, vp, colour in (
        (0.6, 0.4, 0.0, VERMILION),
        (0.25, 0.4, 0.0, BLUE),
        (0.25, 0.4, 0.05, GREEN),
    ):
        name = f"Ktrans {ktrans}/min, ve {ve}" + (f", vp {vp}" if vp else "")
        curve = tissue_concentration_mm(plasma, minutes, ktrans, ve, vp)
        right.plot(minutes, curve, color=colour, label=name)
    right.set(xlabel="minutes after arrival", ylabel="tissue (mM)", title="tissue")
    right.legend(frameon=False, fontsize=8)
    return figure


def draw_steepest_rise() -> Figure:
    """Show arrival, time to enhancement and the steepest rise of an ultrafast curve."""
    from napari_mamamia.kinetics.ultrafast import steepest_rise

    times = np.arange(0, 81, 4.0)
    signal = 100 + 130 / (1 + np.exp(-(times - 36) / 5))
    rise = steepest_rise(times.tolist(), signal.astype(np.float32)[:, None])
    slope, arrival, base = (float(n[0]) for n in (rise.slope, rise.arrival_s, rise.baseline))
    figure, axes = plt.subplots(figsize=(5.4, 3.0), layout="constrained")
    axes.plot(times, signal, "o-", color=BLUE, ms=3, lw=1)
    along = np.array([arrival, arrival + 1.1 * (signal[-1] - base) / slope])
    axes.plot(along, base + slope * (along - arrival), color=ORANGE)
    axes.axhline(base, color=GREY, lw=0.8, ls="--")
    axes.plot([arrival], [base], "o", color=VERMILION)
    axes.annotate(
        f"arrival in the tissue, {arrival:.0f} s",
        (arrival, base),
        xytext=(8, -14),
        textcoords="offset points",
        color=VERMILION,
    )
    axes.text(along[1] + 1, 185, "steepest rise\nbetween two phases", color=ORANGE)
    axes.text(1, base + 3, "baseline", color=GREY)
    axes.set(xlabel="s after the first phase", ylabel="signal", ylim=(80, 245))
    return figure


def score_teams(n_cases: int = 160) -> "tuple[mm.Scores, mm.Scores]":
    """Return the scores of two made-up teams; the better one fails in dense breasts."""
    rng = np.random.default_rng(3)
    ids = [f"CASE_{number:03}" for number in range(n_cases)]
    clinical = pd.DataFrame(
        {
            "case_id": ids,
            "age": rng.integers(28, 80, n_cases),
            "menopausal_status": rng.choice(["pre", "post"], n_cases),
            "breast_density": rng.choice(list("abcd"), n_cases, p=[0.1, 0.4, 0.35, 0.15]),
        }
    )
    even = rng.beta(14, 6, n_cases)
    dense = np.where(clinical.breast_density == "d", 0.3, 0.0)
    uneven = np.clip(even + 0.08 - dense, 0, 1)
    teams = []
    for name, dice in (("team A", even), ("team B", uneven)):
        table = pd.DataFrame({"case_id": ids, "dsc": dice, "norm_hd": (1 - dice) / 2})
        teams.append(mm.score_table(table, clinical=clinical, bootstrap=200, name=name))
    return teams[0], teams[1]


def draw_groups() -> Figure:
    """Show the group means, and the disparity of each variable."""
    _, team = score_teams()
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.7), sharey=True, layout="constrained")
    for panel, (variable, rows) in zip(
        axes, team.groups.groupby("variable", sort=False), strict=True
    ):
        error = rows.sd_dsc / np.sqrt(rows.n)
        panel.errorbar(rows.group, rows.mean_dsc, error, fmt="o", color=BLUE, capsize=2)
        low, high = rows.mean_dsc.min(), rows.mean_dsc.max()
        panel.axhspan(low, high, color=ORANGE, alpha=0.2, lw=0)
        panel.set_title(
            f"{str(variable).replace('_', ' ')}: disparity {high - low:.2f}", fontsize=9
        )
    axes[0].set_ylabel("mean Dice, with its standard error")
    return figure


def draw_weights() -> Figure:
    """Show the ranking score of two teams for each weight of fairness."""
    first, second = score_teams()
    weights = first.compare(second).weights
    figure, axes = plt.subplots(figsize=(5.0, 3.0), layout="constrained")
    for name, colour in zip(weights.columns, (BLUE, ORANGE), strict=True):
        axes.plot(weights.index, weights[name], color=colour)
        axes.text(1.01, weights[name].iloc[-1], name, color=colour, va="center")
    axes.axvline(0.5, color=GREY, lw=0.8, ls=":")
    axes.text(0.51, axes.get_ylim()[0], "challenge", color=GREY, va="bottom")
    axes.set(xlabel="weight of fairness", ylabel="ranking score", xlim=(0, 1.18))
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    return figure


def draw_bootstrap() -> Figure:
    """Show the resampled means of Dice and the ends of their percentile interval."""
    rng = np.random.default_rng(1)
    dice = np.concatenate([rng.beta(12, 4, 55), np.zeros(5)])
    draws = np.random.default_rng(42).integers(0, len(dice), (1000, len(dice)))
    means = dice[draws].mean(axis=1)
    table = pd.DataFrame(
        {"case_id": [f"C{n:02}" for n in range(60)], "dsc": dice, "norm_hd": (1 - dice) / 2}
    )
    row = mm.score_table(table).cohort.loc["mean_dsc"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.7), layout="constrained")
    left.hist(dice, 24, color=BLUE)
    left.set(xlabel="Dice of a case", ylabel="cases", title="60 cases, 5 of them failures")
    right.hist(means, 30, color=GREY)
    right.axvline(row.value, color=ORANGE)
    for end in (row.low, row.high):
        right.axvline(end, color=ORANGE, ls="--")
    right.set(xlabel="mean Dice of a resample", ylabel="resamples")
    right.set_title(f"mean {row.value:.3f}, 95 % interval {row.low:.3f} to {row.high:.3f}")
    return figure


def draw_froc() -> Figure:
    """Show a FROC curve and the seven points whose mean is the FROC score."""
    rng = np.random.default_rng(5)
    lesions, boxes = [], []
    for number in range(40):
        case = f"C{number:02}"
        x, y, z = rng.uniform(20, 80, 3)
        size = rng.uniform(6, 20)
        sides = {"x2": x + size, "y2": y + size, "z2": z + size}
        box = {"case_id": case, "x1": x, "y1": y, "z1": z, **sides}
        lesions.append(box)
        if rng.random() < 0.9:
            boxes.append({**box, "score": rng.beta(4, 2)})
        for _ in range(rng.poisson(2)):
            a, b, c = rng.uniform(120, 180, 3)
            false = {"x1": a, "y1": b, "z1": c, "x2": a + 9, "y2": b + 9}
            boxes.append({"case_id": case, **false, "z2": c + 9, "score": rng.beta(2, 4)})
    cases = pd.DataFrame({"case_id": [f"C{n:02}" for n in range(40)]})
    result = mm.score_detection(
        pd.DataFrame(lesions), pd.DataFrame(boxes), cases=cases, bootstrap=0, progress=False
    )
    curve = result.curve[result.curve.curve == "froc"]
    figure, axes = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
    axes.step(curve.fp_per_case, curve.sensitivity, where="post", color=BLUE)
    for rate in (0.125, 0.25, 0.5, 1, 2, 4, 8):
        axes.plot(rate, curve.sensitivity[curve.fp_per_case <= rate].max(), "o", color=ORANGE)
    axes.set_xscale("log", base=2)
    axes.set_xticks([0.125, 0.25, 0.5, 1, 2, 4, 8], ["1/8", "1/4", "1/2", "1", "2", "4", "8"])
    axes.set(xlabel="false positives per case", ylabel="sensitivity", xlim=(0.1, 9), ylim=(0, 1))
    axes.set_title(f"FROC score {result.froc:.2f}: mean of the seven sensitivities", fontsize=9)
    return figure


def draw_classifier() -> Figure:
    """Show a ROC curve, the part of its area above a sensitivity of 0.9, and one cut."""
    from napari_mamamia.scoring.classifier.operating import SortedCases, partial_auc

    rng = np.random.default_rng(8)
    truth = (rng.random(120) < 0.4).astype(float)
    scores = rng.normal(truth * 1.4, 1.0)
    points = SortedCases.of(truth, scores).points()
    false_rate = points.negatives[0] / points.n_negative[0]
    sensitivity = points.positives[0] / points.n_positive[0]
    above = partial_auc(truth, scores, 0.9)
    x = np.linspace(0, 1, 1001)
    y = np.interp(x, false_rate, sensitivity)
    figure, axes = plt.subplots(figsize=(4.0, 3.6), layout="constrained")
    axes.plot(false_rate, sensitivity, color=BLUE)
    axes.fill_between(x, 0.9, np.maximum(y, 0.9), color=ORANGE, alpha=0.5, lw=0)
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":")
    axes.text(0.98, 0.8, f"partial AUC above 0.9: {above.raw:.3f}", color=VERMILION, ha="right")
    axes.text(0.98, 0.05, f"AUC {points.auc()[0]:.3f}", color=BLUE, ha="right")
    axes.set(xlabel="1 - specificity", ylabel="sensitivity", xlim=(0, 1), ylim=(0, 1.01))
    return figure


if __name__ == "__main__":
    main()

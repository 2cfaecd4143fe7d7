"""The kinetic map `late_pe`: percent enhancement of the late phase."""

from functools import partial
from typing import Any

from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics.map_blocks import MapRecipe
from napari_mamamia.kinetics.map_kinds import MapNeeds, MapRange, MapSpec


def enhancement(late: int, block: NDArray[Any], out: NDArray[Any]) -> None:
    """Write 100 (S_late - S0) / S0 of a block ``(phase, ...)`` into `out`."""
    before = block[0].astype("float32")
    out[...] = 100 * (block[late] - before) / before


def late_recipe(needs: MapNeeds) -> MapRecipe:
    """Return the formula and the phases that it needs."""
    late = needs.choice.late
    if late is None:
        raise CaseError(f"there is no late phase: {needs.choice.reason}")
    return MapRecipe(partial(enhancement, late), (0, late))


LATE_PE = MapSpec(
    late_recipe,
    lambda needs: f"phase {needs.choice.late} against phase 0",
    "100 (S_late - S0) / S0",
    "by hand",
    (MapRange("0–200 %", (0.0, 200.0)), MapRange("auto, 1–99 %", None)),
    "%",
)

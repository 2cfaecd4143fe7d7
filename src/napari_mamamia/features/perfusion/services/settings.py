"""The settings of a perfusion run."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from napari_mamamia.core.choices import TissueModel
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.core.provenance import Setting
from napari_mamamia.features.perfusion.kinetics.arterial_input import ArterialInput
from napari_mamamia.features.perfusion.kinetics.spoiled_echo import require_t1

_MAP_UNITS: Final = {"ktrans": "1/min", "ve": "share", "vp": "share", "kep": "1/min"}
ALL_MAPS: Final = tuple(_MAP_UNITS)


@dataclass(frozen=True, slots=True)
class FlipAngles:
    """Volumes with several flip angles, from which T1 is computed.

    `folder` contains ``ID_0000.nii.gz``, ``ID_0001.nii.gz``, ..., or folders ID with these files,
    in the order of `degrees`. If `repetition_ms` is None, the TR of the dynamic series is used.
    """

    folder: str
    degrees: tuple[float, ...]
    repetition_ms: float | None = None


@dataclass(frozen=True, slots=True)
class PerfusionSettings:
    """The model, the arterial input, T1 and the contrast agent.

    Parameters
    ----------
    relaxivity
        Relaxivity r1 of the agent at this field strength, in 1/(s mM).
    t10_s, t10_map, flip_angles
        T1 before contrast: one value in s, a map or a folder of maps ``ID.nii.gz`` in s, or volumes
        with several flip angles. Exactly one of these must be set.
    repetition_ms, flip_degrees
        TR and flip angle of the dynamic series; None to use the values in each case's clinical row.
    arrival_s, vessels
        Arrival of contrast in seconds since phase 0, or a folder of masks of the aorta or heart; by
        default the arrival is fitted to the mask's mean curve.
    times_s, label, mask_name
        As in `KineticSettings`.

    Raises
    ------
    CaseError
        If T1 has no source or several sources, or a number is in a different unit.
    """

    model: TissueModel
    source: ArterialInput
    relaxivity: float
    out: str
    t10_s: float | None = None
    t10_map: str = ""
    flip_angles: FlipAngles | None = None
    repetition_ms: float | None = None
    flip_degrees: float | None = None
    arrival_s: float | None = None
    vessels: str = ""
    times_s: tuple[float, ...] | None = None
    label: float | None = None
    mask_name: str = field(default="reference")

    def __post_init__(self) -> None:
        sources = (self.t10_s is not None, bool(self.t10_map), self.flip_angles is not None)
        if sum(sources) != 1:
            raise CaseError(
                f"expected one source of T1 before contrast, but got {sum(sources) or 'none'}; "
                "enter T1 in seconds, a T1 map, or volumes with several flip angles together "
                "with the angles",
                remedies=(
                    Remedy("t10", ("SECONDS",)),
                    Remedy("t10", ("MAP",)),
                    Remedy("vfa_angles", ("DEGREES",)),
                ),
            )
        if self.t10_s is not None:
            require_t1(self.t10_s)
        if self.arrival_s is not None and not math.isfinite(self.arrival_s):
            raise CaseError(
                f"expected the arrival to be in seconds, but it is {self.arrival_s:g}; enter "
                "seconds since the start of phase 0"
            )

    @property
    def map_units(self) -> dict[str, str]:
        """Return the unit of each map that the model fits; only the extended model has vp."""
        left_out = "" if self.model is TissueModel.EXTENDED else "vp"
        return {name: unit for name, unit in _MAP_UNITS.items() if name != left_out}

    @property
    def t10_source(self) -> str:
        """Return a short description of where T1 comes from."""
        if self.t10_s is not None:
            return f"one value for all, {self.t10_s:g} s"
        if self.flip_angles is None:
            return "map"
        angles = " ".join(f"{angle:g}" for angle in self.flip_angles.degrees)
        return f"flip angles {angles} degrees"

    @property
    def parameters(self) -> tuple[tuple[str, Setting], ...]:
        """Return all settings of a run for ``run.json``; folders are given by their names."""
        flips = self.flip_angles
        return (
            ("model", str(self.model)),
            ("input", self.source.text),
            ("relaxivity", self.relaxivity),
            ("t10", self.t10_source),
            ("t10_map", Path(self.t10_map).name),
            ("vfa", "" if flips is None else Path(flips.folder).name),
            ("vfa_repetition_ms", None if flips is None else flips.repetition_ms),
            ("repetition_ms", self.repetition_ms),
            ("flip_degrees", self.flip_degrees),
            ("arrival_s", self.arrival_s),
            ("vessels", Path(self.vessels).name),
            ("times_s", " ".join(f"{time:g}" for time in self.times_s or ())),
            ("label", self.label),
            ("masks", self.mask_name),
        )

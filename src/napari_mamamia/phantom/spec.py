"""`PhantomSpec`: the validated parameters of a synthetic breast DCE-MRI case."""

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import inf, isfinite
from typing import Final

from napari_mamamia.core.errors import CaseError

AXIS_OF: Final = {"R": 0, "L": 0, "A": 1, "P": 1, "S": 2, "I": 2}
"""Index of the RAS axis that each orientation letter refers to."""


def _in_range(name: str, value: float, low: float, high: float) -> None:
    if not (isfinite(value) and low <= value <= high):
        raise CaseError(f"expected {name} to be from {low:g} to {high:g}, but it is {value:g}")


class Side(StrEnum):
    """Side of the patient."""

    LEFT = "left"
    RIGHT = "right"


class Breasts(StrEnum):
    """The breasts of the patient; a single breast means a mastectomy of the other one."""

    BOTH = "both"
    LEFT = "left"
    RIGHT = "right"


class TumourKind(StrEnum):
    """Type of a tumour: mass, rim-enhancing mass with a necrotic core, or non-mass clumps."""

    MASS = "mass"
    RIM = "rim"
    NON_MASS = "non_mass"


class CurveType(StrEnum):
    """How the signal changes between the early and the last phase.

    A persistent curve rises by more than 10 %, a plateau curve stays within 10 %, and a washout
    curve falls by more than 10 %. Source: Partridge 2014, AJR 202, Fig. 2.
    """

    PERSISTENT = "persistent"
    PLATEAU = "plateau"
    WASHOUT = "washout"


@dataclass(frozen=True, slots=True)
class TumourSpec:
    """The parameters of a tumour.

    Parameters
    ----------
    longest_mm
        Longest axis before the surface is roughened, 3 to 60 mm.
    kind, curve
        The form of the tumour and its delayed course of enhancement.
    side
        Side of the patient.
    early_enhancement_percent
        Mean enhancement over the signal before contrast at the early phase, 20 to 300.
    axis_ratios
        Second and third axis as fractions of the longest axis, each above 0.2 and at most 1.
    roughness
        0 for a smooth ellipsoid, 1 for a strongly lobed surface. For non-mass tumours it applies to
        the outline; non-mass tumours always consist of clumps.
    spicules
        Number of thin spikes on the surface, 0 to 60.
    centre_mm
        The centre in RAS mm; None for a random position inside the breast.

    Raises
    ------
    CaseError
        If a value is out of range.
    """

    longest_mm: float = 22.0
    kind: TumourKind = TumourKind.MASS
    curve: CurveType = CurveType.WASHOUT
    side: Side = Side.LEFT
    early_enhancement_percent: float = 150.0
    axis_ratios: tuple[float, float] = (0.85, 0.7)
    roughness: float = 0.5
    spicules: int = 0
    centre_mm: tuple[float, float, float] | None = None

    def __post_init__(self) -> None:
        _in_range("longest_mm of a tumour", self.longest_mm, 3.0, 60.0)
        _in_range("early_enhancement_percent of a tumour", self.early_enhancement_percent, 20, 300)
        for ratio in self.axis_ratios:
            _in_range("axis_ratios of a tumour", ratio, 0.2, 1.0)
        _in_range("roughness of a tumour", self.roughness, 0.0, 1.0)
        _in_range("spicules of a tumour", self.spicules, 0, 60)


@dataclass(frozen=True, slots=True)
class PhantomSpec:
    """The complete parameters of a phantom: the same spec gives the same arrays, bit for bit.

    The anatomy depends only on `seed` and the anatomical parameters, in RAS mm; the grid samples
    it. The same patient can therefore be rendered axial or sagittal, coarse or fine.

    Parameters
    ----------
    case_id, seed
        Name, and the random seed (0 or more).
    shape, spacing_mm
        Voxels and their distance along (z, y, x) of the array.
    orientation
        The directions of x, y and z of the file, such as "LAS" or "PSR"; all 48 are allowed.
    field_centre_mm
        RAS mm of the centre of the field of view; None centres it on the breasts.
    times_s
        Start of each phase in seconds since phase 0, ascending from 0; 3 to 12 phases.
    bolus_arrival_s
        When contrast arrives in the aorta, after phase 0 and before phase 1.
    tumours
        Zero to five tumours; the first is the primary tumour, which sets the noise.
    breasts
        The breasts of the patient.
    breast_density
        BI-RADS "a" (almost all fat) to "d" (extremely dense).
    background_enhancement_percent
        Mean early enhancement of fibroglandular tissue, 0 to 80.
    fat_suppressed
        Whether the signal of fat is suppressed.
    fat_suppression_failure_mm
        Radius of the regions where suppression fails; 0 for none.
    contrast_to_noise
        CNR of the primary tumour in phase 1, as defined by `scene.noise_sigma`; 0.5 to 200.
    bias_percent
        Smooth unevenness of the receive coil: one standard deviation inside the breasts. The coil's
        fall-off towards posterior grows with it. 0 for a homogeneous image.
    motion_mm
        Displacement of the patient at each phase, (right, anterior, superior) in mm; empty for no
        motion. Phase 1 must be (0, 0, 0): the reference is drawn on it.
    field_strength_t
        1.5 or 3.0.
    fibroglandular_signal
        Signal of unenhanced fibroglandular tissue in scanner units, 40 to 4000.
    nodes
        Lymph nodes in each axilla, 0 to 6; they enhance early and strongly, like tumours.
    blank_border_mm
        Largest width (in the corners) of the border of zeros that a distortion correction leaves in
        the slices; 0 (none) to 40.

    Raises
    ------
    CaseError
        If a value is out of range or two contradict each other.
    """

    case_id: str = "PHANTOM_001"
    seed: int = 0
    shape: tuple[int, int, int] = (48, 100, 156)
    spacing_mm: tuple[float, float, float] = (3.0, 2.0, 2.0)
    orientation: str = "LAS"
    field_centre_mm: tuple[float, float, float] | None = None
    times_s: tuple[float, ...] = (0.0, 120.0, 240.0, 360.0, 480.0)
    bolus_arrival_s: float = 25.0
    tumours: tuple[TumourSpec, ...] = (TumourSpec(),)
    breasts: Breasts = Breasts.BOTH
    breast_density: str = "b"
    background_enhancement_percent: float = 20.0
    fat_suppressed: bool = True
    fat_suppression_failure_mm: float = 0.0
    contrast_to_noise: float = 8.0
    bias_percent: float = 12.0
    motion_mm: tuple[tuple[float, float, float], ...] = ()
    field_strength_t: float = 1.5
    fibroglandular_signal: float = 150.0
    nodes: int = 0
    blank_border_mm: float = 0.0

    def __post_init__(self) -> None:
        if not self.case_id or set(self.case_id) & set("/\\ \t\n"):
            raise CaseError(
                f"expected the case id to have no spaces or slashes, but it is {self.case_id!r}"
            )
        _in_range("seed", self.seed, 0, 2**63)
        _check_grid(self)
        _check_times(self)
        _check_patient(self)
        _check_image(self)

    @property
    def n_phases(self) -> int:
        """Number of phases, including the pre-contrast phase."""
        return len(self.times_s)

    def shift_mm(self, phase: int) -> tuple[float, float, float]:
        """Return the displacement of the patient at `phase` (right, anterior, superior) in mm."""
        return self.motion_mm[phase] if self.motion_mm else (0.0, 0.0, 0.0)


def _check_grid(spec: PhantomSpec) -> None:
    if len(spec.shape) != 3 or min(spec.shape) < 1:
        raise CaseError(
            f"expected shape to be three extents (z, y, x) of at least 1, but it is {spec.shape}"
        )
    for spacing in spec.spacing_mm:
        _in_range("spacing_mm", spacing, 0.2, 12.0)
    if len(spec.spacing_mm) != 3:
        raise CaseError(
            f"expected spacing_mm to have three values (z, y, x), but it is {spec.spacing_mm}"
        )
    axes = sorted(AXIS_OF.get(letter, -1) for letter in spec.orientation)
    if axes != [0, 1, 2]:
        raise CaseError(
            "expected orientation to have one letter each of R/L, A/P and S/I in the order x, y, "
            f"z, such as LAS or PSR, but it is {spec.orientation!r}"
        )


def _check_times(spec: PhantomSpec) -> None:
    times = spec.times_s
    if not 3 <= len(times) <= 12:
        raise CaseError(f"expected times_s to have 3 to 12 phases, but it has {len(times)}")
    if times[0] != 0 or not all(a < b < inf for a, b in pairwise(times)):
        raise CaseError(f"expected times_s to start at 0 and ascend, but it is {times}")
    if not 0 < spec.bolus_arrival_s < times[1]:
        raise CaseError(
            f"expected bolus_arrival_s to be between the first two phases (0 to {times[1]:g} s), "
            f"but it is {spec.bolus_arrival_s:g}"
        )
    if spec.motion_mm and len(spec.motion_mm) != len(times):
        raise CaseError(
            f"expected motion_mm to have one shift for each of {len(times)} phases or none, "
            f"but it has {len(spec.motion_mm)}"
        )
    if any(spec.shift_mm(1)):
        raise CaseError(
            "expected motion_mm to be (0, 0, 0) in phase 1, on which the reference is drawn, but "
            f"it is {spec.shift_mm(1)}; move the other phases instead"
        )


def _check_patient(spec: PhantomSpec) -> None:
    if len(spec.tumours) > 5:
        raise CaseError(f"expected at most 5 tumours, but found {len(spec.tumours)}")
    there = {Side(spec.breasts.value)} if spec.breasts != Breasts.BOTH else set(Side)
    for tumour in spec.tumours:
        if tumour.side not in there:
            raise CaseError(
                f"a tumour on the {tumour.side} needs a {tumour.side} breast, but breasts is "
                f"{spec.breasts.value!r}; change the side of the tumour or the breasts"
            )
    if spec.breast_density not in ("a", "b", "c", "d"):
        raise CaseError(
            f'expected breast_density to be "a" to "d", but it is {spec.breast_density!r}'
        )
    _in_range("nodes", spec.nodes, 0, 6)
    _in_range("background_enhancement_percent", spec.background_enhancement_percent, 0, 80)


def _check_image(spec: PhantomSpec) -> None:
    _in_range("contrast_to_noise", spec.contrast_to_noise, 0.5, 200)
    _in_range("bias_percent", spec.bias_percent, 0, 50)
    _in_range("blank_border_mm", spec.blank_border_mm, 0, 40)
    _in_range("fat_suppression_failure_mm", spec.fat_suppression_failure_mm, 0, 80)
    _in_range("fibroglandular_signal", spec.fibroglandular_signal, 40, 4000)
    if spec.field_strength_t not in (1.5, 3.0):
        raise CaseError(
            f"expected field_strength_t to be 1.5 or 3.0, but it is {spec.field_strength_t:g}"
        )
    if spec.fat_suppression_failure_mm and not spec.fat_suppressed:
        raise CaseError(
            "expected fat_suppressed to be true if fat_suppression_failure_mm is above 0, but it "
            "is false; set fat_suppression_failure_mm to 0, or enable fat suppression"
        )

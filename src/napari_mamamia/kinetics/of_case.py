"""Maps, FTV and curve of one case: the public door of this room.

Numbers are those of ``mamamia kinetics``: its clock, its region, its way with a scan before
contrast that was taken again.
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box, Corners, box_of
from napari_mamamia.core.case import Case, Mask
from napari_mamamia.core.errors import ArgumentError, CaseError
from napari_mamamia.core.mask_arrays import MaskLike, mask_array
from napari_mamamia.kinetics.contrast_curve import (
    ContrastCurve,
    patch_curve,
    region_contrast_curve,
)
from napari_mamamia.kinetics.map_kinds import MAPS, MapNeeds, map_recipe
from napari_mamamia.kinetics.repeated_pre import RepeatedPre, with_pre
from napari_mamamia.kinetics.time_axis import Timing, TimingRule, rule_of
from napari_mamamia.kinetics.timing import choose_curve_phases, choose_phases
from napari_mamamia.kinetics.tumour_volume import (
    FTV_MARGIN_MM,
    FtvSettings,
    FtvVariant,
    FunctionalTumourVolume,
    box_around_mask,
    functional_tumour_volume,
    prepare_ftv,
)

_NAMES: Final = {kind.name.lower(): kind for kind in MAPS}
_USUAL: Final = ("pe", "ser", "wash_in", "wash_out", "peak", "type")


class OpensCase(Protocol):
    """What reads a case when it is asked for, with the expert's mask if there is one."""

    @property
    def reference(self) -> Mask | None:
        """The expert mask, None without."""

    def read(self) -> Case:
        """Return the case with all its phases."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CaseMaps(Mapping[str, NDArray[Any]]):
    """Maps by name: float32 ``(z, y, x)``, curve types uint8; NaN (0) where undefined.

    `units` has each map's unit, `basis` the phases or clock that it rests on, `missing` why another
    one could not be computed.
    """

    arrays: Mapping[str, NDArray[Any]]
    units: Mapping[str, str]
    basis: Mapping[str, str]
    missing: Mapping[str, str]

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return one map; `CaseError` with the reason where it could not be computed."""
        if name in self.arrays:
            return self.arrays[name]
        if name in self.missing:
            raise CaseError(f"expected the map {name}, but {self.missing[name]}")
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def __contains__(self, name: object) -> bool:
        return name in self.arrays

    def __repr__(self) -> str:
        lines = [f"  {name} [{self.units[name] or 'no unit'}]: {self.basis[name]}" for name in self]
        lines += [f"  {name} is missing: {why}" for name, why in self.missing.items()]
        return "\n".join(["CaseMaps", *lines])


def maps(
    case: Case | OpensCase,
    kinds: str | Sequence[str] | None = None,
    *,
    timing: Literal["UCSF-FTV", "phase0-start"] = "UCSF-FTV",
    injection_s: float | None = None,
    phases: tuple[int, int] | None = None,
    repeated_pre: Literal["leave-out", "average", "keep"] = "leave-out",
) -> CaseMaps:
    """Return kinetic maps of a case by name.

    Parameters
    ----------
    case
        ``data_set["ID"]``, with two phases or more.
    kinds
        "pe" (percent enhancement of the early phase), "ser" (signal enhancement ratio), "wash_in",
        "wash_out", "peak" (largest PE), "type" (0 none, 1 persistent, 2 plateau, 3 washout), and
        every other of the table of maps in docs/methods/kinetics.md, such as "arrival" of ultrafast
        phases. Without it the first six, of which those that the case cannot give are told in
        ``.missing``.
    timing
        The clock that early (150 s) and late (450 s) are chosen by.
    injection_s
        Count from the injection instead, so many seconds after the start of phase 0.
    phases
        Or take these as the early and the late phase.
    repeated_pre
        What becomes of a scan before contrast that was taken again.

    Returns
    -------
    CaseMaps
        A mapping: ``maps(case)["pe"]`` is float32 ``(z, y, x)``, NaN where undefined.

    Raises
    ------
    CaseError
        If the case cannot be opened, or not give a map that was named, with the reason.
    ArgumentError
        If a name or a clock is none.

    Examples
    --------
    >>> found = mm.kinetics.maps(case)  # doctest: +SKIP
    >>> float(np.nanmedian(found["pe"][case.reference.array]))  # doctest: +SKIP
    161.4
    """
    names = _USUAL if kinds is None else (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if unknown := [name for name in names if name not in _NAMES]:
        choices = ", ".join(f'"{name}"' for name in _NAMES)
        raise ArgumentError(
            f"expected maps out of {choices}, got {unknown[0]!r}: name one of these"
        )
    read = _prepare_case(case, repeated_pre)
    rule = rule_of(read, timing_rule(timing, injection_s, phases))
    arrays: dict[str, NDArray[Any]] = {}
    units: dict[str, str] = {}
    basis: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name in names:
        spec = MAPS[_NAMES[name]]
        try:
            choose = choose_curve_phases if spec.of_curve else choose_phases
            needs = MapNeeds(choose(read.times_s, rule), read.times_s, rule)
            arrays[name] = map_recipe(_NAMES[name], needs).compute(read.signal)
        except CaseError as error:
            if kinds is not None:
                raise
            missing[name] = str(error)
            continue
        units[name], basis[name] = spec.unit, spec.basis(needs)
    return CaseMaps(arrays, units, basis, missing)


def ftv(
    case: Case | OpensCase,
    mask: MaskLike | None = None,
    *,
    box: Literal["mask", "breast"] | Corners = "mask",
    variant: Literal["ucsf-extension", "ucsf-ispy1"] = "ucsf-extension",
    settings: FtvSettings | None = None,
    timing: Literal["UCSF-FTV", "phase0-start"] = "UCSF-FTV",
    injection_s: float | None = None,
    phases: tuple[int, int] | None = None,
    repeated_pre: Literal["leave-out", "average", "keep"] = "leave-out",
) -> FunctionalTumourVolume:
    """Return the functional tumour volume of a case in the form of UCSF and I-SPY 2.

    It leaves out what does not enhance and takes in whatever else does inside its region: it is no
    outline of the tumour.

    Parameters
    ----------
    case
        ``data_set["ID"]``, with an early and a late phase.
    mask
        The mask that the region is made of; without it the case's reference.
    box
        The region: "mask" and 10 mm around it, the "breast" box of the patient info, or its first
        voxel and the one behind its last, each ``(z, y, x)``.
    variant
        4 of 26 neighbours, or 9 as in UCSF's own results of I-SPY 1.
    settings
        Thresholds of your own, in place of the variant's.
    timing, injection_s, phases, repeated_pre
        As in `maps`.

    Returns
    -------
    FunctionalTumourVolume
        ``volume_cc``, ``partial_cc`` (SER 0.9 and more), ``washout_cc`` (SER above 1.3), ``bins``
        (by SER), ``mask`` in its ``box``, ``choice`` (the phases taken).

    Raises
    ------
    CaseError
        If there is no late phase, no mask, an empty region, or no breast box.
    ArgumentError, GridMismatchError
        If an argument is of the wrong kind, or the mask of another shape.

    Examples
    --------
    >>> mm.kinetics.ftv(case).volume_cc  # doctest: +SKIP
    2.31
    """
    chosen = settings or FtvSettings.of(_require_variant(variant))
    read = _prepare_case(case, repeated_pre)
    rule = rule_of(read, timing_rule(timing, injection_s, phases))
    region = _find_region(case, read, mask, box)
    images = prepare_ftv(read.signal, choose_phases(read.times_s, rule), (region,))
    return functional_tumour_volume(images, read.grid.voxel_volume_mm3, chosen)


def curve(
    case: Case | OpensCase,
    where: MaskLike | tuple[int, int, int] | None = None,
    *,
    patch: int = 1,
    timing: Literal["UCSF-FTV", "phase0-start"] = "UCSF-FTV",
    injection_s: float | None = None,
    phases: tuple[int, int] | None = None,
    repeated_pre: Literal["leave-out", "average", "keep"] = "leave-out",
) -> ContrastCurve:
    """Return the contrast curve of a mask, or of a voxel and the patch around it.

    Parameters
    ----------
    case
        ``data_set["ID"]``, with two phases or more.
    where
        A mask, or a voxel ``(z, y, x)``; without it the case's reference.
    patch
        Of a voxel: the mean of so many by so many voxels of its slice.
    timing, injection_s, phases, repeated_pre
        As in `maps`.

    Returns
    -------
    ContrastCurve
        ``times_s``, ``signal`` and ``percent`` (PE) of each phase, ``initial`` and ``delayed``
        class, ``peak_percent``.

    Raises
    ------
    CaseError
        If the mask is empty, the voxel outside, or there is one phase only.
    ArgumentError, GridMismatchError
        As `ftv`.

    Examples
    --------
    >>> mm.kinetics.curve(case).percent  # doctest: +SKIP
    (0.0, 152.7, 148.1, 131.0)
    """
    read = _prepare_case(case, repeated_pre)
    rule = rule_of(read, timing_rule(timing, injection_s, phases))
    if not isinstance(where, Mask) and np.shape(cast("NDArray[Any]", where)) == (3,):
        axis = read.grid.display_frame().order[0]
        centre = _require_voxel(np.asarray(where), read)
        times = read.times_s
        return patch_curve(
            read.signal, centre, times, size=_require_odd(patch), slice_axis=axis, rule=rule
        )
    mask = _choose_mask(case, read, cast("MaskLike | None", where))
    if not mask.any():
        raise CaseError("a curve needs a mask with voxels, but this one is empty: pass another")
    return region_contrast_curve(read.signal, mask, read.times_s, rule)


def _prepare_case(case: Case | OpensCase, repeated_pre: str) -> Case:
    """Return a case with all phases, its scans before contrast treated as chosen."""
    if isinstance(case, Case):
        read = case
    elif callable(getattr(case, "read", None)):
        read = case.read()
    else:
        raise ArgumentError(
            f'expected a case, got {type(case).__name__}: pass one such as  data_set["DUKE_001"]'
        )
    read.require_phases(2)
    try:
        return with_pre(read, RepeatedPre(repeated_pre))
    except ValueError as error:
        choices = ", ".join(f'"{one}"' for one in RepeatedPre)
        raise ArgumentError(
            f"expected one of {choices} for repeated_pre, got {repeated_pre!r}: name one"
        ) from error


def timing_rule(
    timing: str, injection_s: float | None, phases: tuple[int, int] | None
) -> TimingRule:
    """Return the clock that phases are chosen by; what excludes each other is refused."""
    if timing not in (Timing.UCSF_FTV, Timing.PHASE0_START):
        raise ArgumentError(
            f'expected "{Timing.UCSF_FTV}" or "{Timing.PHASE0_START}" for timing, got {timing!r}: '
            "for other clocks give injection_s or phases"
        )
    if injection_s is not None and phases is not None:
        raise ArgumentError(
            "expected one of injection_s and phases, got both: keep the one that is meant"
        )
    try:
        if phases is not None:
            early, late = (operator.index(phase) for phase in phases)
            return TimingRule(Timing.MANUAL, phases=(early, late))
        if injection_s is not None:
            return TimingRule(Timing.INJECTION, float(injection_s))
    except (TypeError, ValueError) as error:
        # A CaseError is a ValueError too, and says already what is wrong.
        if isinstance(error, CaseError):
            raise
        raise ArgumentError(
            "expected two phases such as (1, 3), or seconds for injection_s, got "
            f"{injection_s if phases is None else phases!r}: correct it"
        ) from error
    return TimingRule(Timing(timing))


def _require_variant(name: str) -> FtvVariant:
    if name not in (FtvVariant.EXTENSION, FtvVariant.ISPY1):
        raise ArgumentError(
            f'expected "{FtvVariant.EXTENSION}" or "{FtvVariant.ISPY1}" for variant, got {name!r}: '
            "give settings=FtvSettings(...) for thresholds of your own"
        )
    return FtvVariant(name)


def _choose_mask(case: Case | OpensCase, read: Case, given: MaskLike | None) -> NDArray[np.bool_]:
    """Return the mask that was given, else the case's reference."""
    if given is None:
        given = None if isinstance(case, Case) else case.reference
    if given is None:
        raise CaseError(
            f"expected a mask of {read.case_id}, which has no reference: pass one, such as a "
            "prediction's"
        )
    return mask_array(given, f"the mask of {read.case_id}", read.grid)


def _find_region(
    case: Case | OpensCase, read: Case, mask: MaskLike | None, box: str | Corners
) -> Box:
    if box == "breast":
        if read.breast_box is None:
            raise CaseError(
                f'the patient info of {read.case_id} gives no usable breast box: take box="mask"'
            )
        return read.breast_box
    if isinstance(box, str):
        if box != "mask":
            raise ArgumentError(
                f'expected "mask", "breast" or two corners for box, got {box!r}: name one'
            )
        region = box_around_mask(_choose_mask(case, read, mask), read.grid, FTV_MARGIN_MM)
        if region.is_empty:
            raise CaseError(
                f"FTV needs a region, but the mask of {read.case_id} is empty: pass another "
                "mask or a box"
            )
        return region
    return box_of(box, read.grid.shape)


def _require_voxel(given: NDArray[Any], read: Case) -> tuple[int, int, int]:
    shape = read.grid.shape
    if given.dtype.kind not in "iu" or not all(
        0 <= n < m for n, m in zip(given, shape, strict=True)
    ):
        raise CaseError(
            f"expected a voxel (z, y, x) inside {shape}, got {tuple(given.tolist())}: pass whole "
            "numbers of one of the case"
        )
    z, y, x = (int(n) for n in given)
    return z, y, x


def _require_odd(size: int) -> int:
    if size < 1 or size % 2 == 0:
        raise ArgumentError(f"expected an odd number of voxels for patch, got {size}: pass 1 or 3")
    return size

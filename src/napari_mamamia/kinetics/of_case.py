"""The public functions of ``mm.kinetics``, which compute maps, FTV and curves of a case.

The results are the same as those of ``mamamia kinetics``, with the same timing rule, region, and
treatment of a repeated pre-contrast scan.
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
from napari_mamamia.kinetics.curves import (
    ContrastCurve,
    patch_curve,
    region_contrast_curve,
)
from napari_mamamia.kinetics.map_kinds import MAPS, MapNeeds, library_name, map_recipe
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

_USUAL: Final = ("pe", "ser", "wash_in", "wash_out", "peak", "type")


class OpensCase(Protocol):
    """A case that is read on demand, with the expert mask if there is one."""

    @property
    def reference(self) -> Mask | None:
        """The expert mask, or None."""

    def read(self) -> Case:
        """Return the case with all its phases."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CaseMaps(Mapping[str, NDArray[Any]]):
    """Maps of a case by name: float32 ``(z, y, x)``, or uint8 for curve types.

    Undefined values are NaN, or 0 for curve types. `units` has the unit of each map, `basis` the
    phases or times on which each map depends, and `missing` the reason for each map that could not
    be computed.
    """

    arrays: Mapping[str, NDArray[Any]]
    units: Mapping[str, str]
    basis: Mapping[str, str]
    missing: Mapping[str, str]

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name in self.arrays:
            return self.arrays[name]
        if name in self.missing:
            raise CaseError(f"the map {name} is not available: {self.missing[name]}")
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
        The case, such as ``data_set["ID"]``, with at least two phases.
    kinds
        The names of the maps: "pe" (percent enhancement of the early phase), "ser" (signal
        enhancement ratio), "wash_in", "wash_out", "peak" (largest PE), "type" (0 none, 1
        persistent, 2 plateau, 3 washout), and all other maps in the table in
        docs/methods/kinetics.md, such as "arrival" for ultrafast phases. By default, the first six
        are computed; maps that cannot be computed for the case are listed in ``.missing``.
    timing
        The timing rule by which the early (150 s) and late (450 s) phases are chosen.
    injection_s
        The injection time in seconds after the start of phase 0. Times are then relative to the
        injection.
    phases
        The early and the late phase, if they are not to be chosen by time.
    repeated_pre
        The treatment of a repeated pre-contrast scan.

    Returns
    -------
    CaseMaps
        A mapping from name to map: ``maps(case)["pe"]`` is a float32 array ``(z, y, x)`` that is
        NaN where undefined.

    Raises
    ------
    CaseError
        If the case cannot be opened, or a map in `kinds` cannot be computed; the message gives the
        reason.
    ArgumentError
        If the name of a map or of a timing rule is unknown.

    Examples
    --------
    >>> case_maps = mm.kinetics.maps(case)  # doctest: +SKIP
    >>> float(np.nanmedian(case_maps["pe"][case.reference.array]))  # doctest: +SKIP
    161.4
    """
    names = _USUAL if kinds is None else (kinds,) if isinstance(kinds, str) else tuple(kinds)
    kind_of_name = {library_name(kind): kind for kind in MAPS}
    if unknown := [name for name in names if name not in kind_of_name]:
        choices = ", ".join(f'"{name}"' for name in kind_of_name)
        raise ArgumentError(
            f"expected kinds to be one or more of {choices}, but got {unknown[0]!r}"
        )
    read = _prepare_case(case, repeated_pre)
    rule = rule_of(read, timing_rule(timing, injection_s, phases))
    arrays: dict[str, NDArray[Any]] = {}
    units: dict[str, str] = {}
    basis: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name in names:
        spec = MAPS[kind_of_name[name]]
        try:
            choose = choose_curve_phases if spec.of_curve else choose_phases
            needs = MapNeeds(choose(read.times_s, rule), read.times_s, rule)
            arrays[name] = map_recipe(kind_of_name[name], needs).compute(read.signal)
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
    """Return the functional tumour volume (FTV) of a case as defined by UCSF and I-SPY 2.

    FTV excludes tumour that does not enhance and includes other enhancing tissue inside its region.
    It is therefore not an outline of the tumour.

    Parameters
    ----------
    case
        The case, such as ``data_set["ID"]``, with an early and a late phase.
    mask
        The mask that defines the region; by default the case's reference.
    box
        The region: "mask" for the mask's bounding box with a margin of 10 mm, "breast" for the
        breast box in the patient info, or two corners ``(z, y, x)``, which are the first voxel and
        the voxel after the last.
    variant
        "ucsf-extension" for 4 of 26 neighbours, or "ucsf-ispy1" for 9 neighbours, as in UCSF's own
        results for I-SPY 1.
    settings
        Custom thresholds that replace those of the variant.
    timing, injection_s, phases, repeated_pre
        As in `maps`.

    Returns
    -------
    FunctionalTumourVolume
        The result with ``volume_cc``, ``partial_cc`` (SER of at least 0.9), ``washout_cc`` (SER
        above 1.3), ``bins`` (by SER), ``mask`` in its ``box``, and ``choice`` (the phases used).

    Raises
    ------
    CaseError
        If there is no late phase, no mask, an empty region, or no breast box.
    ArgumentError, GridMismatchError
        If an argument has the wrong type, or the mask has a different shape.

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
        The case, such as ``data_set["ID"]``, with at least two phases.
    where
        A mask, or a voxel ``(z, y, x)``; by default the case's reference.
    patch
        For a voxel: the side length of the square patch in its slice over which the mean is taken,
        an odd number.
    timing, injection_s, phases, repeated_pre
        As in `maps`.

    Returns
    -------
    ContrastCurve
        The curve with ``times_s``, ``signal`` and ``percent`` (PE) of each phase, the classes
        ``initial`` and ``delayed``, and ``peak_percent``.

    Raises
    ------
    CaseError
        If the mask is empty, the voxel is outside the image, or the case has only one phase.
    ArgumentError, GridMismatchError
        As in `ftv`.

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
        raise CaseError(
            "expected a mask with foreground voxels, but it is empty; pass a mask that is not empty"
        )
    return region_contrast_curve(read.signal, mask, read.times_s, rule)


def _prepare_case(case: Case | OpensCase, repeated_pre: str) -> Case:
    """Return a case with all phases and the requested treatment of repeated pre-contrast scans."""
    if isinstance(case, Case):
        read = case
    elif callable(getattr(case, "read", None)):
        read = case.read()
    else:
        raise ArgumentError(
            f"expected a case, but got {type(case).__name__}; pass a case such as "
            '`data_set["DUKE_001"]`'
        )
    read.require_phases(2)
    try:
        return with_pre(read, RepeatedPre(repeated_pre))
    except ValueError as error:
        choices = ", ".join(f'"{one}"' for one in RepeatedPre)
        raise ArgumentError(
            f"expected repeated_pre to be one of {choices}, but got {repeated_pre!r}"
        ) from error


def timing_rule(
    timing: str, injection_s: float | None, phases: tuple[int, int] | None
) -> TimingRule:
    """Return the timing rule for choosing phases; raise an error if arguments conflict.

    Parameters
    ----------
    timing
        The value of a `Timing` that counts from a phase.
    injection_s
        The injection time in s after the start of phase 0, or None.
    phases
        The early and the late phase, or None.
    """
    if timing not in (Timing.UCSF_FTV, Timing.PHASE0_START):
        raise ArgumentError(
            f'expected timing to be "{Timing.UCSF_FTV}" or "{Timing.PHASE0_START}", but got '
            f"{timing!r}; pass injection_s or phases for other timing rules"
        )
    if injection_s is not None and phases is not None:
        raise ArgumentError("expected either injection_s or phases, but got both; pass one of them")
    try:
        if phases is not None:
            early, late = (operator.index(phase) for phase in phases)
            return TimingRule(Timing.MANUAL, phases=(early, late))
        if injection_s is not None:
            return TimingRule(Timing.INJECTION, float(injection_s))
    except (TypeError, ValueError) as error:
        # A CaseError is also a ValueError and already has the right message.
        if isinstance(error, CaseError):
            raise
        raise ArgumentError(
            "expected phases to be two numbers such as (1, 3), or injection_s to be a number of "
            f"seconds, but got {injection_s if phases is None else phases!r}"
        ) from error
    return TimingRule(Timing(timing))


def _require_variant(name: str) -> FtvVariant:
    if name not in (FtvVariant.EXTENSION, FtvVariant.ISPY1):
        raise ArgumentError(
            f'expected variant to be "{FtvVariant.EXTENSION}" or "{FtvVariant.ISPY1}", but got '
            f"{name!r}; pass settings=FtvSettings(...) for custom thresholds"
        )
    return FtvVariant(name)


def _choose_mask(case: Case | OpensCase, read: Case, given: MaskLike | None) -> NDArray[np.bool_]:
    """Return the caller's mask, or the reference of the case if the caller passed none."""
    if given is None:
        given = None if isinstance(case, Case) else case.reference
    if given is None:
        raise CaseError(
            f"expected the case {read.case_id} to have a reference mask, but it has none; pass a "
            "mask, such as a prediction"
        )
    return mask_array(given, f"the mask of {read.case_id}", read.grid)


def _find_region(
    case: Case | OpensCase, read: Case, mask: MaskLike | None, box: str | Corners
) -> Box:
    if box == "breast":
        if read.breast_box is None:
            raise CaseError(
                f"expected the patient info of {read.case_id} to have a breast box, but it has no "
                'usable box; pass box="mask"'
            )
        return read.breast_box
    if isinstance(box, str):
        if box != "mask":
            raise ArgumentError(
                f'expected box to be "mask", "breast" or two corners, but got {box!r}'
            )
        region = box_around_mask(_choose_mask(case, read, mask), read.grid, FTV_MARGIN_MM)
        if region.is_empty:
            raise CaseError(
                f"expected the mask of {read.case_id} to have foreground voxels for the FTV "
                "region, but it is empty; pass a different mask or a box"
            )
        return region
    return box_of(box, read.grid.shape)


def _require_voxel(given: NDArray[Any], read: Case) -> tuple[int, int, int]:
    shape = read.grid.shape
    if given.dtype.kind not in "iu" or not all(
        0 <= n < m for n, m in zip(given, shape, strict=True)
    ):
        raise CaseError(
            f"expected a voxel (z, y, x) inside {shape}, but got {tuple(given.tolist())}; pass "
            "three integers inside the case"
        )
    z, y, x = (int(n) for n in given)
    return z, y, x


def _require_odd(size: int) -> int:
    if size < 1 or size % 2 == 0:
        raise ArgumentError(
            f"expected patch to be an odd number of voxels, but got {size}; pass 1 or 3"
        )
    return size

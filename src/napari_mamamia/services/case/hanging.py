"""The hanging protocol of a case: its reading steps by phase role, side and prior.

The order is the MIP of the first subtraction and then the subtraction, as in abbreviated MRI (Kuhl
et al., J Clin Oncol 2014;32:2304-2310). No society has published a hanging protocol for breast MRI.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from typing import Any, Final

from napari_mamamia.core.case import Case
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.kinetics.time_axis import rule_of
from napari_mamamia.kinetics.timing import choose_curve_phases
from napari_mamamia.scoring.case.failures import midline_x_mm

RIGHT: Final = "right"
LEFT: Final = "left"
_OFF_CENTRE_MM: Final = 20.0
"""Smallest distance in mm between the centres of volume and scanner that decides the side.

The value is our choice.
"""
_PATIENT: Final = ("patient", "patient_key", "patient_id", "subject", "subject_id", "person_id")
_DATE: Final = ("acquisition_date", "exam_date", "study_date", "scan_date", "date")
_SIDE: Final = ("laterality", "breast_side", "side")


class HangingStep(StrEnum):
    """A step of the hanging protocol, in the order of reading."""

    MIP = "mip"
    BOTH = "both"
    SIDES = "sides"
    LATE = "late"
    PRIOR = "prior"

    @property
    def words(self) -> str:
        """A short description of the step."""
        return _TITLES[self]


_SHARES: Final = "moved shares"
"""JSON key of the view sizes that the user chose; those under the earlier key may be defaults."""

_TITLES: Final[dict[str, str]] = {
    "mip": "MIP of the first subtraction",
    "both": "Axial over right and left",
    "sides": "Right | left, pre over post",
    "late": "Late phase, map and curve",
    "prior": "Prior beside this exam",
}


@dataclass(frozen=True, slots=True)
class PhaseRoles:
    """The phases of a case by role, or None without such a phase.

    `why_late` explains why there is no late phase.
    """

    pre: int
    first: int | None
    late: int | None
    why_late: str = ""


@dataclass(frozen=True, slots=True)
class HangingPlan:
    """The steps of a case, with an explanation for each step that is not possible."""

    steps: tuple[HangingStep, ...]
    left_out: tuple[tuple[HangingStep, str], ...]
    roles: PhaseRoles


@dataclass(frozen=True, slots=True)
class HangingSettings:
    """A reader's hanging settings: unwanted steps, and each step's window/level and main view size.

    `shares` holds the percentage of the space that the main view takes, from 10 to 90.
    """

    unwanted: frozenset[HangingStep] = frozenset()
    grey: Mapping[HangingStep, str] = field(default_factory=dict)
    shares: Mapping[HangingStep, int] = field(default_factory=dict)


# ----------------------------------------------------------------------- phases


def find_roles(case: Case) -> PhaseRoles:
    """Return the last phase before contrast, the first phase after contrast, and the late phase."""
    n_phases = len(case.phases)
    pre = min(max(case.n_before, 1), n_phases) - 1
    if pre + 1 >= n_phases:
        return PhaseRoles(pre, None, None, "it has no phase after contrast")
    try:
        choice = choose_curve_phases(case.times_s, rule_of(case))
    except CaseError as error:
        return PhaseRoles(pre, pre + 1, None, str(error))
    late = choice.late if choice.late is not None and choice.late > pre + 1 else None
    why = "" if late is not None else choice.reason or "it has no phase after the first one"
    return PhaseRoles(pre, pre + 1, late, why)


def plan_hanging(
    case: Case, has_prior: bool, unwanted: frozenset[HangingStep] = frozenset()
) -> HangingPlan:
    """Return the steps of a case; `unwanted` steps are omitted without an explanation.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_mamamia.core.case import Phase
    >>> grid = Grid((4, 5, 6), np.eye(4))
    >>> one = Case("A", grid, np.zeros((1, 4, 5, 6)), (Phase(0),))
    >>> plan_hanging(one, has_prior=True).steps
    (<HangingStep.PRIOR: 'prior'>,)
    """
    roles = find_roles(case)
    reasons = _find_reasons(case, roles, has_prior)
    wished = [step for step in HangingStep if step not in unwanted]
    steps = tuple(step for step in wished if not reasons[step])
    left_out = tuple((step, reasons[step]) for step in wished if reasons[step])
    return HangingPlan(steps, left_out, roles)


def _find_reasons(case: Case, roles: PhaseRoles, has_prior: bool) -> dict[HangingStep, str]:
    no_first = (
        "" if roles.first is not None else "there is only one phase, so nothing can be subtracted"
    )
    thin = "a single slice" if min(case.grid.shape) < 2 else ""
    one_side = "" if shows_both(case.grid) else "only one breast is imaged"
    return {
        HangingStep.MIP: no_first or thin,
        HangingStep.BOTH: no_first or thin or one_side,
        HangingStep.SIDES: no_first or one_side,
        HangingStep.LATE: ""
        if roles.late is not None
        else f"there is no late phase: {roles.why_late}",
        HangingStep.PRIOR: "" if has_prior else "no prior exam was found or chosen",
    }


# ------------------------------------------------------------------------ sides


def shows_both(grid: Grid) -> bool:
    """Return whether a volume is wide enough, from right to left, for two breasts."""
    return not math.isnan(midline_x_mm(grid))


def find_imaged_side(grid: Grid, record: CaseRecord | None = None) -> str:
    """Return "both", "right", "left", or "" if one breast of unknown side is imaged.

    The entry in the clinical table decides. Without an entry, the side is determined from the
    position of the volume's centre relative to the scanner's centre, if the two centres are far
    enough apart.
    """
    if shows_both(grid):
        return "both"
    word = _read_cell(record, _SIDE).lower()
    for side in (RIGHT, LEFT):
        if word in (side, side[0]):
            return side
    middle = [(n - 1) / 2 for n in grid.shape]
    x = float(grid.to_world_mm(middle)[0])
    if abs(x) < _OFF_CENTRE_MM:
        return ""
    return RIGHT if x > 0 else LEFT  # In RAS, x increases towards the patient's right.


# ------------------------------------------------------------------------ prior


@dataclass(frozen=True, slots=True)
class PriorChoice:
    """An exam that can be shown next to a case as its prior, and how the exam was found."""

    case_id: str
    why: str


def find_priors(records: Sequence[CaseRecord], case_id: str) -> tuple[PriorChoice, ...]:
    """Return the patient's earlier exams according to the clinical table, newest first.

    If the exam or the case has no date, the exam comes last, with a note. Later exams are not
    included. The result is empty if the table does not name the patient.
    """
    by_id = {record.case_id: record for record in records}
    record_now = by_id.get(case_id)
    patient = _read_cell(record_now, _PATIENT)
    if not patient:
        return ()
    day = read_date(_read_cell(record_now, _DATE))
    earlier: list[tuple[date, str]] = []
    undated: list[str] = []
    for record in records:
        if record.case_id == case_id or _read_cell(record, _PATIENT) != patient:
            continue
        other_day = read_date(_read_cell(record, _DATE))
        if day is None or other_day is None:
            undated.append(record.case_id)
        elif other_day < day:
            earlier.append((other_day, record.case_id))
    earlier.sort(reverse=True)
    dated = [PriorChoice(name, _count_days((day - before).days)) for before, name in earlier if day]
    return (*dated, *(PriorChoice(name, "same patient, order unknown") for name in undated))


def refuse_prior(
    grid: Grid, record: CaseRecord | None, prior: Grid, prior_record: CaseRecord | None
) -> str:
    """Return why an exam cannot be shown as the prior of a case, or "" if it can be shown."""
    patients = (_read_cell(record, _PATIENT), _read_cell(prior_record, _PATIENT))
    if all(patients) and patients[0] != patients[1]:
        return "the clinical table names a different patient"
    sides = find_imaged_side(grid, record), find_imaged_side(prior, prior_record)
    if set(sides) == {RIGHT, LEFT}:
        return f"the exam shows the {sides[1]} breast, but the case shows the {sides[0]} breast"
    return ""


def read_date(text: str) -> date | None:
    """Return the date in a cell such as 2024-05-01, 20240501 or 2024/05/01, or None.

    Examples
    --------
    >>> read_date("20240501"), read_date("2024-05-01 00:00:00"), read_date("1.5.2024")
    (datetime.date(2024, 5, 1), datetime.date(2024, 5, 1), None)
    """
    match = re.match(r"^(\d{4})[-/]?(\d{2})[-/]?(\d{2})(?!\d)", text)
    if match is None:
        return None
    try:
        return date(*(int(group) for group in match.groups()))
    except ValueError:
        return None


def _count_days(days: int) -> str:
    return f"{days} day{'' if days == 1 else 's'} before"


def _read_cell(record: CaseRecord | None, names: Sequence[str]) -> str:
    if record is None:
        return ""
    cells = {str(name).strip().lower(): value for name, value in record.other.items()}
    for name in names:
        value = cells.get(name)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if value is not None and str(value).strip():
            return str(value).strip()
    return ""


# ----------------------------------------------------------------------- wishes


def read_hanging_settings(text: str) -> HangingSettings:
    """Return the readable part of settings written by `write_hanging_settings`."""
    try:
        content = json.loads(text or "{}")
    except ValueError:
        return HangingSettings()
    if not isinstance(content, dict):
        return HangingSettings()
    unwanted = content.get("unwanted")
    names = unwanted if isinstance(unwanted, list) else []
    shares = {
        step: int(share)
        for step, share in _list_by_step(content.get(_SHARES))
        if isinstance(share, int) and 10 <= share <= 90
    }
    grey = {step: name for step, name in _list_by_step(content.get("grey")) if name}
    steps = frozenset(HangingStep(name) for name in names if name in set(HangingStep))
    return HangingSettings(steps, {step: str(name) for step, name in grey.items()}, shares)


def write_hanging_settings(settings: HangingSettings) -> str:
    """Return settings as one line of JSON."""
    return json.dumps(
        {
            "unwanted": sorted(settings.unwanted),
            "grey": dict(settings.grey),
            _SHARES: dict(settings.shares),
        }
    )


def wish_grey(settings: HangingSettings, step: HangingStep, name: str) -> HangingSettings:
    """Return the settings with a new window/level for a step."""
    return replace(settings, grey={**settings.grey, step: name})


def wish_share(settings: HangingSettings, step: HangingStep, share: int) -> HangingSettings:
    """Return the settings with a new size of the main view, in percent, for a step."""
    return replace(settings, shares={**settings.shares, step: min(max(share, 10), 90)})


def wish_step(settings: HangingSettings, step: HangingStep, wanted: bool) -> HangingSettings:
    """Return the settings with a step turned on or off."""
    others = settings.unwanted - {step}
    return replace(settings, unwanted=others if wanted else others | {step})


def _list_by_step(content: object) -> list[tuple[HangingStep, Any]]:
    pairs = content.items() if isinstance(content, dict) else ()
    return [(HangingStep(name), value) for name, value in pairs if name in set(HangingStep)]

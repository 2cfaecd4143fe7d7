"""The frozen plan of a review study: cases, readers with roles, rules and assigned readings.

The plan never changes after the study has begun; everything later is recorded as an event, see
`features/review/rules`.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeVar

from napari_mamamia.core.blinding import NOT_BLIND, Blinding, Hidden
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.names import count_of

T = TypeVar("T")

LEASE_S: Final = 1800
"""Seconds without activity after which a reader's claim on a case expires (our choice)."""


class Role(StrEnum):
    """The role of a person in a study; the values appear in files and in the window."""

    LEAD = "lead"
    READER = "reader"
    ADJUDICATOR = "adjudicator"


JUDGES: Final = frozenset({Role.ADJUDICATOR, Role.LEAD})
"""Roles that allow a person to adjudicate."""


class ReadingMode(StrEnum):
    """How many readers read a case, and in what order; see `docs/methods/review.md`.

    INDEPENDENT and PANEL: several readers, each alone; in a panel every case is adjudicated.
    SECOND_LOOK: the second reader sees the first reader's mask. ARBITRATION: two readers, and an
    adjudicator if they disagree.
    """

    INDEPENDENT = "independent"
    SECOND_LOOK = "second-look"
    ARBITRATION = "arbitration"
    PANEL = "panel"

    @property
    def n_fixed(self) -> int | None:
        """Return the number of readings per case if the mode fixes this number, otherwise None."""
        return 2 if self in (ReadingMode.SECOND_LOOK, ReadingMode.ARBITRATION) else None


class ConsensusRule(StrEnum):
    """The rule that combines readings into one mask; names of majority rules say how ties count."""

    MAJORITY_BACKGROUND = "majority-background"
    MAJORITY_FOREGROUND = "majority-foreground"
    MAJORITY_THIRD = "majority-third-reader"
    UNION = "union"
    INTERSECTION = "intersection"
    STAPLE = "staple"


class ReviewFormat(StrEnum):
    """An export format for a study; each format is written to its own folder."""

    MASKS = "masks"
    ANSWERS = "answers"
    MRMC = "mrmc"
    MONAI_LABEL = "monai-label"
    GRAND_CHALLENGE = "grand-challenge"
    EVENTS = "events"


class Meaning(StrEnum):
    """The meaning of a signature. Source: 21 CFR 11.50(a)(3)."""

    AUTHOR = "author"
    REVIEWER = "reviewer"
    APPROVER = "approver"


@dataclass(frozen=True, slots=True)
class FilePrint:
    """A file, identified by its relative POSIX path and the SHA-256 of its bytes."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class StudyCase:
    """A case of a study.

    `key` identifies the case in events and file names, because a case id may contain characters
    that are not allowed in a file name. `site` is the origin of the images according to the data
    set, or "" if unknown. `patient`, `visit` and `side` come from the data set, or are "" if the
    folder layout does not state them.
    """

    key: str
    case_id: str
    images: tuple[FilePrint, ...] = ()
    site: str = ""
    patient: str = ""
    visit: str = ""
    side: str = ""

    @property
    def exam(self) -> tuple[str, str, str]:
        """Return the patient, visit and side, for use as table cells."""
        return self.patient, self.visit, self.side


@dataclass(frozen=True, slots=True)
class StudyReader:
    """A reader: `reader_id` is permanent and names folders, and `name` is the displayed name."""

    reader_id: str
    name: str
    roles: tuple[Role, ...] = (Role.READER,)

    @property
    def is_judge(self) -> bool:
        """Return whether this person may adjudicate."""
        return not JUDGES.isdisjoint(self.roles)


@dataclass(frozen=True, slots=True)
class Task:
    """A reading assigned to a reader; `occasion` is 1 for a hidden repeat, otherwise 0."""

    reader: str
    case: str
    occasion: int = 0


@dataclass(frozen=True, slots=True)
class Triggers:
    """The criteria by which two readings disagree; a criterion set to None is not used.

    Parameters
    ----------
    dice_below
        Readings disagree if the Dice of their masks is below this value.
    volume_ratio
        Readings disagree if the larger volume divided by the smaller is above this value.
    hd95_mm
        Readings disagree if the 95 % Hausdorff distance is above this value, in mm.
    lesion_count, category
        Whether a different number of lesions, or a different answer to a category question, counts
        as disagreement.
    """

    dice_below: float | None = 0.7
    volume_ratio: float | None = 1.5
    hd95_mm: float | None = 10.0
    lesion_count: bool = True
    category: bool = True


@dataclass(frozen=True, slots=True)
class LeadKey:
    """A lead's public key (Ed25519, 64 hexadecimal digits), stored in the study file."""

    reader: str
    key: str


@dataclass(frozen=True, slots=True)
class Honeypots:
    """Control cases with known truth; only a separate list of the lead names these cases.

    `sha256` is the digest of the lead's list, so that the list cannot be changed afterwards.
    """

    count: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """Settings that the lead chooses before cases are assigned.

    Parameters
    ----------
    n_readers
        Number of readings per case.
    repeat_share
        Fraction of each reader's cases that are read a second time, 0 to 0.5.
    lease_s
        Seconds for which a claim is valid without activity of its holder.
    """

    name: str
    mode: ReadingMode = ReadingMode.INDEPENDENT
    n_readers: int = 2
    blinding: Blinding = NOT_BLIND
    consensus: ConsensusRule = ConsensusRule.MAJORITY_BACKGROUND
    triggers: Triggers = Triggers()
    repeat_share: float = 0.0
    seed: int = 0
    lease_s: int = LEASE_S

    def __post_init__(self) -> None:
        fixed = self.mode.n_fixed
        if self.n_readers < 1 or (fixed is not None and self.n_readers != fixed):
            raise CaseError(
                f"expected {count_of(fixed, 'reading') if fixed else '1 or more readings'} of a "
                f"case in mode {self.mode}, but found {self.n_readers}: leave out the number, or "
                "choose the mode independent"
            )
        if not 0 <= self.repeat_share <= 0.5:
            raise CaseError(
                "expected the proportion of hidden repeats to be from 0 to 0.5, but it is "
                f"{self.repeat_share:g}: enter 0.05 for one case in twenty"
            )


@dataclass(frozen=True, slots=True)
class Study:
    """The content of a study file; `tasks` lists each reader's tasks in reading order.

    `data_set` is the folder that contained the images when the study was created. `files` lists
    further files that are frozen with the study file, such as the protocol.
    """

    study_id: str
    created: str
    software: str
    data_set: str
    plan: StudyPlan
    cases: tuple[StudyCase, ...]
    readers: tuple[StudyReader, ...]
    tasks: tuple[Task, ...] = ()
    honeypots: Honeypots = Honeypots()
    files: tuple[FilePrint, ...] = ()
    lead_keys: tuple[LeadKey, ...] = ()

    def __post_init__(self) -> None:
        _require_distinct((case.key for case in self.cases), "key of a case")
        _require_distinct((case.case_id for case in self.cases), "case id")
        _require_distinct((reader.reader_id.casefold() for reader in self.readers), "reader")
        _require_distinct((reader.name.casefold() for reader in self.readers), "name of a reader")
        _require_distinct(
            ((task.reader, task.case, task.occasion) for task in self.tasks), "task of a reader"
        )
        if not any(Role.LEAD in reader.roles for reader in self.readers):
            raise CaseError(
                "expected a reader with the role lead, but found none: give one reader this role"
            )
        leads = {reader.reader_id for reader in self.readers if Role.LEAD in reader.roles}
        _require_distinct((lead_key.key for lead_key in self.lead_keys), "key of a lead")
        for one in self.lead_keys:
            if one.reader not in leads or not re.fullmatch(r"[0-9a-f]{64}", one.key):
                raise CaseError(
                    "expected a lead of the study and the 64 digits (0-9, a-f) of the lead's "
                    f"key, but found {one.reader!r} with {one.key!r}: check the name and the "
                    "digits"
                )
        cases = {case.key for case in self.cases}
        readers = {reader.reader_id for reader in self.readers if Role.READER in reader.roles}
        for task in self.tasks:
            if task.case not in cases or task.reader not in readers:
                raise CaseError(
                    "expected tasks only for the study's cases and readers, but found case "
                    f"{task.case} for {task.reader}: create the study again"
                )

    def case(self, key: str) -> StudyCase:
        """Return the case with a given key, or raise `CaseError`."""
        return _find_one((case for case in self.cases if case.key == key), "a case key", key)

    def case_of_id(self, case_id: str) -> StudyCase:
        """Return the case with a given id or pseudonym (see `number_of`), or raise `CaseError`."""
        by_id = [case for case in self.cases if case.case_id == case_id]
        by_number = [case for case in self.cases if self.number_of(case.key) == case_id]
        if self.hides_site and not by_id + by_number:
            raise CaseError(
                f"expected a case in the study, but found {case_id!r}: the site is hidden, so use "
                "the case numbers of the window, such as case-0001"
            )
        return _find_one(by_id or by_number, "a case", case_id)

    @property
    def hides_site(self) -> bool:
        """Return whether readers must not learn which site a case comes from."""
        return self.plan.blinding.hides(Hidden.SITE)

    def number_of(self, key: str) -> str:
        """Return the pseudonym of a case, a valid case id that does not reveal the site."""
        return f"case-{key.removeprefix('c')}"

    def signed_id(self, key: str) -> str:
        """Return the case name used in signatures, which is the same for everybody in the study."""
        return self.number_of(key) if self.hides_site else self.case(key).case_id

    @property
    def pseudonymized(self) -> "Study":
        """Return a copy without patients, sites and files, and with pseudonyms for case ids."""
        cases = (StudyCase(case.key, self.number_of(case.key)) for case in self.cases)
        return replace(self, cases=tuple(cases))

    def reader(self, reader_id: str) -> StudyReader:
        """Return the reader with a given id, or raise `CaseError`."""
        return _find_one(
            (reader for reader in self.readers if reader.reader_id == reader_id),
            "a reader",
            reader_id,
        )

    def tasks_of(self, reader_id: str) -> tuple[Task, ...]:
        """Return a reader's tasks in reading order."""
        return tuple(task for task in self.tasks if task.reader == reader_id)


def _find_one(found: Iterable[T], what: str, asked: str) -> T:
    for one in found:
        return one
    raise CaseError(f"expected {what} in the study, but found {asked!r}: check the spelling")


def _require_distinct(values: Iterable[object], what: str) -> None:
    every = list(values)
    if len(set(every)) < len(every):
        value, count = Counter(every).most_common(1)[0]
        raise CaseError(
            f"expected each {what} to be unique, but found {value!r} {count} times: make them "
            "different"
        )

"""The frozen plan of a review study: cases, readers with roles, rules, and assigned readings.

Everything that happens in it is an event, see `features/review/rules`; this record never changes
after the study has begun.
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
"""Seconds that a claim holds without activity of its holder: our choice, half an hour."""


class Role(StrEnum):
    """The rights of a person in a study; the value is the word in files and in the window."""

    LEAD = "lead"
    READER = "reader"
    ADJUDICATOR = "adjudicator"


class ReadingMode(StrEnum):
    """How often a case is read, and in which order; `docs/methods/review.md` has the full rules.

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
        """Readings of a case if the mode fixes them, else None."""
        return 2 if self in (ReadingMode.SECOND_LOOK, ReadingMode.ARBITRATION) else None


class ConsensusRule(StrEnum):
    """How readings are combined into one mask; the name says how a tie of a majority counts."""

    MAJORITY_BACKGROUND = "majority-background"
    MAJORITY_FOREGROUND = "majority-foreground"
    MAJORITY_THIRD = "majority-third-reader"
    UNION = "union"
    INTERSECTION = "intersection"
    STAPLE = "staple"


class ReviewFormat(StrEnum):
    """An export format of a study, each a folder of its own."""

    MASKS = "masks"
    ANSWERS = "answers"
    MRMC = "mrmc"
    MONAI_LABEL = "monai-label"
    GRAND_CHALLENGE = "grand-challenge"
    EVENTS = "events"


class Meaning(StrEnum):
    """What a signature means. Source: 21 CFR 11.50(a)(3)."""

    AUTHOR = "author"
    REVIEWER = "reviewer"
    APPROVER = "approver"


@dataclass(frozen=True, slots=True)
class FilePrint:
    """A file: its POSIX path below its folder, and the SHA-256 of its bytes."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class StudyCase:
    """A case: `key` is its name in events and files, whatever characters its id has.

    `site` is the origin of its images according to the data set; "" if unknown.
    """

    key: str
    case_id: str
    images: tuple[FilePrint, ...] = ()
    site: str = ""


@dataclass(frozen=True, slots=True)
class StudyReader:
    """A reader: `reader_id` names folders and never changes, `name` is the displayed name."""

    reader_id: str
    name: str
    roles: tuple[Role, ...] = (Role.READER,)


@dataclass(frozen=True, slots=True)
class Task:
    """A reading assigned to a reader; `occasion` 1 is the hidden repeat of 0."""

    reader: str
    case: str
    occasion: int = 0


@dataclass(frozen=True, slots=True)
class Triggers:
    """When two readings disagree: any of these criteria, None for one that is off.

    Parameters
    ----------
    dice_below
        Dice of the masks below this.
    volume_ratio
        Larger volume over smaller above this.
    hd95_mm
        95 % Hausdorff distance above this.
    lesion_count, category
        Another number of lesions; another answer to a question of categories.
    """

    dice_below: float | None = 0.7
    volume_ratio: float | None = 1.5
    hd95_mm: float | None = 10.0
    lesion_count: bool = True
    category: bool = True


@dataclass(frozen=True, slots=True)
class LeadKey:
    """The public key (Ed25519, 64 hexadecimal digits) of a lead, stored when the study was made."""

    reader: str
    key: str


@dataclass(frozen=True, slots=True)
class Honeypots:
    """Control cases with known truth among the others; only the lead's own list names them.

    `sha256` is the digest of that list, so that it cannot be changed afterwards.
    """

    count: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """Settings that the lead chooses before cases are assigned.

    Parameters
    ----------
    n_readers
        Readings of a case.
    repeat_share
        Share of each reader's cases that are read a second time, 0 to 0.5.
    lease_s
        Seconds that a claim holds without activity of its holder.
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
                f"case in mode {self.mode}, got {self.n_readers}: leave the number out, or choose "
                "the mode independent"
            )
        if not 0 <= self.repeat_share <= 0.5:
            raise CaseError(
                f"expected a share of hidden repeats from 0 to 0.5, got {self.repeat_share:g}: "
                "give 0.05 for one case in twenty"
            )


@dataclass(frozen=True, slots=True)
class Study:
    """A study as its file holds it; `tasks` are in the order in which each reader gets them.

    `data_set` is the folder of the images when it was made, `files` are the files that are frozen
    with the study file, such as the protocol.
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
                "expected a reader with the role lead, got none: give one reader this role"
            )
        leads = {reader.reader_id for reader in self.readers if Role.LEAD in reader.roles}
        _require_distinct((lead_key.key for lead_key in self.lead_keys), "key of a lead")
        for one in self.lead_keys:
            if one.reader not in leads or not re.fullmatch(r"[0-9a-f]{64}", one.key):
                raise CaseError(
                    "expected a lead of the study and the 64 digits (0-9, a-f) of the lead's key, "
                    f"got {one.reader!r} with {one.key!r}: check both"
                )
        cases = {case.key for case in self.cases}
        readers = {reader.reader_id for reader in self.readers if Role.READER in reader.roles}
        for task in self.tasks:
            if task.case not in cases or task.reader not in readers:
                raise CaseError(
                    f"expected tasks of the study's cases and readers, got case {task.case} for "
                    f"{task.reader}: create the study again"
                )

    def case(self, key: str) -> StudyCase:
        """Return the case with a key, or raise `CaseError`."""
        return _find_one((case for case in self.cases if case.key == key), "a case key", key)

    def case_of_id(self, case_id: str) -> StudyCase:
        """Return the case with an id or a number (`number_of`), or raise `CaseError`."""
        by_id = [case for case in self.cases if case.case_id == case_id]
        by_number = [case for case in self.cases if self.number_of(case.key) == case_id]
        if self.hides_site and not by_id + by_number:
            raise CaseError(
                f"expected a case of the study, got {case_id!r}: the site is hidden, so cases are "
                "numbered here, such as case-0001, as the window shows them"
            )
        return _find_one(by_id or by_number, "a case", case_id)

    @property
    def hides_site(self) -> bool:
        """Whether readers must not learn the site of a case."""
        return self.plan.blinding.hides(Hidden.SITE)

    def number_of(self, key: str) -> str:
        """Return the case's name if its id would reveal the site; it is a valid case id."""
        return f"case-{key.removeprefix('c')}"

    def signed_id(self, key: str) -> str:
        """Return the name of a case in signatures: the same whether its id is known or hidden."""
        return self.number_of(key) if self.hides_site else self.case(key).case_id

    @property
    def pseudonymized(self) -> "Study":
        """Return a copy with a number in place of each case id, without sites and file names."""
        cases = (StudyCase(case.key, self.number_of(case.key)) for case in self.cases)
        return replace(self, cases=tuple(cases))

    def reader(self, reader_id: str) -> StudyReader:
        """Return the reader with an id, or raise `CaseError`."""
        return _find_one(
            (reader for reader in self.readers if reader.reader_id == reader_id),
            "a reader",
            reader_id,
        )

    def tasks_of(self, reader_id: str) -> tuple[Task, ...]:
        """Return the tasks of a reader, in order."""
        return tuple(task for task in self.tasks if task.reader == reader_id)


def _find_one(found: Iterable[T], what: str, asked: str) -> T:
    for one in found:
        return one
    raise CaseError(f"expected {what} of the study, got {asked!r}: check the spelling")


def _require_distinct(values: Iterable[object], what: str) -> None:
    every = list(values)
    if len(set(every)) < len(every):
        value, count = Counter(every).most_common(1)[0]
        raise CaseError(
            f"expected each {what} once, got {value!r} {count} times: give each its own"
        )

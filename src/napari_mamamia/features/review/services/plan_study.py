"""Draft a study from the settings in the window or terminal, and describe the draft."""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import CaseError, MamamiaError
from napari_mamamia.core.names import count_of
from napari_mamamia.features.review.core.review import (
    StudyPlan,
    Triggers,
)
from napari_mamamia.features.review.io.keys import make_lead_key
from napari_mamamia.features.review.io.share import Share
from napari_mamamia.features.review.io.study_file import read_case_list
from napari_mamamia.features.review.services.make_study import (
    StudyDraft,
    StudyPeople,
    draft_study,
    freeze_study,
    name_people,
    read_lead_keys,
)
from napari_mamamia.features.review.services.study_form import list_texts
from napari_mamamia.io.files.user_folders import review_folder
from napari_mamamia.services.case.data_set import OpenDataSet, open_data_set

_MOST_PAIRS: Final = 30
_USUAL: Final = Triggers()


class SetupError(CaseError):
    """Invalid settings of a study; `field` is the field of `StudySetup` to correct."""

    def __init__(self, text: str, field: str) -> None:
        super().__init__(text)
        self.field = field

    # pickle would call the class with a single argument
    def __reduce__(self) -> tuple[type["SetupError"], tuple[str, str]]:
        return type(self), (str(self), self.field)


@dataclass(frozen=True, slots=True)
class StudySetup:
    """Settings of a study from `mamamia review init` or the Review page.

    Parameters
    ----------
    data_set
        Folder of the data set, or None.
    plan
        Title and rules of the study.
    cases
        Ids, or patterns with ``*`` and ``?``; empty for every case of the data set.
    honeypots, protocol, order
        Files, or None. The order is a queue of quality control, in whose order everybody reads.
    """

    data_set: Path | None
    plan: StudyPlan
    people: StudyPeople
    cases: tuple[str, ...] = ()
    honeypots: Path | None = None
    protocol: Path | None = None
    order: Path | None = None


def plan_study(setup: StudySetup) -> StudyDraft:
    """Return the draft of a study; nothing is written.

    Raises
    ------
    SetupError
        If a field is missing, unknown, repeated or unreadable.
    """
    with _name_field("data_set"):
        if setup.data_set is None:  # not Path(), which means the current folder
            raise CaseError("expected a data set, but found an empty line: name its folder")
        data_set = Share(setup.data_set)
        opened = data_set.run(open_data_set)
    with _name_field("name"):
        if not setup.plan.name.strip():
            raise CaseError("expected a title, but found an empty line: type one")
    _check_people(setup)
    with _name_field("cases"):
        case_ids = choose_cases([case.case_id for case in opened.data_set.cases], setup.cases)
    with _name_field("honeypots"):
        pots = () if setup.honeypots is None else read_case_list(setup.honeypots)
        _require_pots(opened, case_ids, pots)
    for part, files in (("protocol", (setup.protocol, None)), ("order", (None, setup.order))):
        with _name_field(part):
            list_texts(*files)
    with _name_field("cases"):
        about = (case_ids, pots, setup.protocol, setup.order)
        return data_set.run(lambda _: draft_study(opened, setup.plan, setup.people, *about))


@dataclass(frozen=True, slots=True)
class FreezeSetup:
    """Folder of a new study, and the leads' keys to list in the study file.

    `key_of` names the lead whose key is made on this computer with `passphrase`; without a
    passphrase no key is made. `lead_keys` are the keys of other leads, see `read_lead_keys`.
    """

    folder: Path
    without_broken: bool = False
    key_of: str = ""
    passphrase: str = field(default="", repr=False)
    lead_keys: str = ""


def freeze_with_keys(draft: StudyDraft, setup: FreezeSetup) -> str:
    """Freeze a study with the keys of leads; return the SHA-256 of its file.

    Raises
    ------
    SetupError
        For errors of `freeze_study` (field `folder`), or an invalid key (field `lead_keys` or
        `passphrase`).
    """
    with _name_field("lead_keys"):
        keys = list(read_lead_keys(setup.lead_keys))
    with _name_field("passphrase"):
        if setup.passphrase:
            keys.append((setup.key_of, make_lead_key(review_folder(), setup.passphrase)))
    with _name_field("folder"):
        return freeze_study(
            draft, setup.folder, is_complete=not setup.without_broken, lead_keys=keys
        )


def list_case_ids(data_set: Path) -> tuple[str, ...]:
    """Return the ids of a data set's cases, including unreadable ones; raise `SetupError`."""
    with _name_field("data_set"):
        opened = Share(data_set).run(open_data_set)
        return tuple(case.case_id for case in opened.data_set.cases)


def choose_cases(case_ids: Sequence[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the ids that are named or match a pattern, in the order of the data set.

    A pattern that equals an id selects this case even if it contains wildcards; letter case
    matters. Without patterns the result is empty, which means all cases.

    Raises
    ------
    CaseError
        If a pattern matches nothing.

    Examples
    --------
    >>> choose_cases(("DUKE_1", "DUKE_2", "ISPY_1"), ("DUKE_*", "ISPY_1"))
    ('DUKE_1', 'DUKE_2', 'ISPY_1')
    """
    there = set(case_ids)
    chosen: set[str] = set()
    for pattern in patterns:
        fits = {pattern} & there or {
            case_identifier for case_identifier in case_ids if fnmatchcase(case_identifier, pattern)
        }
        if not fits:
            raise CaseError(
                f"expected cases of the data set, but {pattern!r} matches none of its "
                f"{len(case_ids)}: check the spelling; * stands for any letters"
            )
        chosen |= fits
    return tuple(case_identifier for case_identifier in case_ids if case_identifier in chosen)


def split_cases(text: str) -> tuple[str, ...]:
    """Return the ids and patterns in a comma-separated line.

    An id that contains a comma is quoted, as in a table (.csv).

    Examples
    --------
    >>> split_cases('DUKE_*, "one, two"')
    ('DUKE_*', 'one, two')
    """
    cells = next(csv.reader([text.replace("\n", " ")], skipinitialspace=True), [])
    return tuple(cell.strip() for cell in cells if cell.strip())


def join_cases(case_ids: Sequence[str]) -> str:
    """Return ids as a comma-separated line for `split_cases`."""
    marked = (f'"{case_identifier.replace(chr(34), chr(34) * 2)}"' for case_identifier in case_ids)
    pairs = zip(case_ids, marked, strict=True)
    return ", ".join(one if split_cases(one) == (one,) else mark for one, mark in pairs)


@contextmanager
def _name_field(field: str) -> Iterator[None]:
    """Convert errors of the block to a `SetupError` for a field."""
    try:
        yield
    except SetupError:
        raise
    except MamamiaError as error:
        raise SetupError(str(error), field) from error


def _check_people(setup: StudySetup) -> None:
    """Raise `SetupError` for an invalid line of names."""
    people = setup.people
    for role, names, word in (
        ("leads", people.leads, "a lead, who answers for the study"),
        ("readers", people.readers, "a reader of the cases"),
        ("adjudicators", people.adjudicators, ""),
    ):
        with _name_field(role):
            if word and not names:
                raise CaseError(f"expected {word}, but found nobody: type a name")
            name_people(StudyPeople(**{"leads": (), "readers": (), role: names}))
    with _name_field("readers"):
        if len(people.readers) < setup.plan.n_readers:
            raise CaseError(
                f"expected at least {setup.plan.n_readers} readers of each case, but found "
                f"{len(people.readers)}: name more, or ask for fewer readings of a case"
            )


def _require_pots(opened: OpenDataSet, case_ids: Sequence[str], pots: Sequence[str]) -> None:
    usable = {case.case_id for case in opened.data_set.cases if not case.problems}
    for pot in pots:
        if pot not in usable or (case_ids and pot not in case_ids):
            raise CaseError(
                f"expected honeypots among the cases of the study, but found {pot!r}: check the "
                "list"
            )


def describe_draft(draft: StudyDraft) -> tuple[str, ...]:
    """Return the assignment, the triggers and notes of a draft, as lines."""
    study, deal = draft.study, draft.deal
    names = {reader.reader_id: reader.name for reader in study.readers}
    loads, repeats = dict(deal.loads), dict(deal.n_repeats)
    lines = [count_of(len(study.cases), "case")]
    for one in study.readers:
        load, again = loads.get(one.reader_id), repeats.get(one.reader_id)
        has_repeats = f", {again} of them hidden repeats" if again else ""
        reads = "" if load is None else f": {count_of(load, 'reading')}{has_repeats}"
        lines.append(f"{one.name} ({', '.join(one.roles)}){reads}")
    if study.plan.n_readers > 1 and len(deal.pairs) <= _MOST_PAIRS:
        lines += [
            f"{names[a]} and {names[b]} share {count_of(count, 'case')}"
            for a, b, count in deal.pairs
        ]
    sites = Counter(case.site for case in study.cases if case.site)
    if sites:
        counts = ", ".join(f"{site} {count}" for site, count in sorted(sites.items()))
        lines.append(f"Sites: {counts}")
    if study.honeypots.count:
        lines.append(f"{count_of(study.honeypots.count, 'honeypot')} among them")
    lines += [study.plan.blinding.text or "Not blind", describe_triggers(study.plan.triggers)]
    return (*lines, *(f"Note: {note}" for note in (*draft.left_out, *draft.notes)))


def describe_triggers(triggers: Triggers) -> str:
    """Describe when two readings disagree.

    Examples
    --------
    >>> describe_triggers(Triggers(0.6, None, 12.5, False, True))
    'Readings disagree: Dice below 0.6, HD95 above 12.5 mm, another answer'
    """
    parts = [
        f"Dice below {triggers.dice_below:g}" if triggers.dice_below is not None else "",
        f"volume ratio above {triggers.volume_ratio:g}" if triggers.volume_ratio else "",
        f"HD95 above {triggers.hd95_mm:g} mm" if triggers.hd95_mm is not None else "",
        "other lesions" if triggers.lesion_count else "",
        "another answer" if triggers.category else "",
    ]
    words = ", ".join(part for part in parts if part)
    return f"Readings disagree: {words}" if words else "Readings never count as disagreeing"

"""Draft a study from settings (cases, people, tasks), and freeze it."""

import csv
import hashlib
import re
import secrets
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Final

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.errors import CaseError, MamamiaError, SaveConflictError
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.features.review.core import review
from napari_mamamia.features.review.io.keys import make_lead_key
from napari_mamamia.features.review.io.share import Share
from napari_mamamia.features.review.io.study_file import read_case_list, write_study
from napari_mamamia.features.review.rules.assignment import Deal, deal_cases
from napari_mamamia.features.review.rules.signatures import short_key
from napari_mamamia.features.review.services.look import list_texts, order_cases
from napari_mamamia.io.clinical.sites import find_site
from napari_mamamia.io.files.checksums import hash_text, sha256_of_large
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.files.user_folders import review_folder
from napari_mamamia.io.workspace.workspace import file_name
from napari_mamamia.services.case.data_set import OpenDataSet, open_data_set


@dataclass(frozen=True, slots=True)
class StudyPeople:
    """Names of people by role; one person may have several roles."""

    leads: tuple[str, ...]
    readers: tuple[str, ...]
    adjudicators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StudyDraft:
    """A study that can be inspected before it is frozen.

    `texts` holds the files to be frozen with the study, by name. `left_out` lists unreadable cases
    with reasons; freezing excludes these cases permanently.
    """

    study: review.Study
    deal: Deal
    notes: tuple[str, ...] = field(default=())
    texts: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    left_out: tuple[str, ...] = field(default=())


def draft_study(
    opened: OpenDataSet,
    plan: review.StudyPlan,
    people: StudyPeople,
    case_ids: Sequence[str] = (),
    honeypots: Sequence[str] = (),
    protocol: Path | None = None,
    order: Path | None = None,
) -> StudyDraft:
    """Draft a study, which reads the images of every case to compute their hashes.

    Parameters
    ----------
    opened
        The data set.
    plan
        Rules of the study.
    people
        Names by role.
    case_ids
        Ids of the cases; if empty, all cases that can be opened.
    honeypots
        Ids of cases with known truth; the study stores only their number and a hash.
    protocol
        The reading protocol with the form; frozen with the study.
    order
        The queue of quality control (``queue.json``), frozen with the study; every reader reads the
        cases in this order.

    Raises
    ------
    CaseError
        If a name or case is missing, unknown or occurs twice, or there are too few readers.
    FormatError
        If the protocol or the order is invalid.
    """
    texts = list_texts(protocol, order)
    if order is not None:
        case_ids = order_cases(order, case_ids)
    data_set = opened.data_set
    files = [data_set.case(case_identifier) for case_identifier in case_ids] or list(data_set.cases)
    usable = [file for file in files if not file.problems]
    left_out = [
        f"{file.case_id} is left out: {file.problems[0]}" for file in files if file.problems
    ]
    notes = []
    unknown = sorted(set(honeypots) - {one.case_id for one in usable})
    if unknown:
        raise CaseError(
            f"expected honeypots among the cases of the study, but found {unknown[0]!r}: check "
            "the list"
        )
    readers = name_people(people)
    cases = tuple(_print_cases(opened, usable, plan))
    ids = [reader.reader_id for reader in readers if review.Role.READER in reader.roles]
    keys = [case.key for case in cases]
    deal = deal_cases(plan, keys, ids, () if order is None else keys)
    if not deal.is_connected and plan.n_readers > 1:
        notes.append(
            "not all readers are connected by shared cases, so disagreement between readers "
            "cannot be separated from the difficulty of their cases; use more cases or fewer "
            "readers"
        )
    if plan.blinding.hides(Hidden.SITE) and not any(case.site for case in cases):
        notes.append(
            "the site is hidden, but the data set does not state the site of any case; cases are "
            "still named by numbers"
        )
    if sum(review.Role.LEAD in reader.roles for reader in readers) == 1:
        notes.append(
            "there is only one lead; add a second lead, who can help if a passphrase is forgotten"
        )
    study = review.Study(
        secrets.token_hex(8),
        now_utc(),
        software_version(),
        str(data_set.root.resolve()),
        plan,
        cases,
        readers,
        deal.tasks,
        hash_honeypots(honeypots),
        tuple(review.FilePrint(name, hash_text(text)) for name, text in texts),
    )
    return StudyDraft(study, deal, tuple(notes), texts, tuple(left_out))


def freeze_study(
    draft: StudyDraft,
    folder: Path,
    *,
    is_complete: bool = True,
    lead_keys: Iterable[tuple[str, str]] = (),
) -> str:
    """Write a study into a new or empty folder, and return the SHA-256 of the study file.

    Parameters
    ----------
    draft
        The study.
    folder
        The folder.
    is_complete
        Whether every case must be readable; if False, unreadable cases are left out.
    lead_keys
        (name, public key) of leads to be listed in the study file. If there are none, anybody who
        can write to the folder can pose as a lead.

    Raises
    ------
    CaseError
        If a case cannot be read and `is_complete` is True, a key is invalid, or its owner is not a
        lead.
    SaveConflictError
        If the folder is not empty.
    SaveError
        If the system does not allow writing.
    """
    if draft.left_out and is_complete:
        raise CaseError(
            "expected every case to be readable before the study is frozen, but "
            f"{len(draft.left_out)} cannot be read ({draft.left_out[0]}): repair the files, or "
            "freeze the study without these cases"
        )
    ids = {case_key(reader.name): reader.reader_id for reader in draft.study.readers}
    bound = tuple(
        review.LeadKey(ids.get(case_key(who.strip()), who), key) for who, key in lead_keys
    )
    study = replace(draft.study, lead_keys=bound)
    return Share(folder).run(partial(_write_frozen, draft.texts, study))


def _write_frozen(texts: Sequence[tuple[str, str]], study: review.Study, folder: Path) -> str:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SaveConflictError(
            f"expected a new or empty folder for the study, but {folder} is not empty: choose "
            "another folder"
        )
    for name, text in texts:
        write_text_atomically(folder / name, text)
    return write_study(folder, study)


def describe_bound(lead_keys: Sequence[tuple[str, str]]) -> str:
    """Say which leads' keys the study file lists, or what the risk is if it lists none."""
    if lead_keys:
        bound = "; ".join(f"{who}, {short_key(key)}" for who, key in lead_keys)
        return f"Keys of leads in study.json: {bound}"
    return (
        "study.json lists no key of a lead: anybody who can write to the folder can pass for a "
        "lead, and the verification will report it. Begin again with keys of leads, preferably of "
        "three."
    )


def read_lead_keys(text: str) -> tuple[tuple[str, str], ...]:
    """Parse names and public keys, such as "Lea = 3f…", separated by newlines or semicolons.

    Raises
    ------
    CaseError
        If a part is not a name, an equals sign and the 64 digits of a key.
    """
    pairs = []
    for part in filter(None, (one.strip() for one in re.split(r"[;\n]", text))):
        name, _, key = (one.strip() for one in part.rpartition("="))
        if not name or not re.fullmatch(r"[0-9a-f]{64}", key):
            raise CaseError(
                f"expected a lead's name, = and the 64 digits of a key, but found {part!r}: the "
                "lead's `mamamia review lead-key` prints the digits"
            )
        pairs.append((name, key))
    return tuple(pairs)


def name_people(people: StudyPeople) -> tuple[review.StudyReader, ...]:
    """Return one entry per person, with all roles and an id derived from the name.

    Names that differ only in letter case or Unicode normalisation denote one person.
    """
    roles: dict[str, list[review.Role]] = {}
    names: dict[str, str] = {}
    for role, given in (
        (review.Role.LEAD, people.leads),
        (review.Role.READER, people.readers),
        (review.Role.ADJUDICATOR, people.adjudicators),
    ):
        for name in given:
            shown = unicodedata.normalize("NFC", " ".join(name.split()))
            key = shown.casefold()
            if role in roles.setdefault(key, []):
                raise CaseError(
                    f"expected each {role} once, but found {name!r} twice: leave out one of them, "
                    "or distinguish two people with the same name by an initial"
                )
            roles[key].append(role)
            names.setdefault(key, shown)
    if any(not name for name in names.values()):
        raise CaseError("expected a name for everybody, but found an empty name: type all names")
    ids = _make_ids(names.values())
    return tuple(
        review.StudyReader(reader_id, name, tuple(roles[key]))
        for reader_id, (key, name) in zip(ids, names.items(), strict=True)
    )


def _make_ids(names: Iterable[str]) -> list[str]:
    ids: list[str] = []
    for number, name in enumerate(names, start=1):
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
        stem = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:32] or f"reader-{number}"
        taken = stem in ids
        ids.append(file_name(f"{stem}-{number}" if taken else stem, "the id of a reader"))
    return ids


def _print_cases(
    opened: OpenDataSet, files: Sequence[CaseFiles], plan: review.StudyPlan
) -> list[review.StudyCase]:
    root, cases = opened.data_set.root, []
    keys = [f"c{number:04d}" for number in range(1, len(files) + 1)]
    if plan.blinding.hides(Hidden.SITE):
        # not sorted by id, which would give the cases of a site consecutive numbers
        by_hash = sorted(
            files,
            key=lambda file: hashlib.sha256(f"{plan.seed}:{file.case_id}".encode()).hexdigest(),
        )
        numbers = {one.case_id: key for one, key in zip(by_hash, keys, strict=True)}
        keys = [numbers[file.case_id] for file in files]
    for number, one in enumerate(files, start=1):
        report_progress(number - 1, len(files), f"Checksums of {one.case_id}")
        paths = dict.fromkeys(path for phase in one.phases for path in phase.files)
        prints = tuple(
            review.FilePrint(relative_name(path, root), sha256_of_large(path)) for path in paths
        )
        site = find_site(one.case_id, opened.record(one.case_id))
        visit = one.visit.name if one.visit else ""
        case = review.StudyCase(
            keys[number - 1], one.case_id, prints, site, one.patient, visit, one.side
        )
        cases.append(case)
    report_progress(len(files), len(files), "Checksums")
    return cases


def relative_name(path: Path, root: Path) -> str:
    """Return a file's path relative to the data set, or only its name if it is elsewhere."""
    try:
        return path.relative_to(root).as_posix()
    except ValueError:
        return path.name


def hash_honeypots(case_ids: Sequence[str]) -> review.Honeypots:
    """Return the number of honeypots, and the SHA-256 of the list of their ids."""
    if not case_ids:
        return review.Honeypots()
    text = "\n".join(sorted(case_ids))
    return review.Honeypots(len(set(case_ids)), hashlib.sha256(text.encode()).hexdigest())


_MOST_PAIRS: Final = 30
_USUAL: Final = review.Triggers()


class SetupError(CaseError):
    """Error raised for invalid settings; `field` is the field of `StudySetup` to correct."""

    def __init__(self, text: str, field: str) -> None:
        super().__init__(text)
        self.field = field

    # pickle would call the class with a single argument
    def __reduce__(self) -> tuple[type["SetupError"], tuple[str, str]]:
        return type(self), (str(self), self.field)


@dataclass(frozen=True, slots=True)
class StudySetup:
    """Settings of a new study, entered in `mamamia review init` or on the Review page.

    Parameters
    ----------
    data_set
        Folder of the data set, or None.
    plan
        Title and rules of the study.
    cases
        Ids, or patterns with ``*`` and ``?``; empty for every case in the data set.
    honeypots, protocol, order
        Files, or None. `order` is a quality-control queue; every reader reads in its order.
    """

    data_set: Path | None
    plan: review.StudyPlan
    people: StudyPeople
    cases: tuple[str, ...] = ()
    honeypots: Path | None = None
    protocol: Path | None = None
    order: Path | None = None


def plan_study(setup: StudySetup) -> StudyDraft:
    """Draft a study from settings without writing any file.

    Raises
    ------
    SetupError
        If a field is missing, unknown, repeated or unreadable.
    """
    with _name_field("data_set"):
        if setup.data_set is None:  # not Path(), which means the current folder
            raise CaseError("expected a data set, but found an empty line: enter its folder")
        data_set = Share(setup.data_set)
        opened = data_set.run(open_data_set)
    with _name_field("name"):
        if not setup.plan.name.strip():
            raise CaseError("expected a title, but found an empty line: type a title")
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
    """The folder for a new study, and the leads' keys that the study file will list.

    `key_of` names the lead whose key is created on this computer with `passphrase`; if there is no
    passphrase, no key is created. `lead_keys` are the keys of other leads, see `read_lead_keys`.
    """

    folder: Path
    without_broken: bool = False
    key_of: str = ""
    passphrase: str = field(default="", repr=False)
    lead_keys: str = ""


def freeze_with_keys(draft: StudyDraft, setup: FreezeSetup) -> str:
    """Freeze a study with the keys of leads, and return the SHA-256 of the study file.

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
    """Return the case ids of a data set, including unreadable cases; may raise `SetupError`."""
    with _name_field("data_set"):
        opened = Share(data_set).run(open_data_set)
        return tuple(case.case_id for case in opened.data_set.cases)


def choose_cases(case_ids: Sequence[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the case ids that are named or match a pattern, in data-set order.

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
                f"{len(case_ids)}: check the spelling; * matches any letters"
            )
        chosen |= fits
    return tuple(case_identifier for case_identifier in case_ids if case_identifier in chosen)


def split_cases(text: str) -> tuple[str, ...]:
    """Split a comma-separated line into ids and patterns.

    An id that contains a comma is quoted, as in a table (.csv).

    Examples
    --------
    >>> split_cases('DUKE_*, "one, two"')
    ('DUKE_*', 'one, two')
    """
    cells = next(csv.reader([text.replace("\n", " ")], skipinitialspace=True), [])
    return tuple(cell.strip() for cell in cells if cell.strip())


def join_cases(case_ids: Sequence[str]) -> str:
    """Join ids into a comma-separated line, as read by `split_cases`."""
    marked = (f'"{case_identifier.replace(chr(34), chr(34) * 2)}"' for case_identifier in case_ids)
    pairs = zip(case_ids, marked, strict=True)
    return ", ".join(one if split_cases(one) == (one,) else mark for one, mark in pairs)


@contextmanager
def _name_field(field: str) -> Iterator[None]:
    try:
        yield
    except SetupError:
        raise
    except MamamiaError as error:
        raise SetupError(str(error), field) from error


def _check_people(setup: StudySetup) -> None:
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
                f"{len(people.readers)}: add readers, or request fewer readings per case"
            )


def _require_pots(opened: OpenDataSet, case_ids: Sequence[str], pots: Sequence[str]) -> None:
    by_id = opened.data_set.by_id()
    for pot in pots:
        if pot not in by_id or by_id[pot].problems or (case_ids and pot not in case_ids):
            raise CaseError(
                f"expected honeypots among the cases of the study, but found {pot!r}: check the "
                "list"
            )


def describe_draft(draft: StudyDraft) -> tuple[str, ...]:
    """Describe the assignment, triggers and notes of a draft, as lines of text."""
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


def describe_triggers(triggers: review.Triggers) -> str:
    """Describe the criteria by which two readings disagree.

    Examples
    --------
    >>> describe_triggers(review.Triggers(0.6, None, 12.5, False, True))
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

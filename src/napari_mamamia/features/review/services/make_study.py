"""A new study: cases with their hashes, people and roles, who reads what; shown, then frozen."""

import hashlib
import re
import secrets
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.errors import CaseError, SaveConflictError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.features.review.core.review import (
    FilePrint,
    Honeypots,
    LeadKey,
    Role,
    Study,
    StudyCase,
    StudyPlan,
    StudyReader,
)
from napari_mamamia.features.review.io.share import Share
from napari_mamamia.features.review.io.study_file import write_study
from napari_mamamia.features.review.rules.assignment import Deal, deal_cases
from napari_mamamia.features.review.rules.signatures import short_key
from napari_mamamia.features.review.services.study_form import hash_text, list_texts, order_cases
from napari_mamamia.io.clinical.sites import find_site
from napari_mamamia.io.files.checksums import sha256_of_large
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.workspace.workspace import file_name
from napari_mamamia.services.case.data_set import OpenDataSet


@dataclass(frozen=True, slots=True)
class StudyPeople:
    """Names by role; one name may stand in several."""

    leads: tuple[str, ...]
    readers: tuple[str, ...]
    adjudicators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StudyDraft:
    """A study before it is frozen: what to look at first.

    `texts` are the files that will lie beside the study's, by name. `left_out` are cases that
    cannot be read, with the reason: a file that fails for a moment would be out for ever.
    """

    study: Study
    deal: Deal
    notes: tuple[str, ...] = field(default=())
    texts: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    left_out: tuple[str, ...] = field(default=())


def draft_study(
    opened: OpenDataSet,
    plan: StudyPlan,
    people: StudyPeople,
    case_ids: Sequence[str] = (),
    honeypots: Sequence[str] = (),
    protocol: Path | None = None,
    order: Path | None = None,
) -> StudyDraft:
    """Return a study as it would be; the images of every case are read for their hashes.

    Parameters
    ----------
    case_ids
        Of the cases; none for all that can be opened.
    honeypots
        Ids of cases of known truth among them; the study keeps their number and a hash alone.
    protocol
        What readers go by, with the form; frozen with the study.
    order
        The queue of quality control (``queue.json``): its cases, to every reader in its order;
        frozen with the study.

    Raises
    ------
    CaseError
        If a name or case is missing, unknown or there twice, or there are too few readers.
    FormatError
        If the protocol or the order is none.
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
            f"expected honeypots among the cases of the study, got {unknown[0]!r}: check the list"
        )
    readers = name_people(people)
    cases = tuple(_print_cases(opened, usable, plan))
    ids = [reader.reader_id for reader in readers if Role.READER in reader.roles]
    keys = [case.key for case in cases]
    deal = deal_cases(plan, keys, ids, () if order is None else keys)
    if not deal.is_connected and plan.n_readers > 1:
        notes.append(
            "not all readers are connected by cases that they share: agreement cannot be told "
            "from the difficulty of the cases; take more cases or fewer readers"
        )
    if plan.blinding.hides(Hidden.SITE) and not any(case.site for case in cases):
        notes.append(
            "the site is hidden, and the data set says of no case where it comes from: cases go by "
            "numbers all the same"
        )
    if sum(Role.LEAD in reader.roles for reader in readers) == 1:
        notes.append("there is one lead: name a second, who can help if a passphrase is forgotten")
    study = Study(
        secrets.token_hex(8),
        now_utc(),
        software_version(),
        str(data_set.root.resolve()),
        plan,
        cases,
        readers,
        deal.tasks,
        hash_honeypots(honeypots),
        tuple(FilePrint(name, hash_text(text)) for name, text in texts),
    )
    return StudyDraft(study, deal, tuple(notes), texts, tuple(left_out))


def freeze_study(
    draft: StudyDraft,
    folder: Path,
    *,
    is_complete: bool = True,
    lead_keys: Iterable[tuple[str, str]] = (),
) -> str:
    """Write a study into a new or empty folder; return the SHA-256 of its file.

    Parameters
    ----------
    lead_keys
        Leads by name, each with the public key that the study's file binds; without any, whoever
        can write in the folder can pass for a lead.
    is_complete
        Whether every case must be there; False freezes without those that cannot be read.

    Raises
    ------
    CaseError
        If a case cannot be read and every one must be there, or a key is none or no lead's.
    SaveConflictError
        If there is something in the folder.
    SaveError
        If the system refuses.
    """
    if draft.left_out and is_complete:
        raise CaseError(
            f"expected to read every case before the study is frozen, but {len(draft.left_out)} "
            f"cannot be ({draft.left_out[0]}): mend the files, or freeze without them on purpose"
        )
    ids = {case_key(reader.name): reader.reader_id for reader in draft.study.readers}
    bound = tuple(LeadKey(ids.get(case_key(who.strip()), who), key) for who, key in lead_keys)
    study = replace(draft.study, lead_keys=bound)
    return Share(folder).run(partial(_write_frozen, draft.texts, study))


def _write_frozen(texts: Sequence[tuple[str, str]], study: Study, folder: Path) -> str:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SaveConflictError(
            f"expected a new or empty folder for the study, got {folder}, which holds something: "
            "name another folder"
        )
    for name, text in texts:
        write_text_atomically(folder / name, text)
    return write_study(folder, study)


def describe_bound(lead_keys: Sequence[tuple[str, str]]) -> str:
    """Return whose keys a study's file binds, in words, or what it cannot prove without."""
    if lead_keys:
        bound = "; ".join(f"{who}, {short_key(key)}" for who, key in lead_keys)
        return f"Bound keys of leads: {bound}"
    return (
        "No lead's key is bound: whoever can write in the folder can pass for a lead, and the "
        "verification will report it. Begin anew with the keys of leads, better of three."
    )


def read_lead_keys(text: str) -> tuple[tuple[str, str], ...]:
    """Return names and public keys of lines, or parts between semicolons, such as "Lea = 3f…".

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
                f"expected a lead's name, = and the 64 digits of a key, got {part!r}: the lead's "
                "`mamamia review lead-key` prints them"
            )
        pairs.append((name, key))
    return tuple(pairs)


def name_people(people: StudyPeople) -> tuple[StudyReader, ...]:
    """Return every person once, with all roles and an id made of the name.

    Names that differ in letter case or in how accents are stored are one person.
    """
    roles: dict[str, list[Role]] = {}
    names: dict[str, str] = {}
    for role, given in (
        (Role.LEAD, people.leads),
        (Role.READER, people.readers),
        (Role.ADJUDICATOR, people.adjudicators),
    ):
        for name in given:
            shown = unicodedata.normalize("NFC", " ".join(name.split()))
            key = shown.casefold()
            if role in roles.setdefault(key, []):
                raise CaseError(
                    f"expected each {role} once, got {name!r} twice: leave one out, or tell two "
                    "people of one name apart by an initial"
                )
            roles[key].append(role)
            names.setdefault(key, shown)
    if any(not name for name in names.values()):
        raise CaseError("expected a name for everybody, got an empty one: type names")
    ids = _make_ids(names.values())
    return tuple(
        StudyReader(reader_id, name, tuple(roles[key]))
        for reader_id, (key, name) in zip(ids, names.items(), strict=True)
    )


def _make_ids(names: Iterable[str]) -> list[str]:
    """Return a short id of plain letters for each name, all different in any letter case."""
    ids: list[str] = []
    for number, name in enumerate(names, start=1):
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
        stem = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:32] or f"reader-{number}"
        taken = stem in ids
        ids.append(file_name(f"{stem}-{number}" if taken else stem, "the id of a reader"))
    return ids


def _print_cases(
    opened: OpenDataSet, files: Sequence[CaseFiles], plan: StudyPlan
) -> list[StudyCase]:
    root, cases = opened.data_set.root, []
    keys = [f"c{number:04d}" for number in range(1, len(files) + 1)]
    if plan.blinding.hides(Hidden.SITE):
        # In the order of the ids those of a site would have neighbouring numbers.
        by_hash = sorted(files, key=lambda file: _hash_seeded(plan.seed, file.case_id))
        numbers = {one.case_id: key for one, key in zip(by_hash, keys, strict=True)}
        keys = [numbers[file.case_id] for file in files]
    for number, one in enumerate(files, start=1):
        report_progress(number - 1, len(files), f"Checksums of {one.case_id}")
        paths = dict.fromkeys(path for phase in one.phases for path in phase.files)
        prints = tuple(FilePrint(name_below(path, root), sha256_of_large(path)) for path in paths)
        site = find_site(one.case_id, opened.record(one.case_id))
        cases.append(StudyCase(keys[number - 1], one.case_id, prints, site))
    report_progress(len(files), len(files), "Checksums")
    return cases


def _hash_seeded(seed: int, case_id: str) -> str:
    return hashlib.sha256(f"{seed}:{case_id}".encode()).hexdigest()


def name_below(path: Path, root: Path) -> str:
    """Return a file's path below the data set, its name where it lies elsewhere."""
    try:
        return path.relative_to(root).as_posix()
    except ValueError:
        return path.name


def hash_honeypots(case_ids: Sequence[str]) -> Honeypots:
    """Return what a study file keeps of a list of honeypots: how many, and its SHA-256."""
    if not case_ids:
        return Honeypots()
    text = "\n".join(sorted(case_ids))
    return Honeypots(len(set(case_ids)), hashlib.sha256(text.encode()).hexdigest())

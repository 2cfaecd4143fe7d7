"""A study's accepted masks, also written as a folder of reference masks."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.errors import CaseError, FormatError, MamamiaError, SaveError, is_refused
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import InputFile, Maker, Provenance, Setting
from napari_mamamia.features.review.io.store import EventStore
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.rules.states import CaseState, CaseView, Decision
from napari_mamamia.features.review.services.agreement.agree import LeftOut
from napari_mamamia.features.review.services.compare import load_stored_labels
from napari_mamamia.features.review.services.look import read_whole, replay_reading
from napari_mamamia.io.data_set.volumes import read_labels, write_labels
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.io.files.save import saving
from napari_mamamia.io.workspace.provenance import sidecar_path, write_provenance
from napari_mamamia.io.workspace.workspace import MASK_SUFFIX, file_name


@dataclass(frozen=True, slots=True)
class AcceptedCase:
    """An accepted case, with the stem of its file names."""

    case_id: str
    stem: str
    view: CaseView
    decision: Decision

    @property
    def is_signed(self) -> bool:
        """Return whether a reviewer or approver has validly signed the case."""
        return self.view.state is CaseState.SIGNED


@dataclass(frozen=True, slots=True)
class AcceptedCases:
    """The accepted cases, and all other cases with the reason why they are not accepted.

    `conflicts` lists those of the other cases that have an unresolved conflict.
    """

    cases: tuple[AcceptedCase, ...]
    others: tuple[LeftOut, ...] = ()
    conflicts: tuple[LeftOut, ...] = ()


def list_accepted(state: ReviewState) -> AcceptedCases:
    """Return the accepted cases of a study; a case with an open conflict is not accepted."""
    stems = name_files(state)
    cases: list[AcceptedCase] = []
    others: list[LeftOut] = []
    conflicts: list[LeftOut] = []
    for view in state.cases:
        case_id = state.study.case(view.key).case_id
        if view.conflicts:
            conflicts.append(LeftOut(case_id, "conflict", "; ".join(view.conflicts)))
        elif view.decision is None or view.state not in (CaseState.ACCEPTED, CaseState.SIGNED):
            is_rejected = view.decision is not None and view.state is CaseState.REJECTED
            why = f": {view.decision.reason}" if view.decision and is_rejected else ""
            others.append(LeftOut(case_id, "not accepted", f"it is {view.state}{why}"))
        else:
            cases.append(AcceptedCase(case_id, stems[view.key], view, view.decision))
    return AcceptedCases(tuple(cases), tuple(others), tuple(conflicts))


def name_files(state: ReviewState) -> dict[str, str]:
    """Return the stem of the file names for each case key.

    The stem is the case id. It is the key instead if the id is not a valid file name, or differs
    from another id only in letter case, which some file systems ignore.
    """
    counts: dict[str, int] = {}
    for case in state.study.cases:
        counts[case_key(case.case_id)] = counts.get(case_key(case.case_id), 0) + 1
    stems = {}
    for case in state.study.cases:
        try:
            stem = file_name(case.case_id)
        except CaseError:
            stem = case.key
        is_alone = counts[case_key(case.case_id)] == 1 and case_key(stem) == case_key(case.case_id)
        stems[case.key] = stem if is_alone else case.key
    return stems


def write_accepted(store: EventStore, case: AcceptedCase, folder: Path, state: ReviewState) -> Path:
    """Write an accepted mask as ``STEM.nii.gz`` with its provenance, and return its path.

    The file is a byte-for-byte copy of the mask in the store. If the accepted result is "no
    lesion", the mask is empty and has the grid of any reading of the case.

    Raises
    ------
    FormatError
        If the mask is missing, changed or invalid, or no reading provides a grid for an empty mask.
    SaveConflictError, SaveError
        If the file exists, or the system does not allow writing.
    """
    path = folder / f"{case.stem}{MASK_SUFFIX}"
    write_study_mask(store, case.view, case.decision.mask, path)
    write_provenance(_describe_mask(case, state, store.origin), sidecar_path(path))
    return path


def write_study_mask(store: EventStore, view: CaseView, digest: str, path: Path) -> None:
    """Write a stored mask; if `digest` is "", write an empty mask on the grid of a reading.

    Raises
    ------
    FormatError, SaveConflictError, SaveError
        See `write_accepted`.
    """
    if not digest:
        write_labels(_make_blank(store, view), path)
        return
    content = store.get_mask(digest)
    with saving(path) as temporary:
        temporary.write_bytes(content)
    if sha256_of(path) != digest:
        raise SaveError(
            f"expected {path} to contain what was written, but it differs: try a different disk"
        )
    read_labels(path)


def _make_blank(store: EventStore, view: CaseView) -> LabelMap:
    for reading in (*view.readings, *view.earlier):
        try:
            labels = load_stored_labels(store, reading.mask)
        except MamamiaError:
            continue
        if labels is not None:
            return LabelMap(labels.grid, Box.empty(), np.zeros((0, 0, 0), np.uint8))
    raise FormatError(
        "an empty mask needs the grid of a reader's mask, but no reader has a mask: write an "
        "empty mask of this case by hand"
    )


def _describe_mask(case: AcceptedCase, state: ReviewState, origin: str) -> Provenance:
    decision = case.decision
    parents = decision.parents or ((decision.mask,) if decision.mask else ())
    signatures = [
        (
            f"signature {number}",
            f"{signature.name}, {signature.meaning}, {signature.at}, event {signature.hash}",
        )
        for number, signature in enumerate(case.view.signatures, start=1)
        if signature.counts
    ]
    parameters: tuple[tuple[str, Setting], ...] = (
        ("study", state.study.study_id),
        ("study_sha256", origin),
        ("case_key", case.view.key),
        ("round", case.view.round),
        ("act", str(decision.act)),
        ("choice", decision.choice),
        ("reason", decision.reason or None),
        ("decided_by", decision.reader),
        ("event", decision.hash),
        *((f"consensus {name}", text) for name, text in decision.how),
        *signatures,
    )
    return Provenance(
        case.case_id,
        Maker.REFERENCE,
        state.study.plan.name,
        tuple(InputFile(f"masks/{parent}{MASK_SUFFIX}", parent) for parent in parents),
        parameters,
        note="accepted in a review study; its parents are identified by their SHA-256",
        created=decision.at,
    )


@dataclass(frozen=True, slots=True)
class AcceptedReference:
    """A folder with a file ``ID.nii.gz`` per accepted case; other cases are listed with reasons.

    `broken` lists the other cases with an error: a conflict, or a missing or changed mask.
    `unsigned` lists the ids of accepted cases that are not yet signed.
    """

    folder: Path
    n_cases: int
    unsigned: tuple[str, ...]
    others: tuple[LeftOut, ...]
    broken: tuple[LeftOut, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """Return one line for each case without a mask, stating the reason."""
        left_out = (*self.broken, *self.others)
        return tuple(f"{one.case_id} has no accepted mask: {one.why}" for one in left_out)


@contextmanager
def accepted_reference(store: EventStore) -> Iterator[AcceptedReference]:
    """Yield a temporary folder with the accepted masks of a study.

    Raises
    ------
    FormatError
        If no case was accepted, or the study cannot be read completely.
    SaveError
        If the system does not allow writing.
    """
    state = replay_reading(store, read_whole(store))
    accepted = list_accepted(state)
    broken = list(accepted.conflicts)
    with own_folder() as place:
        folder = place / f"accepted-{store.study.study_id}"
        n_cases = 0
        for number, one in enumerate(accepted.cases):
            report_progress(number, len(accepted.cases), f"Writing the mask: {one.case_id}")
            try:
                write_accepted(store, one, folder, state)
                n_cases += 1
            except FormatError as error:
                if is_refused(error):
                    raise
                (folder / f"{one.stem}.nii.gz").unlink(missing_ok=True)
                broken.append(LeftOut(one.case_id, "the accepted mask", str(error)))
        if not n_cases:
            raise FormatError(
                f"expected a study with accepted cases, but {store.study.plan.name} has no "
                f"readable one among {len(state.cases)} cases: see `mamamia review status`"
            )
        lost = {one.case_id for one in broken}
        unsigned = tuple(
            case.case_id
            for case in accepted.cases
            if case.view.state is not CaseState.SIGNED and case.case_id not in lost
        )
        yield AcceptedReference(folder, n_cases, unsigned, accepted.others, tuple(broken))

"""Adjudication: the readings of a case, their differences and lesions, and the decision.

The decided mask is a submitted reading, a consensus, or the adjudicator's own drawing. The source
of the mask is determined from its voxels, not from the buttons used.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.answers import Voxel
from napari_mamamia.core.blinding import Blinding, Hidden
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.form import Form
from napari_mamamia.features.review.core.review import ConsensusRule, ReadingMode, Task
from napari_mamamia.features.review.io.store import read_mask
from napari_mamamia.features.review.io.study_file import JUDGE
from napari_mamamia.features.review.rules.form_words import (
    describe_reasons,
    word_question,
    word_term,
)
from napari_mamamia.features.review.rules.states import CaseState, CaseView, ReadingView
from napari_mamamia.features.review.services.client import DisputeRow, StudyClient, find_images
from napari_mamamia.features.review.services.compare import (
    STAPLE_READERS,
    ConsensusMask,
    Lesion,
    LesionMatch,
    load_stored_labels,
    make_consensus,
    match_masks,
)
from napari_mamamia.features.review.services.look import NO_PSEUDONYMS, Pseudonymizer
from napari_mamamia.findings.form_values import (
    PairedTerms,
    carry_lesions,
    pair_categories,
    parse_answers_text,
    read_record,
)
from napari_mamamia.findings.lesion_numbers import rank_name
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.io.files.append_file import canonical
from napari_mamamia.services.score.review import Agrees, compare_masks

RULES: Final = (
    ConsensusRule.UNION,
    ConsensusRule.INTERSECTION,
    ConsensusRule.MAJORITY_BACKGROUND,
    ConsensusRule.STAPLE,
)
Measure = Callable[[NDArray[np.uint8], Mapping[str, Any]], Mapping[str, Any]]
"""A function that adds the measurements of a mask ``(z, y, x)`` to answers."""
_MM3_PER_ML: Final = 1000.0


@dataclass(frozen=True, slots=True, eq=False)
class ShownReading:
    """A reading shown in adjudication, with its display name and mask (None if empty)."""

    name: str
    reading: ReadingView
    labels: LabelMap | None

    @property
    def volume_ml(self) -> float:
        """Return the volume of the mask in ml."""
        if self.labels is None:
            return 0.0
        n_voxels = int(np.count_nonzero(self.labels.crop))
        return n_voxels * self.labels.grid.voxel_volume_mm3 / _MM3_PER_ML


@dataclass(frozen=True, slots=True, eq=False)
class Dispute:
    """A case taken for adjudication, with its workspace and readings.

    If `held` describes a different holder, nothing was opened.
    """

    case: str
    case_id: str
    because: tuple[str, ...]
    blinding: Blinding
    data_set: Path
    workspace: Path
    readings: tuple[ShownReading, ...] = ()
    held: str = ""
    pseudonymizer: Pseudonymizer = NO_PSEUDONYMS

    def why_not(self, rule: ConsensusRule) -> str:
        """Return why a consensus rule is not applicable, or "" if it is."""
        least = STAPLE_READERS if rule is ConsensusRule.STAPLE else 2
        if len(self.readings) >= least:
            return ""
        return f"needs {least} readings, but there are {len(self.readings)}"


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """A connected region that belongs to only one of two masks.

    `is_in_first` says whether the region belongs to the first mask. `voxel` (z, y, x) is inside the
    region. `distance_mm` is the region's largest distance from the other mask, or NaN if that mask
    is empty.
    """

    is_in_first: bool
    volume_mm3: float
    distance_mm: float
    voxel: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Decided:
    """The source of a decided mask: a reader's id, a consensus rule, or "edited".

    `lost` lists lesions that the answers describe but that are not in the mask. Answers about them
    remain only in the reading.
    """

    choice: str
    lost: tuple[str, ...] = ()


def open_dispute(client: StudyClient, case: str) -> Dispute:
    """Take a case for adjudication: check its images, and read its masks.

    Raises
    ------
    CaseError
        If this person is not an adjudicator, there is nothing to decide, or the images differ.
    FormatError
        If a mask is missing or was changed.
    """
    if not client.is_judge:
        raise CaseError(
            "expected an adjudicator or a lead to take a case for adjudication, but found a "
            "reader: other readers' masks are hidden from readers"
        )
    with client.turn:
        client.require_same_study()
        view = client.session.state.case(case)
        readings = [reading for reading in view.readings if reading.hash and reading.occasion == 0]
        if not readings:
            raise CaseError("expected a case with a reading, but found none: wait for a reading")
        client.require_images(case)
        claim = client.session.claim_case(case)
        held = "" if client.session.holds(claim) else client.describe_claim(claim)
        begins = (CaseState.DISAGREES, CaseState.READ, CaseState.REOPENED)
        if not held and view.state in begins:
            client.session.adjudicate(case)
            view = client.session.refresh().case(case)
        return _describe_dispute(client, view, readings, held)


def _describe_dispute(
    client: StudyClient, view: CaseView, readings: list[ReadingView], held: str
) -> Dispute:
    study, me = client.store.study, client.reader.reader_id
    hides_names = study.plan.blinding.hides(Hidden.OTHER_READERS)
    # sorted by a hash, so that the letters do not reveal the readers
    readings = sorted(readings, key=lambda reading: reading.hash)
    shown = () if held else _load_readings(client, readings, hides_names=hides_names)
    return Dispute(
        view.key,
        study.case(view.key).case_id,
        describe_reasons(client.form, view),
        Blinding(study.plan.blinding.hidden - {Hidden.OTHER_READERS}),
        find_images(study, client.files),
        client.files.work_folder(me, view.round, JUDGE),
        shown,
        held,
        client.pseudonymizer,
    )


def _load_readings(
    client: StudyClient, readings: list[ReadingView], *, hides_names: bool
) -> tuple[ShownReading, ...]:
    state = client.session.state
    return tuple(
        ShownReading(
            f"Reader {chr(ord('A') + index)}" if hides_names else state.name(reading.reader),
            reading,
            load_stored_labels(client.store, reading.mask),
        )
        for index, reading in enumerate(readings)
    )


def load_first_snapshot(client: StudyClient, task: Task) -> ShownReading | None:
    """Return the first reading if a task is a second look, otherwise None.

    Raises
    ------
    FormatError
        If its mask is missing or was changed.
    """
    with client.turn:
        state = client.session.state
        if state.study.plan.mode is not ReadingMode.SECOND_LOOK:
            return None
        readings = state.case(task.case).readings
        looks = [reading for reading in readings if reading.occasion == task.occasion]
        if not looks or looks[0].reader == task.reader or not looks[0].hash:
            return None
        return _load_readings(client, looks[:1], hides_names=False)[0]


def list_differences(
    first: ShownReading, second: ShownReading, *, by_distance: bool = False
) -> tuple[Difference, ...]:
    """Return the 26-connected regions that belong to only one of two masks.

    The largest region is first. `by_distance` sorts by the distance from the other mask, with
    undefined distances (if the other mask is empty) first.

    Raises
    ------
    GridMismatchError
        If the masks are on different grids.
    """
    drawn = next((one.labels for one in (first, second) if one.labels is not None), None)
    if drawn is None:
        return ()
    one, other = (
        (np.zeros(drawn.grid.shape, np.uint8) if shown.labels is None else shown.labels)
        for shown in (first, second)
    )
    agreement = compare_masks(one, other, drawn.grid)
    parts = [
        Difference(error.kind is Agrees.MISSED, error.volume_mm3, error.distance_mm, error.voxel)
        for error in agreement.errors
    ]
    if by_distance:
        parts.sort(key=_rank_distance)
    return tuple(parts)


def _rank_distance(part: Difference) -> float:
    return -math.inf if math.isnan(part.distance_mm) else -part.distance_mm


def fuse_dispute(client: StudyClient, dispute: Dispute, rule: ConsensusRule) -> ConsensusMask:
    """Compute the consensus mask of all readings of a case by a rule; see `make_consensus`."""
    with client.turn:
        return make_consensus(client.store, [reading.reading for reading in dispute.readings], rule)


def decide_dispute(
    client: StudyClient,
    dispute: Dispute,
    saved: tuple[Path, str] | None,
    reason: str,
    answers: ShownReading | str,
    consensus: ConsensusMask | None = None,
    measure: Measure | None = None,
) -> Decided:
    """Record the adjudicator's decision on a case.

    Parameters
    ----------
    client
        The adjudicator's client.
    dispute
        The case.
    saved
        The saved mask with its SHA-256; None if there is no lesion.
    reason
        The reason.
    answers
        The reading whose answers are used, or the answers as JSON. Answers about a lesion are
        transferred to the matching lesion of the decided mask (`lesion_match`), and dropped if
        there is none. Measurements of other masks are dropped too.
    consensus
        The last consensus copied into the mask, if any.
    measure
        Function that measures the decided mask; None omits measurements.

    Raises
    ------
    CaseError
        If the reason is missing, or the case is no longer in adjudication.
    FormatError
        If the saved mask was changed meanwhile.
    """
    with client.turn:
        client.require_same_study()
        if client.session.state.case(dispute.case).state is not CaseState.IN_ADJUDICATION:
            raise CaseError(
                f"expected {dispute.case_id} to be in adjudication, but somebody has decided the "
                "case or returned it to the queue: open the case again"
            )
        text, lost = _carry_answers(answers, saved, measure)
        choice = _find_origin(client, dispute, saved, reason, text, consensus)
        client.session.let_go_of_case(dispute.case)
    return Decided(choice, lost)


def _carry_answers(
    reading: ShownReading | str, saved: tuple[Path, str] | None, measure: Measure | None
) -> tuple[str, tuple[str, ...]]:
    if isinstance(reading, str):
        return reading, ()
    text = reading.reading.answers
    answers = parse_answers_text(text)
    if reading.labels is None or not answers.lesions:
        return text, ()
    decided = None if saved is None else read_labels(saved[0])
    if decided is not None and _is_same_mask(reading.labels, decided):
        return text, ()
    match = match_masks(reading.labels, decided, (answers.anchors, ()))
    places = {one.name: one.voxel for one in match.second}
    voxels = {one.first: places[one.second] for one in match.both}
    text = carry_lesions(text, voxels)
    if measure is not None and decided is not None:
        text = canonical(measure(decided.dense(), read_record(text))).decode()
    return text, tuple(sorted(answers.lesions - set(voxels), key=rank_name))


def _find_origin(
    client: StudyClient,
    dispute: Dispute,
    saved: tuple[Path, str] | None,
    reason: str,
    answers: str,
    consensus: ConsensusMask | None,
) -> str:
    session, case = client.session, dispute.case
    if saved is None:
        session.decide(case, None, "edited", reason, answers)
        return "edited"
    content, labels = read_mask(*saved), read_labels(saved[0])
    parents = tuple(
        dict.fromkeys(reading.reading.mask for reading in dispute.readings if reading.reading.mask)
    )
    if consensus is not None and consensus.labels is not None:
        is_as_made = _is_same_mask(consensus.labels, labels)
        rule = str(consensus.rule)
        if is_as_made and consensus.content is not None:
            session.decide(
                case, consensus.content, rule, reason, answers, consensus.parents, consensus.how
            )
            return rule
    for one in dispute.readings:
        if one.labels is not None and _is_same_mask(one.labels, labels):
            session.decide(case, one.reading.mask, one.reading.reader, reason, answers)
            return one.reading.reader
    session.decide(case, content, "edited", reason, answers, parents, (("how", "edited"),))
    return "edited"


def _is_same_mask(labels: LabelMap, other: LabelMap) -> bool:
    if not labels.grid.is_same_place(other.grid):
        return False
    box = labels.box.union(other.box)
    return bool(box.is_empty or np.array_equal(labels.cut(box) > 0, other.cut(box) > 0))


def set_down(client: StudyClient, dispute: Dispute) -> None:
    """Return a case to the adjudication queue; drawings remain on this computer."""
    with client.turn:
        if client.session.refresh().case(dispute.case).state is CaseState.IN_ADJUDICATION:
            client.session.set_down(dispute.case)
        client.session.let_go_of_case(dispute.case)


def leave_out(client: StudyClient, dispute: Dispute, reason: str) -> None:
    """Reject a case and record the reason."""
    with client.turn:
        client.require_same_study()
        client.session.reject(dispute.case, reason)
        client.session.let_go_of_case(dispute.case)


def accept_case(client: StudyClient, case: str) -> None:
    """Accept the last reading of a case whose readings agree.

    Raises
    ------
    CaseError
        If this person is not an adjudicator, or the readings disagree or are incomplete.
    """
    with client.turn:
        client.require_same_study()
        view = client.session.state.case(case)
        agrees = view.comparison is None or view.comparison.agrees
        if not client.is_judge or view.state is not CaseState.READ or not agrees:
            raise CaseError(
                "only an adjudicator can accept a case from the list, and only if its readings "
                f"are complete and agree (its state is {view.state}): open the case and decide"
            )
        client.session.accept(case)


def reopen_case(client: StudyClient, case: str, reason: str) -> None:
    """Begin a new round for a decided case; earlier readings and decisions are kept.

    Raises
    ------
    CaseError
        If this person is not an adjudicator, nothing is decided, or the reason is missing.
    """
    with client.turn:
        client.require_same_study()
        view = client.session.state.case(case)
        ends = (CaseState.ACCEPTED, CaseState.REJECTED, CaseState.SIGNED)
        if not client.is_judge or view.state not in ends:
            raise CaseError(
                "only an adjudicator can reopen a case, and only if it is decided (its state is "
                f"{view.state}): check the list again"
            )
        client.session.reopen(case, reason)


def list_decided(client: StudyClient) -> tuple[DisputeRow, ...]:
    """Return the signed and rejected cases, which an adjudicator may reopen."""
    if not client.is_judge:
        return ()
    with client.turn:
        state = client.session.state
        return tuple(
            DisputeRow(view.key, state.study.case(view.key).case_id, view.state, (reason,))
            for view in state.cases
            if view.state in (CaseState.SIGNED, CaseState.REJECTED)
            for reason in [view.decision.reason if view.decision else ""]
        )


@dataclass(frozen=True, slots=True)
class PairedAnswer:
    """Two readers' answers to a question about the same lesion, in the form's wording."""

    question: str
    first: str
    second: str

    @property
    def is_same(self) -> bool:
        """Return whether the answers are the same."""
        return self.first == self.second


@dataclass(frozen=True, slots=True)
class LesionRow:
    """A lesion in the adjudicator's table.

    Parameters
    ----------
    first, second
        The lesion's number in each reading; "" if not marked.
    part_of
        Number of the lesion in the other reading, if this lesion is an additional part of it.
    volume_first_mm3, volume_second_mm3
        The lesion's volume in each reading, NaN if not marked.
    dsc
        Dice of the two outlines, NaN if only one reader marked the lesion.
    voxel
        A voxel (z, y, x) of the lesion near its centre.
    answers
        Category questions about the lesion that both readers answered.
    """

    first: str
    second: str
    part_of: str
    volume_first_mm3: float
    volume_second_mm3: float
    dsc: float
    voxel: Voxel
    answers: tuple[PairedAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class LesionTable:
    """All lesions of two readings: those of one reader only, then parts, then those of both.

    Parameters
    ----------
    n_both, n_first, n_second, n_parts
        Numbers of lesions marked by both readers, lesions marked by one reader only, and additional
        parts of a lesion that the other reader drew as one.
    lost_first, lost_second
        Numbers of lesions that a reader described but did not draw in the mask.
    n_left_out
        Number of components beyond the 1,000 largest of a mask.
    """

    rows: tuple[LesionRow, ...] = ()
    n_both: int = 0
    n_first: int = 0
    n_second: int = 0
    n_parts: int = 0
    lost_first: tuple[str, ...] = ()
    lost_second: tuple[str, ...] = ()
    n_left_out: int = 0

    @property
    def answers(self) -> tuple[PairedAnswer, ...]:
        """Return both readers' answers about the lesions that both marked."""
        return tuple(answer for row in self.rows for answer in row.answers)


def list_lesions(
    first: ShownReading, second: ShownReading, form: Form | None = None
) -> LesionTable:
    """Return the lesions of two readings; questions and terms have the wording of `form`.

    Raises
    ------
    GridMismatchError
        If the masks are on different grids.
    """
    anchors = tuple(parse_answers_text(one.reading.answers).anchors for one in (first, second))
    match = match_masks(first.labels, second.labels, (anchors[0], anchors[1]))
    return LesionTable(
        tuple(_list_rows(match, first, second, form)),
        len(match.both),
        len(match.first_alone),
        len(match.second_alone),
        match.n_parts,
        _list_lost(first, match.first),
        _list_lost(second, match.second),
        match.n_left_out,
    )


def _list_lost(reading: ShownReading, lesions: tuple[Lesion, ...]) -> tuple[str, ...]:
    described = parse_answers_text(reading.reading.answers).described
    return tuple(sorted(described - {lesion.name for lesion in lesions}, key=rank_name))


def _list_rows(
    match: LesionMatch, first: ShownReading, second: ShownReading, form: Form | None
) -> Iterator[LesionRow]:
    ones = {one.name: one for one in match.first}
    others = {one.name: one for one in match.second}
    for name in match.first_alone:
        yield _make_row(ones[name], None)
    for name in match.second_alone:
        yield _make_row(None, others[name])
    for name, whole in match.first_parts:
        yield _make_row(ones[name], None, part_of=whole)
    for name, whole in match.second_parts:
        yield _make_row(None, others[name], part_of=whole)
    for pair in match.both:
        answers = pair_categories(
            first.reading.answers, second.reading.answers, {pair.first: pair.second}
        )
        about = (answer for answer in answers if answer.key.partition("@")[2] == pair.first)
        yield _make_row(
            ones[pair.first],
            others[pair.second],
            pair.dsc,
            tuple(_word_answer(form, one) for one in about),
        )


def _make_row(
    lesion: Lesion | None,
    other: Lesion | None,
    dsc: float = math.nan,
    answers: tuple[PairedAnswer, ...] = (),
    part_of: str = "",
) -> LesionRow:
    shown = lesion if lesion is not None else other
    return LesionRow(
        "" if lesion is None else lesion.name,
        "" if other is None else other.name,
        part_of,
        math.nan if lesion is None else lesion.volume_mm3,
        math.nan if other is None else other.volume_mm3,
        dsc,
        (0, 0, 0) if shown is None else shown.voxel,
        answers,
    )


def _word_answer(form: Form | None, pair: PairedTerms) -> PairedAnswer:
    name = pair.key.partition("@")[0]
    first, second = (
        ", ".join(word_term(form, name, value) for value in chosen)
        for chosen in (pair.first, pair.second)
    )
    return PairedAnswer(word_question(form, name), first, second)

"""Immutable records that a client of a study returns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from napari_mamamia.core.blinding import Blinding
from napari_mamamia.core.form import Form
from napari_mamamia.features.review.core.review import Role, Task
from napari_mamamia.features.review.io.client_files import NO_DRAFT, Draft
from napari_mamamia.features.review.rules.form_words import describe_reasons
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.rules.views import CaseView, ReadingView
from napari_mamamia.features.review.services.pseudonymizer import NO_PSEUDONYMS, Pseudonymizer


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A row for a person's own reading, either submitted or current."""

    task: Task
    case_id: str
    state: CaseState


@dataclass(frozen=True, slots=True)
class DisputeRow:
    """A case that waits for adjudication: its disagreement and current holder ("" for none)."""

    case: str
    case_id: str
    state: CaseState
    because: tuple[str, ...]
    judge: str = ""


@dataclass(frozen=True, slots=True)
class ReaderRow:
    """Progress of a reader."""

    name: str
    roles: tuple[Role, ...]
    n_read: int
    n_tasks: int
    active_s: int


@dataclass(frozen=True, slots=True)
class StudySnapshot:
    """A person's view of a study at one time.

    Parameters
    ----------
    n_ready
        Number of this person's readings that can be started or continued now.
    n_unsent, trouble
        Number of events that wait on this computer, and the reason.
    lost
        Claims that somebody else has taken over.
    problems
        Sentences on problems of the folder.
    states
        Number of cases in each state.
    origin
        SHA-256 of the study file, 64 digits.
    is_seen
        Whether the study's events were ever read on this computer; until then the states of cases
        are unknown.
    """

    study: str
    person: str
    roles: tuple[Role, ...]
    blinding: Blinding
    n_tasks: int
    n_read: int
    n_ready: int
    rows: tuple[TaskRow, ...]
    disputes: tuple[DisputeRow, ...] = ()
    readers: tuple[ReaderRow, ...] = ()
    states: Mapping[str, int] | None = None
    n_unsent: int = 0
    trouble: str = ""
    lost: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    origin: str = ""
    is_seen: bool = True

    @property
    def n_left(self) -> int:
        """Return the number of open readings."""
        return self.n_tasks - self.n_read


@dataclass(frozen=True, slots=True)
class StudyTask:
    """A claimed reading: its workspace, images and saved draft.

    If `held` describes another holder, nothing is opened. `veil` pseudonymizes the cases for the
    window.
    """

    task: Task
    case_id: str
    round: int
    state: CaseState
    blinding: Blinding
    data_set: Path
    workspace: Path
    draft: Draft = NO_DRAFT
    held: str = ""
    pseudonymizer: Pseudonymizer = NO_PSEUDONYMS


def leave_out_unseen(look: StudySnapshot) -> StudySnapshot:
    """Return a snapshot without the states of cases, which would all seem unread."""
    return replace(
        look,
        n_read=0,
        n_ready=0,
        rows=(),
        disputes=(),
        readers=(),
        states=None,
        is_seen=False,
    )


def describe_age(seconds: float) -> str:
    """Return a duration in a suitable unit.

    Examples
    --------
    >>> describe_age(40), describe_age(200), describe_age(7300)
    ('40 s', '3 min', '2 h')
    """
    if seconds < 60:
        return f"{max(seconds, 0):.0f} s"
    return f"{seconds // 60:.0f} min" if seconds < 3600 else f"{seconds // 3600:.0f} h"


def list_reader_rows(state: ReviewState) -> tuple[ReaderRow, ...]:
    """Return the progress of every reader, in the order of the study."""
    by_reader: dict[str, list[ReadingView]] = {}
    for view in state.cases:
        for reading in view.readings:
            by_reader.setdefault(reading.reader, []).append(reading)
    return tuple(
        ReaderRow(
            state.name(reader.reader_id),
            reader.roles,
            sum(reading.state is CaseState.READ for reading in by_reader[reader.reader_id]),
            len(by_reader[reader.reader_id]),
            sum(reading.active_s for reading in by_reader[reader.reader_id]),
        )
        for reader in state.study.readers
        if reader.reader_id in by_reader
    )


def list_dispute_rows(
    disputes: Iterable[CaseView], state: ReviewState, form: Form | None
) -> tuple[DisputeRow, ...]:
    """Return each case for an adjudicator once: disputes, then agreements, then cases to sign."""
    views = list(disputes)
    for place in (CaseState.READ, CaseState.ACCEPTED):
        views += [case for case in state.cases if case.state is place]
    return tuple(
        DisputeRow(
            view.key,
            state.study.case(view.key).case_id,
            view.state,
            describe_reasons(form, view),
            state.name(view.adjudicator) if view.adjudicator else "",
        )
        for view in {view.key: view for view in views}.values()
    )

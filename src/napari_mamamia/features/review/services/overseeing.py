"""Reader agreement and quality control for the lead of a running study."""

from dataclasses import dataclass
from typing import Final

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.errors import FormatError
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.client import StudyClient
from napari_mamamia.features.review.services.pseudonymizer import pseudonymize_store
from napari_mamamia.features.review.services.study_form import load_study_form, load_study_queue
from napari_mamamia.features.review.services.unblinding import note_unblinding
from napari_mamamia.io.files.user_folders import review_folder

_STILL_READS: Final = (
    "Hidden while you have open readings of your own: you would no longer be blind."
)


@dataclass(frozen=True, slots=True)
class QualityRow:
    """A case of the queue: why it is there, and whether it has an error (None if unread)."""

    case_id: str
    why: str
    has_error: bool | None


@dataclass(frozen=True, slots=True)
class QualityStatus:
    """The queue of quality control and its results.

    `points` are (cases read, errors found), starting at zero cases; `says` describes the stopping
    rule.
    """

    rows: tuple[QualityRow, ...]
    points: tuple[tuple[int, int], ...]
    says: tuple[str, ...]


def why_blind(client: StudyClient) -> str:
    """Return why all readings are hidden from this person, "" if they are not."""
    with client.turn:
        if not client.blinding.hides(Hidden.OTHER_READERS):
            return ""
        if not client.is_judge:
            return "Shown only to leads and adjudicators, because this study is blind."
        is_over = all(one.state is CaseState.READ for _, one in client.session.queue())
        return "" if is_over else _STILL_READS


def load_quality_status(client: StudyClient) -> QualityStatus | None:
    """Return the queue's status; None without a queue, or if the status would unblind the person.

    A missing or changed queue file is reported in `says`.
    """
    try:
        queue = client.store.read_frozen(load_study_queue)
    except (FormatError, OSError) as error:
        return QualityStatus((), (), (str(error),))
    if queue is None or why_blind(client):
        return None
    queue = client.pseudonymizer.cover_queue(queue)
    # Imported here, because they load plotting and statistics.
    from napari_mamamia.features.review.rules.quality import follow_capture
    from napari_mamamia.features.review.services.quality_queue import describe_capture
    from napari_mamamia.features.review.services.report.study_report import list_marks

    with client.turn:
        marks = list_marks(client.session.state, queue)
    capture = follow_capture(queue, marks)
    rows = tuple(QualityRow(one.case_id, one.why, marks.get(one.case_id)) for one in queue.places)
    points = tuple((point.n_read, point.n_errors) for point in capture.points)
    return QualityStatus(rows, points, describe_capture(capture))


def describe_agreement(client: StudyClient) -> tuple[str, ...]:
    """Return the readers' current agreement as lines of text; this takes seconds.

    In a blind study, an event visible to everybody records that the agreement was shown.

    Raises
    ------
    FormatError
        If not all events can be read now.
    """
    from napari_mamamia.features.review.services.agreement.agree import (
        list_orders,
        measure_agreement,
    )
    from napari_mamamia.features.review.services.agreement.agreement_output import agreement_lines

    if why := why_blind(client):
        return (why,)
    with client.turn:
        note_unblinding(client.session, "agreement so far")
    store = FolderStore(client.folder, review_folder())
    pseudonymize_store(store)
    form = store.read_frozen(load_study_form)
    result = measure_agreement(store, None, list_orders(form, ()))
    left_out = (f"Left out: {one.case_id}: {one.what}: {one.why}" for one in result.left_out)
    return (*agreement_lines(result, form), *result.notes, *left_out)

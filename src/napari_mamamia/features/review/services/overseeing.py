"""What the lead of a study looks at while it is read: agreement, and quality control's queue."""

from dataclasses import dataclass
from typing import Final

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.errors import FormatError
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.client import StudyClient
from napari_mamamia.features.review.services.pseudonymizer import pseudonymize_store
from napari_mamamia.features.review.services.study_form import load_study_form, load_study_queue
from napari_mamamia.features.review.services.unblinding import note_sight
from napari_mamamia.io.files.user_folders import review_folder

_STILL_READS: Final = (
    "Not shown while you still have cases of your own to read: you would no longer be blind."
)


@dataclass(frozen=True, slots=True)
class QualityRow:
    """A case of the queue: why it stands there, and what was found; None while nobody read it."""

    case_id: str
    why: str
    has_error: bool | None


@dataclass(frozen=True, slots=True)
class QualityStatus:
    """The queue of quality control and what was caught by it.

    `points` are (cases read, errors found) from none on, `says` whether one may stop and why.
    """

    rows: tuple[QualityRow, ...]
    points: tuple[tuple[int, int], ...]
    says: tuple[str, ...]


def why_blind(client: StudyClient) -> str:
    """Return why this person is not shown what all readers did, "" where it is shown."""
    with client.turn:
        if not client.blinding.hides(Hidden.OTHER_READERS):
            return ""
        if not client.is_judge:
            return "Shown to leads and adjudicators alone, since this study is blind."
        is_over = all(one.state is CaseState.READ for _, one in client.session.queue())
        return "" if is_over else _STILL_READS


def look_at_quality(client: StudyClient) -> QualityStatus | None:
    """Return the queue that a study is read by; None without one, or where it would unblind.

    A queue's file that is missing or another one than when the study began is told in `says`.
    """
    try:
        queue = client.store.read_frozen(load_study_queue)
    except (FormatError, OSError) as error:
        return QualityStatus((), (), (str(error),))
    if queue is None or why_blind(client):
        return None
    queue = client.pseudonymizer.cover_queue(queue)
    # Here, since they load drawing and statistics, which no window waits for.
    from napari_mamamia.features.review.rules.quality import follow_capture
    from napari_mamamia.features.review.services.quality_queue import describe_capture
    from napari_mamamia.features.review.services.report.study_report import list_marks

    with client.turn:
        marks = list_marks(client.session.state, queue)
    capture = follow_capture(queue, marks)
    rows = tuple(QualityRow(one.case_id, one.why, marks.get(one.case_id)) for one in queue.places)
    points = tuple((point.n_read, point.n_errors) for point in capture.points)
    return QualityStatus(rows, points, describe_capture(capture))


def tell_agreement(client: StudyClient) -> tuple[str, ...]:
    """Return how far the readers agree so far, in lines of plain words; it takes seconds.

    Of a blind study that it was shown is an event that everybody sees.

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
        note_sight(client.session, "agreement so far")
    store = FolderStore(client.folder, review_folder())
    pseudonymize_store(store)
    form = store.read_frozen(load_study_form)
    result = measure_agreement(store, None, list_orders(form, ()))
    left_out = (f"Left out: {one.case_id}: {one.what}: {one.why}" for one in result.left_out)
    return (*agreement_lines(result, form), *result.notes, *left_out)

"""Looking at a study: its state now, a person by name, the order of what is disputed."""

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.review import StudyReader
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.review.keys import signature_fits
from napari_mamamia.io.review.store import EventStore
from napari_mamamia.reviewing.fold import FoldMemory, ReviewState, fold_events
from napari_mamamia.reviewing.signatures import short_key
from napari_mamamia.reviewing.views import CaseView


def load_state(store: EventStore, before: FoldMemory | None = None) -> ReviewState:
    """Return where a study stands by all that can be seen of it; see `fold_events`."""
    chains = store.read().chains.values()
    masks = store.list_masks()
    return fold_events(
        store.study, store.origin, chains, masks.__contains__, signature_fits, before
    )


def find_person(state: ReviewState, who: str) -> StudyReader:
    """Return a person by id or name, in whatever letter case and spelling of accents.

    Raises
    ------
    CaseError
        If there is none; names those that there are.
    """
    for one in state.study.readers:
        calls = (one.reader_id, one.name, state.name(one.reader_id))
        if case_key(who.strip()) in map(case_key, calls):
            return one
    names = ", ".join(state.name(one.reader_id) for one in state.study.readers)
    raise CaseError(f"expected a name of the study, got {who!r}: it has {names}")


def rank_dispute(view: CaseView) -> tuple[float, str]:
    """Return what disputes are ordered by: the lowest Dice first, those without one last."""
    values = dict(view.comparison.values) if view.comparison else {}
    try:
        return float(values.get("dice", "2")), view.key
    except ValueError:
        return 2.0, view.key


def find_key(state: ReviewState, reader_id: str, digits: str) -> str:
    """Return the public key of a reader whose short form was read out; blanks do not matter.

    Raises
    ------
    CaseError
        If the reader has none with these digits: then it is somebody else's.
    """
    spoken = "".join(digits.split()).lower()
    for one in state.keys:
        if one.reader == reader_id and short_key(one.key).replace(" ", "") == spoken:
            return one.key
    raise CaseError(
        f"expected the 16 digits of a key of {state.name(reader_id)}, got {digits!r}: ask again by "
        "voice; if they differ the key is not that person's"
    )

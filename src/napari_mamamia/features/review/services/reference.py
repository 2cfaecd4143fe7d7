"""The accepted masks of a study as a temporary folder of reference masks."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core.errors import FormatError, is_refused
from napari_mamamia.core.progress import report_progress
from napari_mamamia.features.review.io.store import EventStore
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.accepted import list_accepted, write_accepted
from napari_mamamia.features.review.services.agreement.mask_pairs import LeftOut
from napari_mamamia.features.review.services.look import read_whole, replay_reading
from napari_mamamia.io.files.own_paths import own_folder


@dataclass(frozen=True, slots=True)
class AcceptedReference:
    """A folder with ``ID.nii.gz`` for each accepted case, and the other cases with reasons.

    `broken` are the other cases with an error: a conflict, or a missing or changed mask. `unsigned`
    are the ids of accepted cases that are not yet signed.
    """

    folder: Path
    n_cases: int
    unsigned: tuple[str, ...]
    others: tuple[LeftOut, ...]
    broken: tuple[LeftOut, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """Return a line for each case without a mask, with the reason."""
        left_out = (*self.broken, *self.others)
        return tuple(f"{one.case_id} has no accepted mask: {one.why}" for one in left_out)


@contextmanager
def accepted_reference(store: EventStore) -> Iterator[AcceptedReference]:
    """Yield the accepted masks of a study as a folder, which is deleted afterwards.

    Raises
    ------
    FormatError
        If no case was accepted, or the study cannot be read to the end.
    SaveError
        If the system refuses to write.
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
                f"expected a study with accepted cases, but {store.study.plan.name} has none that "
                f"can be read of {len(state.cases)}: see `mamamia review status`"
            )
        lost = {one.case_id for one in broken}
        unsigned = tuple(
            case.case_id
            for case in accepted.cases
            if case.view.state is not CaseState.SIGNED and case.case_id not in lost
        )
        yield AcceptedReference(folder, n_cases, unsigned, accepted.others, tuple(broken))

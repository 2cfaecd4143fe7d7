"""`open_study` reads a review study: tables, reader agreement, and accepted masks."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_mamamia.core.case import Mask
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.services import check_study
from napari_mamamia.features.review.services.accepted import list_accepted
from napari_mamamia.features.review.services.agreement.agree import (
    StudyAgreement,
    measure_agreement,
)
from napari_mamamia.features.review.services.check_study import StudyStatus
from napari_mamamia.features.review.services.compare import load_stored_labels
from napari_mamamia.features.review.services.look import read_whole, replay_reading
from napari_mamamia.features.review.services.session import require_unblinding
from napari_mamamia.io.files.user_folders import review_folder
from napari_mamamia.library.argument_words import advising_arguments
from napari_mamamia.library.arguments import PathLike, path_of
from napari_mamamia.library.progress import drive

if TYPE_CHECKING:
    import pandas as pd


class ReviewStudy:
    """A review study, returned by `open_study`, with the tables ``.cases`` and ``.readers``.

    Every access reads the study again, because other people may be working in the study.
    """

    def __init__(self, store: FolderStore) -> None:
        self._store = store

    def __repr__(self) -> str:
        """Return the title of the study, and the number of cases in each state."""
        status = self.status
        states = ", ".join(f"{state} {count}" for state, count in status.states.items() if count)
        return f"ReviewStudy({status.study}, {status.n_cases} cases: {states})"

    @property
    def folder(self) -> Path:
        """Return the study's folder."""
        return Path(self._store.share.place)

    @property
    def status(self) -> StudyStatus:
        """Return the status of the study."""
        return check_study.find_status(self._store)

    @property
    def cases(self) -> "pd.DataFrame":
        """Return a table with one row per case: state, readings, and how the case was decided."""
        import pandas as pd

        state = replay_reading(self._store, read_whole(self._store))
        rows = []
        for view in state.cases:
            decision = view.decision
            row: dict[str, Any] = {
                "case_id": state.study.case(view.key).case_id,
                "state": view.state.value,
                "n_readings": sum(
                    bool(reading.hash) and not reading.occasion for reading in view.readings
                ),
                "choice": "" if decision is None else decision.choice,
                "has_conflict": bool(view.conflicts),
            }
            rows.append(row)
        return pd.DataFrame(rows).set_index("case_id")

    @property
    def readers(self) -> "pd.DataFrame":
        """Return a table with one row per person: tasks, finished readings, and minutes of work."""
        import pandas as pd

        rows = [
            {
                "reader": reader.reader,
                "name": reader.name,
                "roles": ", ".join(reader.roles),
                "n_tasks": reader.n_tasks,
                "n_read": reader.n_read,
                "minutes": reader.active_s / 60,
            }
            for reader in self.status.readers
        ]
        return pd.DataFrame(rows).set_index("reader")

    @advising_arguments
    def agreement(
        self,
        *,
        reader: str = "",
        unblind: str = "",
        passphrase: str = "",
        bootstrap: int = 1000,
        seed: int = 42,
        progress: bool = True,
    ) -> StudyAgreement:
        """Compute the readers' agreement, as ``mamamia review agreement`` does.

        Parameters
        ----------
        reader
            Your name as a lead or an adjudicator; required if the study is blind.
        unblind
            Reason for seeing all readings if you are neither. Your name and the reason appear in
            the audit trail.
        passphrase
            Passphrase of your key, required if the key is valid in the study.
        bootstrap, seed
            Number of resamples for the 95 % intervals (0: no intervals), and seed of the
            resampling.
        progress
            Whether to show a progress bar.

        Raises
        ------
        CaseError
            If the study is blind and no person is named, if a required reason is missing, or if the
            passphrase of a valid key is wrong.
        FormatError
            If the study cannot be read completely.
        """
        ask = partial(str, passphrase)
        require_unblinding(self._store, reader, unblind, review_folder(), ask, "agreement")
        job = partial(measure_agreement, self._store, n_resamples=bootstrap, seed=seed)
        return drive(job, progress)

    def accepted_masks(self) -> dict[str, Mask]:
        """Return the accepted masks by case id.

        Cases are omitted if they have no accepted mask, have an open conflict, or are accepted as
        having no lesion. ``mm.score(study.accepted_masks(), predictions)`` scores predictions
        against the accepted masks.

        Raises
        ------
        FormatError
            If a mask is missing or was changed, or the study cannot be read completely.
        """
        state = replay_reading(self._store, read_whole(self._store))
        masks = {}
        for case in list_accepted(state).cases:
            labels = load_stored_labels(self._store, case.decision.mask)
            if labels is not None:
                masks[case.case_id] = labels.mask()
        return masks


@advising_arguments
def open_study(folder: PathLike) -> ReviewStudy:
    """Open a review study made by `mamamia review init`; the study is not changed.

    Parameters
    ----------
    folder
        The folder that contains ``study.json``.

    Raises
    ------
    ArgumentError
        If `folder` is not a path.
    FormatError
        If the folder does not contain a study.
    """
    return ReviewStudy(FolderStore(path_of(folder, "folder"), review_folder()))

"""The pictures in the table of a study: read one at a time in a thread, each once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from qtpy.QtCore import QObject

from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.exam.table import SeriesRow
from napari_mamamia.services.dicom.preview import SlicePicture
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.notify import Failed, Finished, Outcome, plain_text
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.dicom.series import SeriesModel

__all__ = ["PartPictures"]

_LANE: Final = "import picture"
_NO_IMAGE: Final = "no MR image: there is nothing to show"


class PartPictures(QObject):
    """Fills the pictures of the rows on screen; what was read stays known until `forget`."""

    def __init__(self, model: SeriesModel, jobs: JobRunner, services: Services) -> None:
        super().__init__()
        self._model = model
        self._jobs = jobs
        self._services = services
        self._known: dict[tuple[Path, int], SlicePicture | str] = {}
        self._rows: Sequence[SeriesRow] = ()

    def show(self, rows: Sequence[SeriesRow]) -> None:
        """Show what is known of these rows, and read the others, from the first on."""
        self._jobs.cancel(_LANE)
        self._rows = rows
        for at, row in enumerate(rows):
            if row.middle is None:
                self._model.show_picture(at, row.problem or _NO_IMAGE)
            elif _key(row.middle) in self._known:
                self._model.show_picture(at, self._known[_key(row.middle)])
        self._read_next()

    def forget(self) -> None:
        """Stop reading, and let go of all pictures."""
        self._jobs.cancel(_LANE)
        self._known.clear()
        self._rows = ()

    def _read_next(self) -> None:
        unread = (
            (at, row.middle)
            for at, row in enumerate(self._rows)
            if row.middle is not None and _key(row.middle) not in self._known
        )
        at, piece = next(unread, (0, None))
        if piece is None:
            return

        def done(outcome: Outcome[SlicePicture]) -> None:
            if isinstance(outcome, Finished):
                found: SlicePicture | str = outcome.result
            elif isinstance(outcome, Failed):
                found = plain_text(outcome.error)
            else:
                return
            self._known[_key(piece)] = found
            self._model.show_picture(at, found)
            self._read_next()

        self._jobs.start(
            _LANE,
            "Reading a picture",
            lambda: self._services.imports.part_picture(piece),
            done,
            shown=False,
        )


def _key(piece: Slice) -> tuple[Path, int]:
    return piece.file, piece.frame

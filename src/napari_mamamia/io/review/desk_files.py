"""What this computer keeps of its readers' studies: where work lies, half answers, the images.

::

    desk/STUDY_ID/work/READER/ROUND-KIND/    a workspace: masks and journals of a round
    desk/STUDY_ID/drafts/READER/CASE.ROUND-KIND.json    answers that are not handed in yet
    desk/STUDY_ID/images.json                where the images are here

A round has a workspace of its own, a hidden repeat and a judge's mask too: what was drawn before is
not there to be seen.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.review import Task
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.io.workspace.workspace import file_name

_MOST_BYTES: Final = 4 << 20
_IMAGES: Final = "images.json"
JUDGE: Final = "judge"


@dataclass(frozen=True, slots=True)
class Draft:
    """What was answered and how long was worked, before it is handed in."""

    answers: dict[str, Any] = field(default_factory=dict)
    active_s: int = 0


NO_DRAFT: Final = Draft()


class DeskFiles:
    """The files of one study on this computer.

    Parameters
    ----------
    home
        This computer's folder of all studies.
    study_id
        Of the study.
    """

    def __init__(self, home: Path, study_id: str) -> None:
        self._root = home / file_name(study_id, "a study's id")

    def work_folder(self, reader: str, round_: int, kind: str) -> Path:
        """Return the workspace of a reader's round; `kind` is an occasion, or `JUDGE`."""
        return self._root / "work" / file_name(reader, "a reader") / file_name(f"{round_}-{kind}")

    def read_draft(self, task: Task, round_: int) -> Draft:
        """Return what was kept of a task; an empty draft where nothing can be read."""
        try:
            content = read_json(self._draft_path(task, round_), _MOST_BYTES)
        except (OSError, ValueError, RecursionError):
            return Draft()
        if not isinstance(content, dict):
            return Draft()
        answers, seconds = content.get("answers"), content.get("active_s")
        return Draft(
            answers if isinstance(answers, dict) else {},
            seconds if type(seconds) is int and seconds >= 0 else 0,
        )

    def write_draft(self, task: Task, round_: int, draft: Draft) -> None:
        """Keep what was answered so far.

        Raises
        ------
        SaveError
            If this computer's disk refuses.
        """
        path = self._draft_path(task, round_)
        content = {"answers": draft.answers, "active_s": draft.active_s}
        write_json(content, path, overwrite=True)

    def read_images(self) -> Path | None:
        """Return where the images lie on this computer; None where nobody said."""
        try:
            content = read_json(self._root / _IMAGES, _MOST_BYTES)
        except (OSError, ValueError, RecursionError):
            return None
        place = content.get("data_set") if isinstance(content, dict) else None
        return Path(place) if isinstance(place, str) and place else None

    def write_images(self, place: Path) -> None:
        """Keep where the images lie on this computer; SaveError as `write_draft`."""
        write_json({"data_set": str(place)}, self._root / _IMAGES, overwrite=True)

    def _draft_path(self, task: Task, round_: int) -> Path:
        name = f"{file_name(task.case)}.{round_}-{task.occasion}.json"
        return self._root / "drafts" / file_name(task.reader, "a reader") / name

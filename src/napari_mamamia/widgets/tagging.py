"""A person's own tags of the cases: read with the data set, written at each click."""

from collections.abc import Callable, Iterable
from typing import Final

from qtpy.QtCore import QObject, Signal

from napari_mamamia.core.records import CaseTag
from napari_mamamia.io.phase_files import case_key
from napari_mamamia.widgets.jobs import JobRunner, job_of
from napari_mamamia.widgets.notify import Failed, Finished, Notifier, Outcome
from napari_mamamia.widgets.service_record import Services
from napari_mamamia.widgets.session import Session

__all__ = ["Tagging"]

_LANE: Final = "tags"


class Tagging(QObject):
    """Keeps the tags of the open data set; `changed` says that they are others now.

    `with_reader` is asked to call back once a reader is known: a tag has somebody who set it.
    """

    changed = Signal()

    def __init__(
        self,
        session: Session,
        jobs: JobRunner,
        services: Services,
        notifier: Notifier,
        with_reader: Callable[[Callable[[], None]], None],
    ) -> None:
        super().__init__()
        self._session = session
        self._jobs = jobs
        self._services = services
        self._notifier = notifier
        self._with_reader = with_reader
        self.tags: tuple[CaseTag, ...] = ()
        session.data_set_changed.connect(self.read)

    def of(self, case_id: str) -> tuple[CaseTag, ...]:
        """Return the tags of a case, whoever set them."""
        key = case_key(case_id)
        return tuple(tag for tag in self.tags if case_key(tag.case_id) == key)

    def tag(self, case_id: str, tag: str, on: bool) -> None:
        """Add a tag of the present reader to a case, or remove it."""
        self._with_reader(lambda: self._write(case_id, tag, on))

    def read(self) -> None:
        """Read the tags of the open data set."""
        opened = self._session.opened
        if opened is None:
            return
        workspace = opened.workspace
        self._jobs.start(
            _LANE,
            "Reading the tags",
            lambda: job_of(self._services.read_tags, workspace),
            self._take,
            shown=False,
        )

    # -------------------------------------------------------------------- inner

    def _write(self, case_id: str, tag: str, on: bool) -> None:
        opened, reader = self._session.opened, self._session.reader
        if opened is None or reader is None:
            self._notifier.hint("Tags need an open data set: open its folder first.")
            self.changed.emit()
            return
        others = [one.reader for one in self.of(case_id) if one.tag.casefold() == tag.casefold()]
        if not on and reader not in others and others:
            self._notifier.hint(f"The tag {tag} was set by {', '.join(others)}, who can remove it.")
            self.changed.emit()
            return
        workspace = opened.workspace

        def work() -> tuple[CaseTag, ...]:
            self._services.tag_case(workspace, reader, case_id, tag, on)
            return tuple(self._services.read_tags(workspace))

        # a lane of its own for each tag: a second click must not stop the first from being written
        lane = f"{_LANE} {case_id} {tag}"
        self._jobs.start(lane, "Saving the tag", lambda: job_of(work), self._take, shown=False)

    def _take(self, outcome: Outcome[Iterable[CaseTag]]) -> None:
        if isinstance(outcome, Finished):
            self.tags = tuple(outcome.result)
        elif isinstance(outcome, Failed):
            self._notifier.fail("Keeping the tag", outcome.error)
        self.changed.emit()

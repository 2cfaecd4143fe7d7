"""A reader's tags for cases, which are read with the data set and saved at each click."""

from collections.abc import Callable
from functools import partial
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import Final

from qtpy.QtCore import Signal

from napari_mamamia.core.records import CaseTag
from napari_mamamia.core.texts import tr
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_LANE: Final = "tags"
_NumberedTags = tuple[int, tuple[CaseTag, ...]]
"""Tags with the number of the read operation that returned them, which increases with time."""


class Tagging(WindowPart):
    """A component that stores the tags of each opened data set; `changed` reports a change.

    `with_reader` runs a callback once a reader name is set, because every tag has a reader.
    """

    changed = Signal()

    def __init__(
        self, context: WindowContext, with_reader: Callable[[Callable[[], None]], None]
    ) -> None:
        super().__init__(context)
        self._with_reader = with_reader
        self._tags: dict[tuple[Path, Path], _NumberedTags] = {}
        self._numbers = count(1)
        self._session.data_set_changed.connect(self.read)

    def all_of(self, opened: OpenDataSet | None) -> tuple[CaseTag, ...]:
        """Return the tags by all readers in a data set, as last read."""
        return () if opened is None else self._tags.get(opened.place, (0, ()))[1]

    def of(self, case_id: str, opened: OpenDataSet) -> tuple[CaseTag, ...]:
        """Return the tags by all readers for a case."""
        key = case_key(case_id)
        return tuple(tag for tag in self.all_of(opened) if case_key(tag.case_id) == key)

    def tag(self, case_id: str, tag: str, on: bool, opened: OpenDataSet | None) -> None:
        """Add the current reader's tag to a case, or remove it."""
        if opened is None:
            self._notifier.hint(tr("Tags need an open data set: open its folder first."))
            self.changed.emit()
            return
        self._with_reader(lambda: self._write_tag(case_id, tag, on, opened))

    def read(self) -> None:
        """Read the tags of the open data set."""
        opened = self._session.opened
        if opened is None:
            return
        self._jobs.start(
            _LANE,
            tr("Reading the tags"),
            lambda: self._read_numbered(opened.workspace),
            partial(self._take_tags, opened),
            ended=self.changed.emit,
            shown=False,
        )

    # -------------------------------------------------------------------- inner

    def _write_tag(self, case_id: str, tag: str, on: bool, opened: OpenDataSet) -> None:
        reader = self._session.reader
        if reader is None:  # `_with_reader` asked, but no name was entered
            return
        same = [
            tagged for tagged in self.of(case_id, opened) if tagged.tag.casefold() == tag.casefold()
        ]
        others = [tagged.reader for tagged in same]
        if not on and reader not in others and others:
            self._notifier.hint(
                tr(
                    "The tag {tag} was set by {names}, who can remove it.",
                    tag=tag,
                    names=", ".join(others),
                )
            )
            self.changed.emit()
            return
        workspace = opened.workspace

        def work() -> _NumberedTags:
            self._services.tag_case(workspace, reader, case_id, tag, on)
            return self._read_numbered(workspace)

        # each tag has its own job lane, so that a second click does not cancel the first
        lane = f"{_LANE} {opened.place} {case_id} {tag}"
        take = partial(self._take_tags, opened)
        self._jobs.start(
            lane, tr("Saving the tag"), work, take, ended=self.changed.emit, shown=False
        )

    def _read_numbered(self, workspace: Workspace) -> _NumberedTags:
        return next(self._numbers), tuple(self._services.read_tags(workspace))

    def _take_tags(self, opened: OpenDataSet, tags: _NumberedTags) -> None:
        # a slow job may end after a job that read the tags later
        self._tags[opened.place] = max(
            tags, self._tags.get(opened.place, (0, ())), key=itemgetter(0)
        )

"""Log of events and messages for the Log tab and problem reports, without patient names."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from qtpy.QtCore import QObject, Signal

from napari_mamamia.core.names import count_of
from napari_mamamia.widgets.base.jobs import JobRunner, RunningJob
from napari_mamamia.widgets.base.notify import Failed, Finished, Level, Notifier, Stopped
from napari_mamamia.widgets.base.session import Session

_WORDS: Final = re.compile(r"[^\s,;:()\[\]'\"<>]+")
_CUTS: Final = re.compile(r"[.\-_]")
_SLASHES: Final = re.compile(r"[/\\]")
_PATH: Final = re.compile(r"(?:[A-Za-z]:)?(?:[/\\][^\s,;:()'\"<>/\\]+){2,}")
_FOLDER: Final = "<folder>"


@dataclass(frozen=True, slots=True)
class LogLine:
    """A logged event: local time as HH:MM:SS, level and text."""

    time: str
    level: str
    text: str

    def __str__(self) -> str:
        return f"{self.time}  {self.level:<8} {self.text}"


class EventLog(QObject):
    """A log of messages and jobs; the signal `added` carries a `LogLine`.

    Case ids are replaced by "case k" (the position in the data set) and folder names by a
    placeholder, because both may contain a patient's name.
    """

    added = Signal(object)

    def __init__(self, session: Session, jobs: JobRunner, notifier: Notifier) -> None:
        super().__init__()
        self._session = session
        self._names = Names({})
        notifier.said.connect(self._on_said)
        jobs.started.connect(self._on_started)
        jobs.ended.connect(self._on_ended)
        session.data_set_changed.connect(self._on_data_set)
        session.case_changed.connect(self._on_case)

    def note(self, level: str, text: str) -> None:
        """Record an event."""
        if text:
            time = datetime.now().astimezone().strftime("%H:%M:%S")
            anonymous = self._names.taken_from(text)
            self.added.emit(LogLine(time, level, " ".join(anonymous.split())))

    # -------------------------------------------------------------------- inner

    def _on_said(self, level: Level, text: str) -> None:
        self.note(str(level), text)

    def _on_started(self, ticket: RunningJob) -> None:
        if ticket.shown:
            self.note("start", ticket.title)

    def _on_ended(self, ticket: RunningJob, outcome: object) -> None:
        words = {Finished: "done", Stopped: "stopped", Failed: "failed"}
        if ticket.shown:
            self.note(words.get(type(outcome), "ended"), ticket.title)

    def _on_data_set(self) -> None:
        opened = self._session.opened
        if opened is not None:
            ids = [case.case_id for case in opened.data_set.cases]
            roots = (str(opened.workspace.root), str(opened.data_set.root))
            before = self._names  # Work on a previous data set may still be running.
            aliases = {name: f"case {k}" for k, name in enumerate(ids, start=1)}
            self._names = Names({**before.shown, **aliases}, (*roots, *before.roots))
            self.note("opened", f"data set of {count_of(len(ids), 'case')}, {opened.data_set.kind}")

    def _on_case(self) -> None:
        case_id = self._session.case_id
        if case_id and case_id not in self._names.shown:
            aliases = {**self._names.shown, case_id: "case without a data set"}
            self._names = Names(aliases, self._names.roots)


class Names:
    """Names that must not be recorded, with their replacements.

    Examples
    --------
    >>> Names({"Doe_Jane": "case 1"}).taken_from("Opening Doe_Jane failed: /home/x/Doe_Jane/1.nii")
    'Opening case 1 failed: <folder>/1.nii'
    """

    def __init__(self, shown: dict[str, str], roots: Iterable[str] = ()) -> None:
        self.shown = shown
        # A root of one character, such as "/", would be removed from every text.
        self.roots = tuple(root for root in roots if len(root) > 1)
        # `_WORDS` does not match a name with blanks or brackets as one word. The longest name
        # comes first, because it may contain another name.
        odd = (name for name in shown if _WORDS.fullmatch(name) is None)
        self._odd = sorted(odd, key=len, reverse=True)

    def taken_from(self, text: str) -> str:
        """Return a text in which the names are replaced and folder names are anonymised."""
        for root in self.roots:
            text = text.replace(root, _FOLDER)
        text = _PATH.sub(lambda found: f"{_FOLDER}/{_SLASHES.split(found.group())[-1]}", text)
        for name in self._odd:
            text = text.replace(name, self.shown[name])
        return _WORDS.sub(lambda found: self._hide_name(found.group()), text)

    def _hide_name(self, word: str) -> str:
        if word in self.shown:
            return self.shown[word]
        parts = _SLASHES.split(word)
        if len(parts) > 1:
            return "/".join(self._hide_name(folder) for folder in parts)
        # The longest prefix comes first: with cases A and A_1, the file A_1.nii belongs to A_1.
        for cut in reversed([match.start() for match in _CUTS.finditer(word)]):
            if word[:cut] in self.shown:
                return self.shown[word[:cut]] + word[cut:]
        return word

"""The user's choices for a study: whether to import it, case id, series, clock and phases."""

from dataclasses import dataclass, replace

from napari_mamamia.core.choices import Clock, Dates, Sides
from napari_mamamia.core.errors import Remedy
from napari_mamamia.core.texts import tr
from napari_mamamia.io.dicom.remedies import LEAVE_UNREADABLE_OUT
from napari_mamamia.io.dicom.roles import PHASES, Use
from napari_mamamia.io.exam.selectors import Group, read_selectors
from napari_mamamia.io.exam.sides import SIDES
from napari_mamamia.io.exam.table import UNREADABLE_FILES
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.dicom.finding import FoundStudy, ImportSettings
from napari_mamamia.services.dicom.remedies import SETTINGS, apply_remedy

_UNSORTED = tr("this breast is being analysed: wait, or undo the split below")


@dataclass(frozen=True, slots=True)
class StudyChoice:
    """The choices for one study on the Import page.

    `found` has the id that the user chose. If `parts` or `clock` is None, the import decides;
    `phases` are the selected phases. `left_out` says whether unreadable files are left out, and
    `joins` whether two breasts become one case. `side` is set if this is one breast of a study that
    becomes two cases. `applied` are the remedies that were clicked; `origin` is the index of the
    study in its source.
    """

    found: FoundStudy
    is_wanted: bool
    phases: tuple[int, ...]
    parts: frozenset[Group] | None = None
    clock: Clock | None = None
    left_out: bool = False
    joins: bool = False
    side: str = ""
    applied: tuple[Remedy, ...] = ()
    origin: int = 0

    @property
    def is_default(self) -> bool:
        """Whether the user has changed no choice that affects the phases."""
        everything = len(self.phases) == _n_phases(self.found)
        is_own = self.parts is not None or self.clock is not None or self.left_out or self.joins
        return everything and not (is_own or self.side or self.applied)

    @property
    def has_two_breasts(self) -> bool:
        """Whether parts of the left and the right breast may be phases of this case."""
        if self.side:
            return False
        rows = [row for row in self.found.rows if row.role in PHASES]
        return all(any(side in row.part.split(", ") for row in rows) for side in SIDES)

    @property
    def problem(self) -> str:
        """The reason why the study cannot be imported now, or "" if it can be imported."""
        if self.found.exam is None:
            return self.found.problem
        return "" if self.phases else tr("Keep at least one phase.")

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """The remedies for the study's problem that this page can apply."""
        return tuple(remedy for remedy in self.found.remedies if remedy.option in SETTINGS)

    @property
    def ticked(self) -> frozenset[Group]:
        """The selectors of the parts in use: the user's choice, or else the parts with phases."""
        return _default_ticks(self.found) if self.parts is None else self.parts

    @property
    def ticked_rows(self) -> frozenset[Group]:
        """The checked rows of the table, which include unreadable files until they are left out."""
        return self.ticked | (frozenset() if self.left_out else {UNREADABLE_FILES})

    def settings(self, dates: Dates, existing: Existing) -> ImportSettings:
        """Return the settings of the import."""
        every = len(self.phases) == _n_phases(self.found)
        phases = () if every else self.phases
        return replace(self.for_judging(), phases=phases, dates=dates, existing=existing)

    def for_judging(self) -> ImportSettings:
        """Return the import settings that affect the phases."""
        use = () if self.parts is None else tuple(sorted(self.parts, key=_as_text))
        leave_out = [UNREADABLE_FILES] if self.left_out else []
        if self.side:
            leave_out += read_selectors([f"side={next(s for s in SIDES if s != self.side)}"])
        sides = Sides.JOIN if self.joins else Sides.ASK
        settings = ImportSettings(self.clock, (), use, tuple(leave_out), sides=sides)
        for remedy in self.applied:
            settings = apply_remedy(settings, remedy)
        return settings

    def with_found(self, found: FoundStudy) -> "StudyChoice":
        """Return the choice after the study was analysed again, with all phases selected."""
        named = replace(found, case_id=self.found.case_id)
        is_wanted = found.exam is not None
        return replace(self, found=named, is_wanted=is_wanted, phases=_all_phases(found))

    def with_id(self, case_id: str) -> "StudyChoice":
        """Return the choice with another case id."""
        return replace(self, found=replace(self.found, case_id=case_id))

    def with_phase(self, index: int, is_kept: bool) -> "StudyChoice":
        """Return the choice with one phase selected or left out."""
        phases = {*self.phases, index} if is_kept else {*self.phases} - {index}
        return replace(self, phases=tuple(sorted(phases)))

    def with_remedy(self, remedy: Remedy) -> "StudyChoice":
        """Return the choice with a remedy applied; some remedies correspond to a control."""
        if remedy == Remedy("sides", (Sides.JOIN,)):
            return replace(self, parts=None, joins=True)
        if remedy.option == "clock":
            return replace(self, clock=Clock(remedy.values[0]))
        if remedy == LEAVE_UNREADABLE_OUT:
            return replace(self, left_out=True)
        return replace(self, applied=(*self.applied, remedy))

    def without_last_remedy(self) -> "StudyChoice":
        """Return the choice without the most recently applied remedy."""
        return replace(self, applied=self.applied[:-1])

    def of_each_breast(self) -> tuple["StudyChoice", "StudyChoice"]:
        """Return the choices for the left and the right breast as two cases to be analysed."""
        study = replace(self.found, exam=None, problem=_UNSORTED)
        whole = replace(self, found=study, is_wanted=False, phases=(), parts=None, joins=False)
        first, right = (
            replace(whole, side=side).with_id(f"{self.found.case_id}_{side}") for side in SIDES
        )
        return first, right

    def with_part(self, part: Group, counts: bool) -> "StudyChoice":
        """Return the choice with one part in use or not; the last part in use cannot be removed."""
        if part == UNREADABLE_FILES:
            return replace(self, left_out=not counts)
        parts = self.ticked | {part} if counts else self.ticked - {part}
        # The check boxes replace the remedies that name parts.
        applied = tuple(r for r in self.applied if r.option not in {"use", "leave_out"})
        return replace(self, parts=parts, applied=applied) if parts else self


def first_choice(found: FoundStudy, origin: int = 0) -> StudyChoice:
    """Return the initial choice, with everything selected that can be imported."""
    return StudyChoice(found, found.exam is not None, _all_phases(found), origin=origin)


def _n_phases(found: FoundStudy) -> int:
    return 0 if found.exam is None else len(found.exam.stacks)


def _all_phases(found: FoundStudy) -> tuple[int, ...]:
    return tuple(range(_n_phases(found)))


def _default_ticks(found: FoundStudy) -> frozenset[Group]:
    is_refused = found.exam is None
    return frozenset(
        row.selectors
        for row in found.rows
        if row.selectors
        and row.selectors != UNREADABLE_FILES
        and (row.phases or (is_refused and row.use is not Use.LEFT_OUT))
    )


def _as_text(group: Group) -> str:
    return ",".join(selector.text for selector in group)

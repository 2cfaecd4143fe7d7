"""What the user decided of one study: whether it is imported, its id, series, clock and phases."""

from dataclasses import dataclass, replace

from napari_mamamia.io.dicom_facts import Dates
from napari_mamamia.io.dicom_roles import Use
from napari_mamamia.io.dicom_selectors import Selector, named_series
from napari_mamamia.io.dicom_slices import Clock
from napari_mamamia.services.import_finding import FoundStudy, ImportSettings
from napari_mamamia.services.output_folder import Existing

__all__ = ["StudyChoice", "first_choice"]


@dataclass(frozen=True, slots=True)
class StudyChoice:
    """One study as it stands on the page; `found` carries the id that the user gave it.

    `series` None and `clock` None leave both to the import; `phases` are the ones kept.
    """

    found: FoundStudy
    is_wanted: bool
    phases: tuple[int, ...]
    series: frozenset[int] | None = None
    clock: Clock | None = None

    @property
    def is_default(self) -> bool:
        """Whether the user changed nothing that decides what the phases are."""
        everything = len(self.phases) == _n_phases(self.found)
        return self.series is None and self.clock is None and everything

    @property
    def problem(self) -> str:
        """Why the study cannot be imported as it stands, "" if it can."""
        if self.found.exam is None:
            return self.found.problem
        return "" if self.phases else "Keep at least one phase."

    @property
    def ticked(self) -> frozenset[int]:
        """The numbers of the series that count: the user's, else those that give the phases."""
        if self.series is not None:
            return self.series
        exam = self.found.exam
        rows = [
            row
            for row in self.found.rows
            if row.phases or (exam is None and (row.use is not Use.LEFT_OUT or row.problem))
        ]
        return frozenset(row.number for row in rows if row.number is not None)

    def settings(self, dates: Dates, existing: Existing) -> ImportSettings:
        """Return how the study is imported."""
        every = len(self.phases) == _n_phases(self.found)
        phases = () if every else self.phases
        return ImportSettings(self.clock, phases, self._series(), (), dates, existing)

    def for_judging(self) -> ImportSettings:
        """Return what decides which phases there are."""
        return ImportSettings(self.clock, (), self._series())

    def with_found(self, found: FoundStudy) -> "StudyChoice":
        """Return the choice after the study was judged again: all phases are kept."""
        named = replace(found, case_id=self.found.case_id)
        is_wanted = found.exam is not None
        return replace(self, found=named, is_wanted=is_wanted, phases=_all_phases(found))

    def with_id(self, case_id: str) -> "StudyChoice":
        """Return the choice under another id."""
        return replace(self, found=replace(self.found, case_id=case_id))

    def with_phase(self, index: int, is_kept: bool) -> "StudyChoice":
        """Return the choice with one phase kept or left out."""
        kept = {*self.phases, index} if is_kept else {*self.phases} - {index}
        return replace(self, phases=tuple(sorted(kept)))

    def with_series(self, number: int, counts: bool) -> "StudyChoice":
        """Return the choice with one series counting or not; the last one goes on counting."""
        series = self.ticked | {number} if counts else self.ticked - {number}
        return replace(self, series=series) if series else self

    def _series(self) -> tuple[Selector, ...]:
        return () if self.series is None else named_series(sorted(self.series))


def first_choice(found: FoundStudy) -> StudyChoice:
    """Return the choice before the user said anything: all that can be imported is."""
    return StudyChoice(found, found.exam is not None, _all_phases(found))


def _n_phases(found: FoundStudy) -> int:
    return 0 if found.exam is None else len(found.exam.stacks)


def _all_phases(found: FoundStudy) -> tuple[int, ...]:
    return tuple(range(_n_phases(found)))

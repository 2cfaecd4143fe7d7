"""Texts of the Import page."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from napari_mamamia.core.choices import Sides
from napari_mamamia.core.counting import phase_name
from napari_mamamia.core.errors import Remedy
from napari_mamamia.core.records import CaseWarning
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.io.dicom.remedies import LEAVE_UNREADABLE_OUT
from napari_mamamia.io.exam.exam import Exam
from napari_mamamia.io.exam.selectors import Selector, read_selectors
from napari_mamamia.io.exam.table import SeriesRow, spans
from napari_mamamia.services.dicom.dicom import ImportSummary
from napari_mamamia.services.dicom.finding import FoundStudy

_MOST_LINES = 12
_NO_BREAK = "\N{NO-BREAK SPACE}"
_MAY_BREAK = "\N{ZERO WIDTH SPACE}"
_KEPT_NAMES = {
    "field_strength": tr("field strength"),
    "echo_time": tr("echo time"),
    "repetition_time": tr("repetition time"),
    "flip_angle": tr("flip angle"),
    "slice_thickness": tr("slice thickness"),
    "high_bit": tr("high bit"),
    "scanner_model": tr("scanner model"),
}
_SIDES = {
    Sides.JOIN: tr("join the two breasts into one case"),
    Sides.TWO: tr("make two cases, one for each breast"),
}
_UNITS = {
    "field_strength": " T",
    "echo_time": " ms",
    "repetition_time": " ms",
    "flip_angle": "°",
    "slice_thickness": " mm",
}


def series_text(series: SeriesRow) -> str:
    """Return the number and description of a series."""
    number = "–" if series.number is None else str(series.number)
    part = f" · {series.part}" if series.part else ""
    return f"{number} · {_allow_breaks(series.description) or tr('no description')}{part}"


def kind_text(series: SeriesRow, times_s: Sequence[float] | None, n_before: int | None) -> str:
    """Return the phases and times of a series, or why it is left out, and its number of images."""
    images = tr_n(
        "{n} image",
        "{n} images",
        series.n_images,
    )
    if not series.phases and series.n_phases > 1:
        images = tr("{images}, {n_phases} for each slice", images=images, n_phases=series.n_phases)
    if not series.phases:
        left_out = (
            series.kind
            if series.kind == "not decided"
            else tr("left out: {kind}", kind=series.kind)
        )
        is_told = series.evidence and not series.problem and series.kind != "not chosen"
        evidence = f" ({series.evidence})" if is_told else ""
        return f"{left_out}{evidence}{tr(' – see below') * bool(series.problem)}\n{images}"
    phases = tr("DCE: {phases}", phases=_name_phases(series.phases, n_before))
    times = [] if times_s is None else [f"{times_s[k]:g}" for k in series.phases]
    if len(times) == 1:
        return f"{phases}\n{times[0]}{_NO_BREAK}s · {images.replace(' ', _NO_BREAK)}"
    return f"{phases}\n{', '.join(times)}{_NO_BREAK}s\n{images}" if times else f"{phases}\n{images}"


def _name_phases(phases: Sequence[int], n_before: int | None) -> str:
    names = [phase_name(phase, n_before) for phase in phases]
    is_row = len(phases) > 2 and phases[-1] - phases[0] == len(phases) - 1
    return f"{names[0]} – {names[-1]}" if is_row else ", ".join(names)


def matrix_text(series: SeriesRow) -> str:
    """Return the matrix and spacing of a series on separate lines, or "" if unknown."""
    if series.n_slices == 0:
        return ""
    rows, columns = series.size
    matrix = f"{series.n_slices} x {rows} x {columns}"
    spacing = f"{_NO_BREAK}x ".join(map(_format_mm, series.spacing_mm))
    return f"{matrix.replace(' ', _NO_BREAK)}\n{spacing}{_NO_BREAK}mm"


def _format_mm(length: float) -> str:
    return f"{length:.3g}" if length < 0.1 else f"{round(length, 2):g}"


def remedy_text(remedy: Remedy) -> str:
    """Return the effect of a remedy, or "" if this page cannot apply the remedy.

    Examples
    --------
    >>> remedy_text(Remedy("leave_out", ("series=5,phase=3,4", "series=none")))
    'Leave out phases 3, 4 of series 5; leave out series without number'
    """
    match remedy.option:
        case "leave_out" if remedy == LEAVE_UNREADABLE_OUT:
            text = tr("leave out unreadable files")
        case "use" | "leave_out" as option:
            verb = tr("use") if option == "use" else tr("leave out")
            groups = read_selectors(remedy.values)
            text = "; ".join(f"{verb} {_group_text(group)}" for group in groups)
        case "clock":
            text = tr("order by {clock}", clock=remedy.values[0])
        case "sides":
            text = _SIDES[Sides(remedy.values[0])]
        case "allow_thin":
            text = tr("accept the small number of slices")
        case _:
            text = ""
    return text[:1].upper() + text[1:]


def _group_text(group: Iterable[Selector]) -> str:
    values: dict[str, list[str]] = {}
    for selector in group:
        values.setdefault(selector.key, []).append(selector.value)
    return " of ".join(_values_text(key, names) for key, names in reversed(values.items()))


def _values_text(key: str, values: list[str]) -> str:
    if key == "side":
        return f"the {' and '.join(values)} breast"
    many = "s" * (len(values) > 1 and key != "series")
    if all(map(str.isdecimal, values)):
        return f"{key}{many} {spans(sorted(map(int, values)))}"
    names = ("without number" if value == "none" else value for value in values)
    return f"{key}{many} {', '.join(names)}"


def warning_text(warning: CaseWarning) -> str:
    """Return a warning, with its remedies in brackets."""
    remedies = tr(", or ").join(filter(None, map(remedy_text, warning.remedies)))
    return f"{warning.text}{f' ({remedies})' if remedies else ''}"


def sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop."""
    return f"{text[:1].upper()}{with_full_stop(text[1:])}"


def with_full_stop(text: str) -> str:
    """Return a text that ends with a full stop."""
    return text if text.endswith(".") else f"{text}."


def study_text(found: FoundStudy) -> str:
    """Return a line about a study for the list of studies."""
    day = f"{found.day} · " * bool(found.day)
    if found.exam is None:
        return f"{day}refused"
    n_phases, (z, y, x) = len(found.exam.stacks), found.exam.grid.shape
    return tr_n(
        "{day}{n} phase, {z} x {y} x {x}",
        "{day}{n} phases, {z} x {y} x {x}",
        n_phases,
        day=day,
        z=z,
        y=y,
        x=x,
    )


def found_text(studies: Sequence[FoundStudy]) -> str:
    """Return the number of studies and images in a source, and the omitted files."""
    n_images = sum(study.n_images for study in studies)
    n_foreign = max((study.n_foreign for study in studies), default=0)
    n_refused = sum(study.exam is None for study in studies)
    many = "study" if len(studies) == 1 else "studies"
    lines = [
        tr(
            "{n_studies} {many}, {n_images} images",
            n_studies=len(studies),
            many=many,
            n_images=n_images,
        )
    ]
    if len(studies) > 1 and n_refused:
        lines.append(tr("{n_refused} refused", n_refused=n_refused))
    if n_foreign:
        lines.append(
            tr_n(
                "{n} other file left out: not DICOM",
                "{n} other files left out: not DICOM",
                n_foreign,
            )
        )
    archives = dict.fromkeys(name for study in studies for name in study.archives)
    zips = "".join(
        tr(" {name} is a zip file and was not opened: import it separately.", name=Path(name).name)
        for name in archives
    )
    return "; ".join(lines) + "." + zips


def clock_text(exam: Exam | None) -> str:
    """Return a text about the clocks that order and time the phases, or ""."""
    if exam is None or len(exam.stacks) == 1:
        return ""
    chosen = exam.choice.chosen
    timed = (
        tr("times by {timed_by}", timed_by=chosen.timed_by)
        if chosen.timed_by
        else tr("times unknown")
    )
    return f"{chosen.clock}: {chosen.reason}; {timed}."


def kept_text(kept: Sequence[tuple[str, object]]) -> str:
    """Return a text about the header facts that are kept and those that are removed."""
    parts = ", ".join(
        f"{_KEPT_NAMES.get(name, name)} {value}{_UNITS.get(name, '')}" for name, value in kept
    )
    note = (
        tr("Header information that is kept: the times and {parts}. ", parts=parts) if kept else ""
    )
    return tr(
        "{note}Removed: name, number, birth date and all other patient information. UIDs are "
        "replaced. The images themselves are not changed.",
        note=note,
    )


def result_text(
    summary: ImportSummary, refused: Sequence[FoundStudy], out: Path
) -> tuple[str, str]:
    """Return the result text of an import to `out`, and the level "hint", "warning" or "error"."""
    n_cases = len(summary.imported)
    lines = [
        tr_n("{n} case imported into {out}.", "{n} cases imported into {out}.", n_cases, out=out)
    ]
    warnings = [
        f"{case.case_id}: {with_full_stop(warning_text(warning))}"
        for case in summary.imported
        for warning in case.warnings
    ]
    wrong = [f"{failure.case_id}: {with_full_stop(failure.reason)}" for failure in summary.failures]
    wrong += [f"{study.case_id}: {with_full_stop(study.problem)}" for study in refused]
    if wrong:
        lines.append(tr("{n_wrong} not imported:", n_wrong=len(wrong)))
    every = [*wrong, *warnings]
    lines += [f"• {line}" for line in every[:_MOST_LINES]]
    if len(every) > _MOST_LINES:
        lines.append(tr("… and {n_every} more", n_every=len(every) - _MOST_LINES))
    level = "hint" if not every else "warning" if n_cases else "error"
    return "\n".join(lines), level


def _allow_breaks(text: str) -> str:
    for mark in "_-./":
        text = text.replace(mark, f"{mark}{_MAY_BREAK}")
    return text

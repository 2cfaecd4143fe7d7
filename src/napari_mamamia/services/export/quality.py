"""Write the quality findings of the exported cases as a table and as an HTML page."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from napari_mamamia.annotations.quality import (
    Check,
    Finding,
    Light,
    check_grids,
    check_mask,
    check_phases,
    worst_light,
)
from napari_mamamia.core.case import Case
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.data_set.volumes import read_phase_header
from napari_mamamia.io.files.csv_text import write_csv
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.export.plan import DrawnMask

_COLOURS: Final = {Light.RED: "#D55E00", Light.AMBER: "#E69F00", Light.GREEN: "#009E73"}
_HEAD: Final = ("case_id", "masks", "light", "check", "text")
_WIDTH: Final = "max-width:60em"


@dataclass(frozen=True, slots=True)
class CaseQuality:
    """The quality findings of a case, each with its mask set ("" for the images)."""

    case_id: str
    findings: tuple[tuple[str, Finding], ...]

    @property
    def light(self) -> Light:
        """The worst light of the findings; green without findings."""
        return worst_light(tuple(finding for _, finding in self.findings))


def load_for_export(
    files: CaseFiles, record: CaseRecord | None = None
) -> tuple[Case | None, tuple[Finding, ...]]:
    """Read all phases of a case; return None and a red finding if the reading fails.

    If the affines of the phases differ, the findings name the phases, and nothing is read.
    """
    report_progress(0, 1, "Reading headers")
    try:
        findings = check_grids([read_phase_header(source).grid for source in files.phases])
        if worst_light(findings) is Light.RED:
            return None, findings
        case = load_case(files, record)
    except MamamiaError as error:
        return None, (Finding(Light.RED, Check.GEOMETRY, str(error)),)
    return case, findings


def case_quality(
    case_id: str, case: Case | None, found: tuple[Finding, ...], drawn: Sequence[DrawnMask]
) -> CaseQuality:
    """Check a case and its masks; `found` contains the findings from reading the case."""
    findings = [("", finding) for finding in found]
    if case is not None:
        findings += [("", finding) for finding in (check_phases(case))]
        for mask in drawn:
            report_progress(1, 1, f"Checking the mask of {mask.name}")
            about = check_mask(mask.labels > 0, mask.grid, case.signal[0])
            findings += [(mask.name, finding) for finding in about]
    return CaseQuality(case_id, tuple(findings))


def write_quality(rows: Sequence[CaseQuality], root: Path, *, overwrite: bool) -> tuple[Path, Path]:
    """Write ``quality.csv`` and ``quality.html``; a case without findings has one green row.

    Raises
    ------
    SaveConflictError, SaveError
        If a file exists already or cannot be written.
    """
    table = [row for quality in rows for row in _list_rows(quality)]
    csv_path, html_path = root / "quality.csv", root / "quality.html"
    text = io.StringIO()
    write_csv([_HEAD, *table], text)
    write_text_atomically(csv_path, text.getvalue(), overwrite=overwrite)
    write_text_atomically(html_path, _make_page(rows, table), overwrite=overwrite)
    return csv_path, html_path


def _list_rows(quality: CaseQuality) -> list[tuple[str, ...]]:
    if not quality.findings:
        return [(quality.case_id, "", Light.GREEN.value, "", "nothing unusual was found")]
    return [
        (quality.case_id, masks, finding.light.value, finding.check.value, finding.text)
        for masks, finding in quality.findings
    ]


def _make_page(rows: Sequence[CaseQuality], table: Sequence[tuple[str, ...]]) -> str:
    counts = ", ".join(
        f"{sum(row.light is light for row in rows)} {light.value}" for light in reversed(Light)
    )
    head = "".join(f"<th>{escape(name)}</th>" for name in _HEAD)
    body = "\n".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in table)
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en"><head><meta charset="utf-8"><title>Quality of the export</title>\n'
        "<style>body{font-family:sans-serif;margin:1.5em;" + _WIDTH + "}"
        "table{border-collapse:collapse}td,th{text-align:left;padding:.2em .6em;"
        "border-bottom:1px solid #ccc;vertical-align:top}</style></head><body>\n"
        f"<h1>Quality of the export</h1><p>{count_of(len(rows), 'case')}: {counts}. Red: not "
        "usable "
        "unchanged; amber: check it; green: nothing unusual was found. Not a medical device.</p>\n"
        f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></body></html>\n"
    )


def _html_cell(text: str) -> str:
    colour = next((_COLOURS[light] for light in Light if light.value == text), "")
    style = f' style="border-left:.6em solid {colour}"' if colour else ""
    return f"<td{style}>{escape(text)}</td>"

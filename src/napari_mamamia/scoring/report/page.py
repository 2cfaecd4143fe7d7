"""A report of tables and figures in one self-contained HTML page, without network or script."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.scoring.report.drawing import Draw, draw_here
from napari_mamamia.scoring.report.report_figures import ReportFigure
from napari_mamamia.scoring.report.text import ReportTable


@dataclass(frozen=True, slots=True, eq=False)
class PageSection:
    """A part of a page: what it `says` first, then notes, tables, figures, tables in a fold."""

    title: str
    tables: tuple[ReportTable, ...] = ()
    figures: tuple[ReportFigure, ...] = ()
    notes: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    folded: tuple[ReportTable, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """A page: `facts` stand below its title, `warnings` before the parts, `failures` at its end."""

    title: str
    facts: tuple[str, ...]
    sections: tuple[PageSection, ...]
    warnings: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    footer: str = ""


@dataclass(frozen=True, slots=True)
class _Drawn:
    name: str
    caption: str
    svg: Markup


@dataclass(frozen=True, slots=True)
class _Section:
    part: PageSection
    drawings: tuple[_Drawn, ...]


def render_page(page: Page, draw: Draw = draw_here) -> str:
    """Return the text of the page; all text is escaped."""
    environment = Environment(
        loader=PackageLoader("napari_mamamia.scoring", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    sections = [_draw_section(section, draw) for section in page.sections]
    report_progress(1, 1, "Writing the report")
    return environment.get_template("page.html.j2").render(
        page=page, sections=sections, created=now_utc(), software=software_version()
    )


def write_page(page: Page, path: Path, *, overwrite: bool = False, draw: Draw = draw_here) -> Path:
    """Write a page to `path` and return it.

    Raises
    ------
    SaveConflictError
        If the file exists and `overwrite` is off.
    SaveError
        If the system refuses to write.
    """
    write_text_atomically(path, render_page(page, draw), overwrite=overwrite)
    return path


def _draw_section(section: PageSection, draw: Draw) -> _Section:
    return _Section(section, _draw_figures(section.figures, draw))


def _draw_figures(figures: Sequence[ReportFigure], draw: Draw) -> tuple[_Drawn, ...]:
    drawings = []
    for figure in figures:
        svg = Markup(draw(figure.drawing).svg)  # noqa: S704 - matplotlib escapes the texts in it
        drawings.append(_Drawn(figure.name, figure.caption, svg))
    return tuple(drawings)

"""A report of tables and figures in one self-contained HTML page, without network or script."""

from base64 import b64encode
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
from napari_mamamia.scoring.report.text import Answer, ReportTable, Way


@dataclass(frozen=True, slots=True, eq=False)
class PageSection:
    """A part of a page: what it `says` first, then notes, tables, figures, tables in a fold.

    `pictures` of cases stand small beside each other, each with its caption.
    """

    title: str
    tables: tuple[ReportTable, ...] = ()
    figures: tuple[ReportFigure, ...] = ()
    notes: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    folded: tuple[ReportTable, ...] = ()
    pictures: tuple[ReportFigure, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """A page: `facts` stand below its title, `warnings` before the parts, `failures` at its end.

    `summary` stands before everything, `ways` lead to other pages. `created` and `software` say
    when it was made and with what; "" means now and this.
    """

    title: str
    facts: tuple[str, ...]
    sections: tuple[PageSection, ...]
    warnings: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    footer: str = ""
    summary: tuple[Answer, ...] = ()
    ways: tuple[Way, ...] = ()
    created: str = ""
    software: str = ""


@dataclass(frozen=True, slots=True)
class _Drawn:
    name: str
    caption: str
    svg: Markup


@dataclass(frozen=True, slots=True)
class _Picture:
    name: str
    caption: str
    uri: str


@dataclass(frozen=True, slots=True)
class _Section:
    part: PageSection
    drawings: tuple[_Drawn, ...]
    pictures: tuple[_Picture, ...]


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
        page=page,
        sections=sections,
        created=page.created or now_utc(),
        software=page.software or software_version(),
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
    pictures = tuple(
        _Picture(one.name, one.caption, f"data:image/png;base64,{_encode_png(one, draw)}")
        for one in section.pictures
    )
    return _Section(section, _draw_figures(section.figures, draw), pictures)


def _encode_png(figure: ReportFigure, draw: Draw) -> str:
    return b64encode(draw(figure.drawing).png).decode("ascii")


def _draw_figures(figures: Sequence[ReportFigure], draw: Draw) -> tuple[_Drawn, ...]:
    drawings = []
    for figure in figures:
        svg = Markup(draw(figure.drawing).svg)  # noqa: S704 - matplotlib escapes the texts in it
        drawings.append(_Drawn(figure.name, figure.caption, svg))
    return tuple(drawings)

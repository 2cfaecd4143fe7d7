"""Self-contained HTML pages with tables and figures, which need no network."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.scoring.report.drawing import Draw, draw_here
from napari_mamamia.scoring.report.report_figures import ReportFigure
from napari_mamamia.scoring.report.text import Answer, ReportTable, Way

_LINE: Final = 90
"""Number of characters of the title that the footer of each printed page shows."""


@dataclass(frozen=True, slots=True, eq=False)
class PageSection:
    """A section of a page with sentences (`says`), notes, tables, figures and collapsed tables.

    `pictures` of cases are shown side by side with captions, either small or large enough to read.
    """

    title: str
    tables: tuple[ReportTable, ...] = ()
    figures: tuple[ReportFigure, ...] = ()
    notes: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    folded: tuple[ReportTable, ...] = ()
    pictures: tuple[ReportFigure, ...] = ()
    has_large_pictures: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """A page with `facts` below its title, `warnings` before the sections, `failures` at the end.

    `summary` comes before everything else, and `ways` link to other pages. `created` and `software`
    are the time and the program of creation; "" means now and this software. If the page
    `is_sortable`, a script in the page sorts its tables.
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
    is_sortable: bool = False


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
    """Return the HTML text of the page; all text is escaped."""
    sections = [_draw_section(section, draw) for section in page.sections]
    return _fill_template("page.html.j2", page, sections)


def render_print(page: Page, draw: Draw = draw_here) -> str:
    """Return the page as simple HTML of tables and pictures only, for Qt's text engine."""
    sections = [
        _Section(
            section,
            (),
            tuple(_picture_of(figure, draw) for figure in (*section.pictures, *section.figures)),
        )
        for section in page.sections
    ]
    return _fill_template("print.html.j2", page, sections)


def _fill_template(name: str, page: Page, sections: Sequence[_Section]) -> str:
    report_progress(1, 1, "Writing the report")
    return find_template(name).render(
        page=page,
        sections=sections,
        created=page.created or now_utc(),
        software=page.software or software_version(),
    )


def find_template(name: str) -> Template:
    """Return the template of a page, which escapes all text."""
    return _open_templates().get_template(name)


@cache  # This keeps compiled templates, which take 10 to 20 ms each.
def _open_templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("napari_mamamia.scoring", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["as_css"] = _quote_css
    return environment


def _quote_css(text: str) -> Markup:
    short = text if len(text) <= _LINE else f"{text[: _LINE - 1]}…"
    escaped = (char if char.isalnum() else f"\\{ord(char):x} " for char in short)
    return Markup("".join(escaped))  # noqa: S704 - letters, digits and escapes alone


def write_page(page: Page, path: Path, *, overwrite: bool = False, draw: Draw = draw_here) -> Path:
    """Write a page to `path` and return it.

    Raises
    ------
    SaveConflictError
        If the file exists and `overwrite` is off.
    SaveError
        If the system cannot write the file.
    """
    write_text_atomically(path, render_page(page, draw), overwrite=overwrite)
    return path


def _draw_section(section: PageSection, draw: Draw) -> _Section:
    pictures = tuple(_picture_of(picture, draw) for picture in section.pictures)
    return _Section(section, _draw_figures(section.figures, draw), pictures)


def _picture_of(figure: ReportFigure, draw: Draw) -> _Picture:
    encoded = b64encode(draw(figure.drawing).png).decode("ascii")
    return _Picture(figure.name, figure.caption, f"data:image/png;base64,{encoded}")


def _draw_figures(figures: Sequence[ReportFigure], draw: Draw) -> tuple[_Drawn, ...]:
    drawings = []
    for figure in figures:
        svg = Markup(draw(figure.drawing).svg)  # noqa: S704 - matplotlib escapes the texts in it
        drawings.append(_Drawn(figure.name, figure.caption, svg))
    return tuple(drawings)

"""Records of the window's pages: pages of the core, then pages of installed features."""

from functools import cache
from typing import Final

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.features import (
    RESULTS,
    Page,
    add_named,
    list_features,
    load_part,
)

_COMPARISON: Final = frozenset({Hidden.REFERENCE, Hidden.MODEL, Hidden.OTHER_READERS})
_REFERENCE: Final = frozenset({Hidden.REFERENCE})
_NUMBERS: Final = frozenset({Hidden.NUMBERS})
_WIDGETS: Final = "napari_mamamia.widgets"
_FLOWS: Final = f"{_WIDGETS}.dock.page_flows"

BUILT_IN: Final = (
    Page("Cases", "Work list"),
    Page(
        "Batch scoring",
        "Work list",
        f"{_WIDGETS}.batch.page:BatchPage",
        f"{_FLOWS}:make_batch",
        title="Batch",
        reveals=_COMPARISON,
    ),
    Page("View", "Read", menu=False),
    Page("Findings", "Read"),
    Page("Kinetics", "Read"),
    Page("Predict", "Mask", reveals=frozenset({Hidden.MODEL})),
    Page("Refine", "Mask"),
    Page("Score", "Check & export", reveals=_REFERENCE | _NUMBERS),
    Page(
        "Report",
        "Check & export",
        f"{_WIDGETS}.report.page:ReportPage",
        f"{_FLOWS}:make_report",
        reveals=_COMPARISON | _NUMBERS,
    ),
    Page(
        "Export",
        "Check & export",
        f"{_WIDGETS}.export.page:ExportPage",
        f"{_FLOWS}:make_export",
        reveals=_COMPARISON,
    ),
    Page(
        "Import",
        "",
        f"{_WIDGETS}.dicom.page:ImportPage",
        f"{_FLOWS}:make_import",
        reveals=_REFERENCE,
        menu=False,
    ),
)
"""Pages of the core. A page without a flow is created together with the panel."""


@cache
def list_pages() -> tuple[Page, ...]:
    """Return all pages; a feature's page cannot use the name of another page."""
    pages = {page.name: page for page in BUILT_IN}
    for feature in list_features():
        add_named(pages, feature, feature.pages, "page")
    return tuple(pages.values())


def list_sections(step: str) -> tuple[str, ...]:
    """Return the names of the pages that are sections of a step, in order."""
    return tuple(page.name for page in list_pages() if page.step == step)


def load_tabs() -> dict[str, type]:
    """Return the classes of the results tabs that features add, by name."""
    return {
        page.name: widget
        for feature in list_features()
        for page in feature.pages
        if page.step == RESULTS and (widget := load_part(feature, page.widget)) is not None
    }


def find_page(name: str) -> Page:
    """Return the record of a page."""
    return next(page for page in list_pages() if page.name == name)

"""`mamamia demo`, `cases`, `layouts`, `view` and `desktop`: make, list or open data sets."""

import json
import os
import shlex
import sys
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_mamamia.cli import options, printing
from napari_mamamia.cli.opening import open_at
from napari_mamamia.cli.scripting import report_result, reports_result
from napari_mamamia.core import errors
from napari_mamamia.core.features import find_hook
from napari_mamamia.core.program.child_environment import child_environment
from napari_mamamia.core.program.child_process import become, python_command
from napari_mamamia.core.program.system import IS_LINUX

if TYPE_CHECKING:
    from napari_mamamia.io.files.sources import DataSet


@reports_result
def demo(
    out: options.OutOption,
    one_breast: Annotated[
        bool, typer.Option("--one-breast", help="Make 8 sagittal exams of one breast instead.")
    ] = False,
    resume: options.ResumeOption = False,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Make 12 phantom cases with known truth, then predict, score and export them.

    Example: mamamia demo --out DEMO
    """
    from napari_mamamia.io.files.json_text import read_json
    from napari_mamamia.phantom import PhantomMix
    from napari_mamamia.services.demo import make_demo
    from napari_mamamia.services.score.report import REPORT
    from napari_mamamia.services.score.text import cohort_lines

    mix = PhantomMix.ONE_BREAST if one_breast else PhantomMix.MIXED
    summary = printing.run(partial(make_demo, out, options.existing_policy(resume, overwrite), mix))
    report_result(partial(read_json, summary.scored.summary))
    printing.print_scores(summary.scored.rows)
    print("\n".join(cohort_lines(summary.scored.model)))
    for warning in summary.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print("Phantoms are made by this software, so their scores say nothing about patients.")
    print(f"Scores:  {summary.scored.table}\nReport:  {summary.scored.folder / REPORT}")
    print(f"Export:  {summary.export}")
    print(f"To open the data set in the window:  mamamia view {shlex.quote(str(summary.data_set))}")
    printing.finish(summary.failures)


@reports_result
def cases(
    data_set: options.DataSetArgument,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    columns: options.ColumnsOption = None,
    layout: options.LayoutOption = "",
    patient: options.PatientOption = None,
    visit: options.VisitOption = None,
    keep_layout: Annotated[
        bool,
        typer.Option(
            "--keep-layout",
            help=(
                "With --layout: use this layout for the data set from now on; writes "
                "DATASET.layout.toml next to it."
            ),
        ),
    ] = False,
) -> None:
    """List the cases of a data set, with their masks and problems.

    Example: mamamia cases DATASET
    """
    from napari_mamamia.services.case.data_set import case_rows
    from napari_mamamia.services.case.described import describe_data_set
    from napari_mamamia.services.case.layout_choice import keep_named_layout

    opened = open_at(data_set, columns, layout, patient, visit)
    rows = case_rows(opened)
    if keep_layout:
        print(f"Layout: {keep_named_layout(data_set, layout)}", file=sys.stderr)
    report_result(partial(describe_data_set, opened))
    if as_csv:
        printing.print_case_csv(rows)
    else:
        printing.print_case_table(rows, opened)
    if any(row.problems for row in rows):
        raise typer.Exit(printing.NOT_EVERY_CASE)


@reports_result
def layouts(
    propose: Annotated[
        Path | None,
        typer.Option(
            "--propose",
            metavar="FOLDER",
            help=(
                "Propose a layout for this folder, based on its file names, for you to correct "
                "and use."
            ),
        ),
    ] = None,
) -> None:
    """List the known data-set layouts, or suggest one for a folder.

    Example: mamamia layouts --propose FOLDER
    """
    from napari_mamamia.io.layouts.known import list_layouts
    from napari_mamamia.io.layouts.propose import propose_layout
    from napari_mamamia.io.layouts.tree import list_tree

    if propose is not None:
        proposal = propose_layout(list_tree(propose))
        report_result(lambda: {"layout": proposal})
        print(proposal, end="")
        return
    known = list_layouts()
    report_result(lambda: [{"name": layout.name, "title": layout.title} for layout in known])
    for layout in known:
        print(f"{layout.name:24}{layout.title}")


def view(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Data set, DICOM or patient's folder, zip, or the volumes of one case in order. "
            "Without a path, the window opens its start page.",
            show_default=False,
        ),
    ] = None,
    case: Annotated[str | None, typer.Option("--case", metavar="ID", help="Case to open.")] = None,
    blind: Annotated[
        bool,
        typer.Option(
            "--blind",
            help=(
                "Hide the reference, the model, other readers, numbers and clinical data, and "
                "record this."
            ),
        ),
    ] = False,
    protocol: Annotated[
        Path | None,
        typer.Option(
            "--protocol",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Annotation protocol (JSON), which may also hide data.",
        ),
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(
            "--study",
            metavar="STUDY",
            parser=Path,
            help="Folder of the review study to read.",
        ),
    ] = None,
    reader: Annotated[
        str | None, typer.Option("--reader", metavar="NAME", help="Your name or id (with --study).")
    ] = None,
    panels: Annotated[
        bool, typer.Option("--panels", help="Also show napari's own menu and panels (key F10).")
    ] = False,
    in_window: Annotated[
        bool,
        typer.Option(
            "--in-window",
            help="Report a path that cannot be opened in the window instead of the terminal.",
        ),
    ] = False,
) -> None:
    """Open exams, a data set or a review study in the window, or open its start page.

    Example: mamamia view DATASET --case DUKE_001
    """
    paths = paths or []
    if study is not None:
        _require_study_alone(paths, case, blind=blind, protocol=protocol)
    elif reader is not None:
        raise typer.BadParameter("expected --reader only together with --study: add --study STUDY")
    if case is not None and len(paths) != 1:
        raise typer.BadParameter(
            "expected --case only together with a data set: add the path of "
            "the data set that contains it"
        )
    for path in paths:
        if not in_window and not path.exists():
            raise errors.FormatError(
                f"expected a file or folder at {path}, but found none: check the path"
            )
    if find_spec("napari") is None or find_spec("qtpy") is None:
        raise errors.MissingExtraError("napari", "pyqt6")
    if IS_LINUX and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))):
        raise errors.MamamiaError(
            "expected a graphical display, but DISPLAY and WAYLAND_DISPLAY are not set: open the "
            "window on a computer with a screen, or connect with ssh -X"
        )
    opening = study or next(iter(paths), None)
    sources = [str(path.absolute()) for path in paths]
    names = {
        "MAMAMIA_OPENING": opening and opening.absolute().name,
        "MAMAMIA_SOURCES": sources and json.dumps(sources),
        "MAMAMIA_CASE": case,
        "MAMAMIA_PROTOCOL": protocol and protocol.resolve(),
        "MAMAMIA_STUDY": study and study.absolute(),
        "MAMAMIA_READER": reader,
        "MAMAMIA_START": 1,
    }
    switches = {"BLIND": blind, "PANELS": panels, "IN_WINDOW": in_window}
    names |= {f"MAMAMIA_{name}": int(is_on) for name, is_on in switches.items()}
    environment = child_environment(**{name: str(value) for name, value in names.items() if value})
    # The window starts in the home folder: files in the current folder must not affect it.
    become(python_command("napari_mamamia.window"), environment, _find_home())


def _find_home() -> Path:
    home = Path.home()
    if not home.is_dir():
        raise errors.MamamiaError(
            f"expected the home folder {home} to exist, but found none: create the folder, or set "
            "HOME to an existing folder"
        )
    return home


def _require_study_alone(
    paths: list[Path], case: str | None, *, blind: bool, protocol: Path | None
) -> None:
    """Raise `typer.BadParameter` if other settings are combined with a study."""
    if paths:
        raise typer.BadParameter(
            "expected either paths or --study STUDY (optionally with --reader NAME): keep only "
            "one of them"
        )
    if case is not None or blind or protocol is not None:
        raise typer.BadParameter(
            "expected no option other than --reader together with --study: the study determines "
            "the case, the hidden data and the protocol"
        )


def desktop(
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the menu entry and its icon instead.")
    ] = False,
) -> None:
    """Add the window to the desktop's menu of programs (Linux), for this account.

    Example: mamamia desktop
    """
    from napari_mamamia.services.desktop import install_entry, remove_entry

    if remove:
        removed = remove_entry()
        print("\n".join(f"Removed: {file}" for file in removed) or "There was no menu entry.")
    else:
        print(f"Entry: {install_entry()}")


def check_names(names: Mapping[str, str]) -> dict[str, str]:
    """Check that the window will be able to open the requested items.

    Parameters
    ----------
    names
        The environment variables that `view` will set.

    Returns
    -------
    dict
        The environment variables to set, with names spelled as in the data set or study, and with
        the data set that contains the files.

    Raises
    ------
    MamamiaError
        If there is no such data set, case, study or reader, or the protocol cannot be read.
    """
    from napari_mamamia.io.workspace.protocol import read_protocol

    checked = _name_settings()
    if "MAMAMIA_PROTOCOL" in names:
        read_protocol(Path(names["MAMAMIA_PROTOCOL"]))
    if "MAMAMIA_STUDY" in names:
        checked |= find_hook("view_study")(
            Path(names["MAMAMIA_STUDY"]), names.get("MAMAMIA_READER")
        )
    if "MAMAMIA_SOURCES" in names and "MAMAMIA_IN_WINDOW" not in names:
        sources = [Path(path) for path in json.loads(names["MAMAMIA_SOURCES"])]
        checked |= _check_sources(sources, names.get("MAMAMIA_CASE"))
    return checked


def _check_sources(sources: list[Path], case: str | None) -> dict[str, str]:
    from napari_mamamia.services.case.sources import SourceKind, find_source, link_volumes

    kind, path = find_source(sources)
    if kind is SourceKind.VOLUMES:
        path, case = link_volumes(sources)
    elif kind in (SourceKind.FEATURE, SourceKind.ARCHIVE):
        return {}
    # The window reads the headers of DICOM files anyway, and helps if they do not fit.
    if kind is not SourceKind.DICOM or case is not None:
        data_set = _find_data_set(path)
        path = data_set.root
        case = None if case is None else data_set.case(case).case_id
    sources_text = json.dumps([str(path.resolve())])
    return {"MAMAMIA_SOURCES": sources_text} | ({} if case is None else {"MAMAMIA_CASE": case})


def _find_data_set(path: Path) -> "DataSet":
    """Open the data set at a path; the window will ask about an unknown layout."""
    from napari_mamamia.io.layouts.find import find_data_set

    try:
        return find_data_set(path)
    except (errors.LayoutChoiceError, errors.UnknownLayoutError) as error:
        raise type(error)(str(error), remedies=(errors.Remedy("in_window"),)) from None


def _name_settings() -> dict[str, str]:
    """Return the variable that names a writable copy of napari's settings, or {} if not needed."""
    from napari_mamamia.io.files.user_folders import copy_read_only_settings, napari_settings

    copy = copy_read_only_settings()
    if copy is None:
        return {}
    typer.echo(
        f"napari's settings {napari_settings()} cannot be written: this window uses a copy of the "
        "settings, and changes in napari's preferences are lost",
        err=True,
    )
    return {"NAPARI_CONFIG": str(copy)}

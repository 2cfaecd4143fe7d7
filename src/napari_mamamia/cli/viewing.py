"""`mamamia demo`, `mamamia cases`, `mamamia view`: make a data set, list it, open the window."""

import shlex
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from napari_mamamia.cli.opening import open_at
from napari_mamamia.cli.options import (
    ColumnsOption,
    DataSetArgument,
    LayoutOption,
    OutOption,
    OverwriteOption,
    ResumeOption,
    existing_policy,
)
from napari_mamamia.cli.printing import (
    NOT_EVERY_CASE,
    finish,
    print_case_csv,
    print_case_table,
    print_scores,
    run,
)
from napari_mamamia.core.errors import MissingExtraError
from napari_mamamia.core.features import find_hook
from napari_mamamia.core.program.child_environment import child_environment
from napari_mamamia.core.program.child_process import become, python_command


def demo(
    out: OutOption,
    one_breast: Annotated[
        bool, typer.Option("--one-breast", help="8 sagittal exams of one breast instead.")
    ] = False,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Make 12 phantom cases with known truth, then predict, score and export them."""
    from napari_mamamia.phantom import PhantomMix
    from napari_mamamia.services.demo import make_demo
    from napari_mamamia.services.score.report import REPORT
    from napari_mamamia.services.score.text import cohort_lines

    mix = PhantomMix.ONE_BREAST if one_breast else PhantomMix.MIXED
    summary = run(partial(make_demo, out, existing_policy(resume, overwrite), mix))
    print_scores(summary.scored.rows)
    print("\n".join(cohort_lines(summary.scored.model)))
    for warning in summary.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print("Phantoms are made by this software: their scores say nothing about patients.")
    print(f"Scores:  {summary.scored.table}\nReport:  {summary.scored.folder / REPORT}")
    print(f"Export:  {summary.export}")
    print(f"To see it in the window:  mamamia view {shlex.quote(str(summary.data_set))}")
    finish(summary.failures)


def cases(
    data_set: DataSetArgument,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything that is known of each case as JSON.")
    ] = False,
    columns: ColumnsOption = None,
    layout: LayoutOption = "",
    keep_layout: Annotated[
        bool,
        typer.Option(
            "--keep-layout",
            help="With --layout: describe the data set so from now on, in DATASET.layout.toml "
            "beside it.",
        ),
    ] = False,
) -> None:
    """List the cases of a data set with their masks and problems."""
    from napari_mamamia.services.case.data_set import case_rows
    from napari_mamamia.services.case.described import describe_data_set
    from napari_mamamia.services.case.layout_choice import keep_named_layout

    opened = open_at(data_set, columns, layout)
    rows = case_rows(opened)
    if keep_layout:
        print(f"Layout: {keep_named_layout(data_set, layout)}", file=sys.stderr)
    if as_json:
        print(describe_data_set(opened))
    elif as_csv:
        print_case_csv(rows)
    else:
        print_case_table(rows, opened)
    if any(row.files.problems for row in rows):
        raise typer.Exit(NOT_EVERY_CASE)


def layouts(
    propose: Annotated[
        Path | None,
        typer.Option(
            "--propose",
            metavar="FOLDER",
            help="Print a layout for this folder, from the names in it, to be corrected and used.",
        ),
    ] = None,
) -> None:
    """List the data-set layouts that are known, or propose one for a folder."""
    from napari_mamamia.io.layouts.known import list_layouts
    from napari_mamamia.io.layouts.propose import propose_layout
    from napari_mamamia.io.layouts.tree import list_tree

    if propose is not None:
        print(propose_layout(list_tree(propose)), end="")
    else:
        for layout in list_layouts():
            print(f"{layout.name:24}{layout.title}")


def view(
    data_set: Annotated[
        Path | None,
        typer.Argument(metavar="DATASET", help="Data-set folder, case folder or 4-D file."),
    ] = None,
    case: Annotated[str | None, typer.Option("--case", metavar="ID", help="Case to open.")] = None,
    blind: Annotated[
        bool,
        typer.Option(
            "--blind",
            help="Hide reference, model, other readers, numbers and clinical data, and record it.",
        ),
    ] = False,
    protocol: Annotated[
        Path | None,
        typer.Option(
            "--protocol",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Annotation protocol (JSON); it may hide data, too.",
        ),
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(
            "--study", metavar="STUDY", parser=Path, help="Folder of a review study to read in."
        ),
    ] = None,
    reader: Annotated[
        str | None, typer.Option("--reader", metavar="NAME", help="With --study: your name or id.")
    ] = None,
    panels: Annotated[
        bool, typer.Option("--panels", help="Show napari's own menu and panels, too (key F10).")
    ] = False,
) -> None:
    """Open the window on a data set, or on a review study."""
    if (data_set is None) is (study is None) or (study is None and reader is not None):
        raise typer.BadParameter(
            "expected a DATASET or --study STUDY (optionally with --reader NAME): give one"
        )
    if study is not None and (case is not None or blind or protocol is not None):
        raise typer.BadParameter(
            "expected --study with --reader alone: the study determines the case, what is "
            "hidden and the protocol"
        )
    if find_spec("napari") is None or find_spec("qtpy") is None:
        raise MissingExtraError("napari", "pyqt6")
    asked = (
        _name_data_set(data_set, case, protocol, blind=blind)
        if data_set is not None
        else find_hook("view_study")(study or Path(), reader)
    )
    if panels:
        asked["MAMAMIA_PANELS"] = "1"
    asked |= _name_settings()
    # The window starts in the home folder: files in the current folder must not affect it.
    command = python_command("napari", "-w", "napari-mamamia", "Cases")
    become(command, child_environment(**asked), Path.home())


def _name_settings() -> dict[str, str]:
    """Return a writable copy of napari's settings file if one is needed, else an empty dict."""
    from napari_mamamia.io.files.user_folders import copy_read_only_settings, napari_settings

    copy = copy_read_only_settings()
    if copy is None:
        return {}
    typer.echo(
        f"napari's settings {napari_settings()} cannot be written: this window has a copy of them, "
        "and changes in napari's preferences are not kept",
        err=True,
    )
    return {"NAPARI_CONFIG": str(copy)}


def _name_data_set(
    data_set: Path, case: str | None, protocol: Path | None, *, blind: bool
) -> dict[str, str]:
    """Return the arguments for opening a data set in the window."""
    from napari_mamamia.io.layouts.find import find_data_set
    from napari_mamamia.io.workspace.protocol import read_protocol

    layout = find_data_set(data_set)
    asked = {"MAMAMIA_DATA_SET": str(layout.root.resolve())}
    if case is not None:
        asked["MAMAMIA_CASE"] = layout.case(case).case_id
    if blind:
        asked["MAMAMIA_BLIND"] = "1"
    if protocol is not None:
        read_protocol(protocol)
        asked["MAMAMIA_PROTOCOL"] = str(protocol.resolve())
    return asked

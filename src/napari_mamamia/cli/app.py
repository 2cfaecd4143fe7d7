"""The command `mamamia`: which commands there are, and how the program starts and ends.

A command's module is imported when it is asked for: `mamamia --help` reads this table alone.
"""

import codecs
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from io import TextIOWrapper
from types import FrameType
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from napari_mamamia.cli.given import Program
from napari_mamamia.core.errors import MamamiaError, list_remedies, refusal_text
from napari_mamamia.core.names import readable_name
from napari_mamamia.core.program.child_environment import leave_out_current_folder
from napari_mamamia.core.provenance import software_version
from napari_mamamia.io.files.own_paths import sweep_temporary


@dataclass(frozen=True, slots=True)
class Entry:
    """A command of the program: its name, where it is (module of cli, name in it), what it does.

    `does` is the first line of the command's own help, which a test holds.
    """

    name: str
    place: str
    does: str

    def load(self) -> Any:
        """Return the command, or the group of commands, with its options."""
        module, _, name = self.place.partition(":")
        member = getattr(import_module(f"napari_mamamia.cli.{module}"), name)
        if not isinstance(member, typer.Typer):
            program = Program()
            program.command(self.name)(member)
            member = program
        command = typer.main.get_command(member)
        command.name = self.name
        return command


ENTRIES: Final[Mapping[str, tuple[Entry, ...]]] = {
    "Begin": (
        Entry(
            "demo",
            "viewing:demo",
            "Make 12 phantom cases with known truth, then predict, score and export them.",
        ),
        Entry("view", "viewing:view", "Open the window on a data set, or on a review study."),
        Entry(
            "check-computer",
            "submitting:check_computer",
            "Check this computer: hardware, extras, isolation, and models whose result is known.",
        ),
    ),
    "Cases": (
        Entry(
            "import",
            "importing:import_",
            "Turn DICOM into cases: OUT/images/ID/ID_000k.nii.gz, patient info, a clinical row.",
        ),
        Entry("pacs", "pacs:app", "A PACS over DICOMweb."),
        Entry(
            "cases",
            "viewing:cases",
            "List the cases of a data set, what each has and what is wrong.",
        ),
        Entry(
            "clinical",
            "clinical:clinical",
            "Show what is read of a clinical table, what is not, and which columns may be meant.",
        ),
        Entry(
            "register",
            "case.registering:register",
            "Register phases: a new data set OUT and OUT/registration.csv; masks stay valid.",
        ),
        Entry(
            "straighten",
            "case.straightening:straighten",
            "Copy cases with sheared axes onto grids at right angles: writes a new data set OUT.",
        ),
    ),
    "Masks and measurements": (
        Entry(
            "predict",
            "predicting:predict",
            "Segment the tumour: writes OUT/ID.nii.gz and OUT/ID.json for each case.",
        ),
        Entry("models", "models:models", "Models that you added; nothing is ever downloaded."),
        Entry(
            "kinetics",
            "case.kinetics:kinetics",
            "Measure contrast curves, curve types, FTV and sizes: writes OUT/kinetics.csv (.xlsx).",
        ),
        Entry(
            "perfusion",
            "case.perfusion:perfusion",
            "Fit Ktrans, ve, kep, vp of ultrafast exams with a known T1: maps, OUT/perfusion.csv.",
        ),
        Entry(
            "report",
            "case.report:report",
            "Write each case as one page, for research: OUT/ID.html, PDF, DICOM SR; "
            "OUT/measures.csv.",
        ),
        Entry(
            "review",
            "review.commands:app",
            "A study that several people read on one shared folder, without a server.",
        ),
        Entry(
            "findings",
            "exporting:findings",
            "Write what readers described on page Findings: OUT/findings.csv (.parquet).",
        ),
        Entry(
            "replay",
            "replay:replay",
            "Make a mask again from its journal, bit for bit; with images, each stroke too.",
        ),
        Entry(
            "export",
            "exporting:export",
            "Write masks as a bundle: exact geometry, provenance, checksums, quality; verified.",
        ),
        Entry(
            "verify",
            "exporting:verify",
            "Check a bundle: missing, changed and extra files, each mask's place, labels.",
        ),
    ),
    "Scores": (
        Entry(
            "score",
            "scoring:score",
            "Compare folders of masks: OUT/case_scores.csv (.xlsx, .parquet), OUT/summary.json.",
        ),
        Entry(
            "score-table",
            "scoring:score_table",
            "Compute a cohort's numbers from case scores that somebody else computed.",
        ),
        Entry(
            "score-pcr",
            "scoring:score_pcr",
            "Score predicted response (pCR) against the clinical table: writes OUT/summary.json.",
        ),
        Entry(
            "score-classifier",
            "classifier:score_classifier",
            "Score classifiers: AUC, operating points, models against models and a reader.",
        ),
        Entry(
            "rank",
            "ranking:rank",
            "Rank algorithms by every method and say how sure: OUT/rank.json, OUT/ranks.csv.",
        ),
        Entry(
            "score-detection",
            "detection:score_detection",
            "Score detected lesions: FROC, raFROC, precision, patients; writes OUT/detection.json.",
        ),
        Entry(
            "stack",
            "classifier:stack",
            "Join several models' scores to one, with and without a reader, by nested "
            "cross-validation.",
        ),
        Entry(
            "audit",
            "classifier:audit",
            "Find what of a table's metadata tells its label, or the parts of its split, apart.",
        ),
        Entry(
            "split",
            "classifier:split",
            "Deal the patients of a table to parts, every stratum within one patient of its share.",
        ),
        Entry(
            "run-submission",
            "submitting:run_submission",
            "Run a challenge submission in isolation: OUT/pred_segmentations, OUT/predictions.csv.",
        ),
        Entry("site", "sites:app", "Sites that evaluate at home and give numbers away."),
        Entry(
            "challenge",
            "challenge:app",
            "A challenge in a folder, from its frozen list to its proof.",
        ),
    ),
}
"""Every command, below the heading that `mamamia --help` has for it."""


class _Commands(Mapping[str, Any]):
    """Commands by name, each imported when it is first asked for."""

    def __init__(self) -> None:
        self._entries = {entry.name: entry for group in ENTRIES.values() for entry in group}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._entries[name].load()
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class _Group(TyperGroup):
    """The commands of the table; only the one that is run, or asked about, is imported."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._settings = settings
        self.commands = _Commands()  # type: ignore[assignment]  # read only: nothing adds to it

    def list_commands(self, _: Any) -> list[str]:
        """Return the names, as the help shows them."""
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help from the table."""
        commands = {
            entry.name: TyperCommand(entry.name, help=entry.does, rich_help_panel=heading)
            for heading, entries in ENTRIES.items()
            for entry in entries
        }
        TyperGroup(**{**self._settings, "commands": commands}).format_help(ctx, formatter)


app = Program(
    cls=_Group,
    help="Tumour annotation and benchmark scoring on breast DCE-MRI. Not a medical device.",
    epilog="Exit codes: 0 every case done, 1 could not be done, 2 wrong usage, 3 finished but not "
    "every case (each is named with its reason), 130 stopped.",
    no_args_is_help=True,
)


_SHOWN = "napari_mamamia.shown"


def _replace_characters(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return what stands for signs that a terminal cannot show: U+FFFD for bytes of a file name."""
    if isinstance(error, UnicodeEncodeError) and error.encoding.replace("-", "") == "utf8":
        return readable_name(error.object[error.start : error.end]).encode(), error.end
    return codecs.backslashreplace_errors(error)


def main() -> None:
    """Run the command line; errors that the user can mend are one line, not a traceback."""
    leave_out_current_folder()
    codecs.register_error(_SHOWN, _replace_characters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_SHOWN)
    warnings.filterwarnings("ignore", module=r"pydicom(\.|$)")  # what matters we say ourselves
    for name in ("SIGTERM", "SIGHUP"):
        _stop_at(name)
    sweep_temporary()
    try:
        app()
    except MamamiaError as error:
        from napari_mamamia.cli.remedies import name_remedies

        _exit_with_message(f"error: {error}{name_remedies(list_remedies(error))}", 1)
    except OSError as error:
        _exit_with_message(f"error: {refusal_text(error)}", 1)


def _stop_at(name: str) -> None:
    """Let a signal end the program as Ctrl-C does, which tidies up; a second one ends it at once.

    One that is ignored, as below nohup, stays so.
    """
    # Windows has no SIGHUP.
    number = getattr(signal, name, None)
    if number is not None and signal.getsignal(number) is signal.SIG_DFL:
        signal.signal(number, _stop_on_signal)


def _stop_on_signal(number: int, _: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)
    raise KeyboardInterrupt


@app.callback(invoke_without_command=True)
def _print_version(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        print(software_version())
        raise typer.Exit


def _exit_with_message(message: str, code: int) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(code)

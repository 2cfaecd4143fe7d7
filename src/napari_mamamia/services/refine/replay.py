"""Rebuild a mask from its journal, and check that replaying its strokes gives the same mask."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from napari_mamamia.core import errors
from napari_mamamia.core.case import Case, LabelMap
from napari_mamamia.core.edits import EditingSummary, Step
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.core.texts import tr_n
from napari_mamamia.io.data_set.volumes import write_labels
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.own_paths import sweep
from napari_mamamia.io.workspace.journal import Opened, PlacedRecord, scan_journal
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path, write_provenance
from napari_mamamia.services.refine.edit_case import summary_settings
from napari_mamamia.services.refine.journal_play import JournalPlay, Sitting, play_journal
from napari_mamamia.services.refine.mask_prints import phase_prints
from napari_mamamia.smartpaint.brush.features import FeatureImages, measure_features
from napari_mamamia.smartpaint.evidence.stroke import VERSION
from napari_mamamia.smartpaint.grow.compiled import prepare_steps
from napari_mamamia.smartpaint.session.evidence_stroke import EVIDENCE_VERSION, WEIGHTS
from napari_mamamia.smartpaint.session.session import EditingSession

_NOTE: Final = "replayed from the journal"


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of replaying a journal.

    Parameters
    ----------
    path, sha256
        The path and the checksum of the written mask.
    case_id, reader, sittings
        The case and the reader of the mask, and each opening with its times.
    summary
        The summary of the strokes, their path, the tools and the time.
    n_strokes, n_repeated
        The number of brush strokes that were replayed from their parameters, and the number that
        gave identical voxels. Both are None without images.
    notes
        Sentences on differences and omissions.
    is_whole
        Whether the journal was read to the end without damage or contradiction.
    """

    path: Path
    sha256: str
    case_id: str
    reader: str
    sittings: tuple[Sitting, ...]
    summary: EditingSummary
    n_voxels: int
    n_strokes: int | None = None
    n_repeated: int | None = None
    notes: tuple[str, ...] = ()
    is_whole: bool = True


@dataclass(slots=True)
class _Repeated:
    """The number of replayed strokes, and the step numbers of strokes with a different result.

    `n_of_other_rules` counts strokes that were computed by a different version of the rules.
    `n_learned` counts strokes that a network proposed; a replay never runs the network.
    """

    images: FeatureImages
    n_strokes: int = 0
    different: list[str] = field(default_factory=list)
    n_of_other_rules: int = 0
    n_learned: int = 0


@reads("a journal from which the mask can be rebuilt", "choose the journal next to the mask")
def replay_journal(journal: Path, out: Path, case: Case | None = None) -> Replay:
    """Rebuild the mask at a journal's last record and write it to `out`.

    The recorded differences reproduce the mask exactly. With `case`, each stroke is also painted
    again from its brush and path, and the result is compared. If a journal is damaged or
    contradicts one of its checksums, the newest verified mask is written, and `Replay.is_whole` is
    False.

    Parameters
    ----------
    journal
        The file ``ID.journal``, which is not changed.
    out
        The mask file to write (``.nii.gz``, ``.nii`` or ``.nrrd``). Its provenance is written next
        to it. Existing files are never overwritten.

    Raises
    ------
    SaveConflictError
        If `out` or its provenance exists.
    FormatError
        If the file is not a journal, or none of its records can be used.
    CaseError, GridMismatchError
        If the journal belongs to a different case.
    """
    _require_free(out)
    repeated = None
    if case is not None:
        prepare_steps()
        repeated = _Repeated(measure_features(case))
    play = JournalPlay(
        journal,
        refusal=lambda opened: _require_case(opened, case),
        watch=lambda session, step: _repeat_stroke(session, step, repeated),
    )
    play = play_journal(play)
    if play.session is None:
        raise _no_records(journal, play.damage_text)
    notes = [play.damage_text] if play.damages else []
    if case is not None:
        notes += _image_notes(play, case)
    if repeated is not None:
        notes += _stroke_notes(repeated)
    return _write_mask(play, play.session, out, repeated, notes)


def case_of_journal(journal: Path) -> str:
    """Return the id of a journal's case.

    Raises
    ------
    FormatError
        If the file is not a journal, or its first record is damaged.
    """
    first = next(scan_journal(journal), None)
    if isinstance(first, PlacedRecord) and isinstance(first.record, Opened):
        return first.record.case_id
    raise _no_records(journal)


def _no_records(journal: Path, damage: str = "") -> errors.FormatError:
    because = f" ({damage})" if damage else ""
    return errors.FormatError(
        f"expected {journal} to be a journal, but it has no complete record{because}: choose the "
        "file ID.journal next to the mask"
    )


def _repeat_stroke(session: EditingSession, step: Step, repeated: _Repeated | None) -> None:
    """Paint a stroke again, compare the result with its record, and undo the stroke."""
    stroke, parameters = step.edit.stroke, dict(step.edit.parameters)
    if repeated is None or stroke is None or not stroke.path:
        return
    if WEIGHTS in parameters:
        repeated.n_learned += 1
        return
    if stroke.brush.tool.is_smart and parameters.get(EVIDENCE_VERSION) != VERSION:
        repeated.n_of_other_rules += 1
        return
    locked = parameters.get("locked") or ""
    session.locked = frozenset(int(label) for label in str(locked).split())
    session.images = repeated.images
    session.press(stroke.path[0], stroke.brush)
    for point in stroke.path[1:]:
        session.drag(point)
    difference = session.current_difference()
    session.locked = frozenset()
    repeated.n_strokes += 1
    if difference is None or not difference.same_bits(step.difference):
        repeated.different.append(f"{step.number} ({step.edit.name})")


def _require_case(opened: Opened, case: Case | None) -> str:
    """Return the case id; raise if the journal belongs to a different case."""
    if case is None:
        return ""
    if opened.case_id != case.case_id:
        raise errors.CaseError(
            f"expected the journal of case {case.case_id}, but got the journal of case "
            f"{opened.case_id}: choose the case of the journal"
        )
    if not opened.base.grid.is_same_place(case.grid):
        raise errors.GridMismatchError(
            f"expected the journal to match the grid of case {case.case_id} (shape "
            f"{case.grid.shape}), but its shape {opened.base.grid.shape} or its affine differs: "
            "use the images that were edited"
        )
    return ""


def _image_notes(play: JournalPlay, case: Case) -> list[str]:
    """Return a note if the images differ from the images used for painting."""
    now = phase_prints(case)
    then = play.sittings[-1].opened.phases
    if not then or then == now:
        return []
    return ["the images differ from the images that were edited, so replayed strokes may differ"]


def _stroke_notes(repeated: _Repeated) -> list[str]:
    notes = []
    if repeated.n_of_other_rules:
        notes.append(
            tr_n(
                "{n} stroke was made by a version of this program with different rules and could "
                "not be replayed; its saved result was used instead",
                "{n} strokes were made by a version of this program with different rules and "
                "could not be replayed; their saved results were used instead",
                repeated.n_of_other_rules,
            )
        )
    if repeated.n_learned:
        notes.append(
            tr_n(
                "{n} learned-brush stroke could not be replayed; its saved result was used instead",
                "{n} learned-brush strokes could not be replayed; their saved results were used "
                "instead",
                repeated.n_learned,
            )
        )
    if not repeated.different:
        return notes
    many = ", ".join(repeated.different[:10]) + (" ..." if len(repeated.different) > 10 else "")
    notes.append(
        f"these strokes differ from the record if they are painted again: step {many}; a "
        "different processor may round the exponential function differently; the mask is made "
        "from the record"
    )
    return notes


def _write_mask(
    play: JournalPlay,
    session: EditingSession,
    out: Path,
    repeated: _Repeated | None,
    notes: list[str],
) -> Replay:
    opened = play.sittings[-1].opened
    summary = session.summary
    note = f"{_NOTE} of {play.sittings[0].first_at} to {play.last_at}"
    provenance = Provenance(
        case_id=opened.case_id,
        maker=Maker.READER,
        name=opened.reader,
        parameters=summary_settings(summary),
        seconds=round(summary.seconds, 1),
        started_from=summary.started_from,
        note=note,
    )
    # The mask is written last: if the program is killed before, no mask is without provenance,
    # and the replay can be repeated.
    write_provenance(provenance, sidecar_path(out), overwrite=True)
    write_labels(LabelMap.of(session.labels, opened.base.grid), out)
    return Replay(
        out,
        sha256_of(out),
        opened.case_id,
        opened.reader,
        play.sittings,
        summary,
        int(np.count_nonzero(session.labels)),
        repeated.n_strokes if repeated else None,
        repeated.n_strokes - len(repeated.different) if repeated else None,
        tuple(notes),
        not play.damages,
    )


def _require_free(out: Path) -> None:
    sweep(out.parent)
    for path in (out, sidecar_path(out)):
        if path.exists() and not _is_of_killed_replay(out):
            raise errors.SaveConflictError(
                f"{path} already exists, so nothing was written: choose a different name"
            )


def _is_of_killed_replay(out: Path) -> bool:
    """Return whether `out` has the provenance of a killed replay that did not write its mask."""
    if out.exists():
        return False
    try:
        return read_provenance(sidecar_path(out)).note.startswith(_NOTE)
    except (errors.MamamiaError, OSError):
        return False

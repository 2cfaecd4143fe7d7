"""Texts shown in adjudication: queue, problems, and matched lesions."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.client import DisputeRow
from napari_mamamia.features.review.services.judging import LesionRow, LesionTable

ENDS: Final = (CaseState.ACCEPTED, CaseState.SIGNED, CaseState.REJECTED)
NO_MASK: Final = tr(
    "Copy a reading or a consensus, or draw your own mask on the Refine page first."
)
NO_REASON: Final = tr("Give a reason in a few words.")
OTHER_GRID: Final = tr("The mask of {} is on a different grid from the images and is not shown.")
MM3_PER_ML: Final = 1000.0


def describe_queue(rows: Sequence[DisputeRow]) -> str:
    """Return the text that states how many cases wait, and in what order."""
    counts = Counter(
        "ended" if row.state in ENDS else "agree" if row.state is CaseState.READ else "disagree"
        for row in rows
    )
    if not counts["disagree"] + counts["agree"]:
        return tr("No case is waiting for adjudication.") + (" Decided:" if rows else "")
    parts = [tr("{counts} with disagreement, the lowest Dice first", counts=counts["disagree"])]
    parts += [tr("{counts} in agreement, waiting to be accepted", counts=counts["agree"])] * bool(
        counts["agree"]
    )
    parts += [tr("{counts} decided", counts=counts["ended"])] * bool(counts["ended"])
    return "; ".join(parts)


def describe_row(dispute: DisputeRow) -> str:
    """Return the text shown for a case in the queue."""
    why = "; ".join(dispute.because)
    if dispute.state is CaseState.READ:
        why = why or tr("the readings agree")
    elif dispute.state is CaseState.ACCEPTED:
        why = tr("decided, not signed")
    elif dispute.state in ENDS:
        state = tr("rejected") if dispute.state is CaseState.REJECTED else dispute.state
        why = f"{state}: {why}".rstrip(": ")
    who = tr(" · taken by {judge}", judge=dispute.judge) if dispute.judge else ""
    visit = tr(" · visit {visit}", visit=dispute.visit) if dispute.visit else ""
    return f"{dispute.case_id}{visit} · {why}{who}"


def describe_lesions(table: LesionTable, first: str, second: str) -> str:
    """Return the text on matched and unmatched lesions and on the agreement of answers."""
    if not table.rows and not table.lost_first and not table.lost_second:
        return tr("Neither reading has a lesion.")
    text = tr(
        "Lesions: {n_both} found by both readers, {n_first} only by {first}, {n_second} only by "
        "{second}",
        n_both=table.n_both,
        n_first=table.n_first,
        first=first,
        n_second=table.n_second,
        second=second,
    )
    if table.n_parts:
        text += tr(", {n_parts} split or merged", n_parts=table.n_parts)
    parts = [text]
    if table.answers:
        n_same = sum(answer.is_same for answer in table.answers)
        parts.append(
            tr(
                "lesions found by both readers: {n_same} of {n_answers} answers agree",
                n_answers=len(table.answers),
                n_same=n_same,
            )
        )
    for name, lost in ((first, table.lost_first), (second, table.lost_second)):
        if lost:
            parts.append(
                tr(
                    "{name} describes lesion {lost}, which is not in the mask",
                    name=name,
                    lost=", ".join(lost),
                )
            )
    if table.n_left_out:
        parts.append(
            tr_n(
                "{n} smaller component left out",
                "{n} smaller components left out",
                table.n_left_out,
            )
        )
    return "; ".join(parts)


def describe_lesion(lesion: LesionRow, first: str, second: str) -> str:
    """Return the text shown for a lesion in the list: reader, numbers and answers."""
    if lesion.first and lesion.second:
        text = tr(
            "lesion {number} ({first}) = lesion {other} ({second}) · Dice {dsc:.2f}",
            first=first,
            number=lesion.first,
            second=second,
            other=lesion.second,
            dsc=lesion.dsc,
        )
        return "; ".join((text, *_describe_answers(lesion)))
    is_first = bool(lesion.first)
    name, other = (first, second) if is_first else (second, first)
    volume = lesion.volume_first_mm3 if is_first else lesion.volume_second_mm3
    number = lesion.first or lesion.second
    if lesion.part_of:
        return tr(
            "lesion {number} ({name}), part of lesion {whole} ({other}) · {volume:.2f} ml",
            name=name,
            number=number,
            other=other,
            whole=lesion.part_of,
            volume=volume / MM3_PER_ML,
        )
    return tr(
        "only {name}: lesion {number} · {volume:.2f} ml",
        name=name,
        number=number,
        volume=volume / MM3_PER_ML,
    )


def _describe_answers(lesion: LesionRow) -> list[str]:
    texts = [
        f"{answer.question}: {answer.first or '–'} / {answer.second or '–'}"
        for answer in lesion.answers
        if not answer.is_same
    ]
    n_same = len(lesion.answers) - len(texts)
    return [
        *texts,
        *([tr_n("{n} identical answer", "{n} identical answers", n_same)] * (n_same > 0)),
    ]

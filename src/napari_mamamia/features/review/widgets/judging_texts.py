"""What a judge is told, in words: what waits, what cannot be done, and which lesion is which."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.client_records import DisputeRow
from napari_mamamia.features.review.services.lesion_rows import LesionRow, LesionTable

ENDS: Final = (CaseState.ACCEPTED, CaseState.SIGNED, CaseState.REJECTED)
NO_MASK: Final = tr("Take a reading, a rule, or draw your own on page Refine first.")
NO_REASON: Final = tr("Say in a few words why.")
OTHER_GRID: Final = tr("The mask of {} lies on another grid than the images: it is not shown.")
MM3_PER_ML: Final = 1000.0


def describe_queue(rows: Sequence[DisputeRow]) -> str:
    """Return what waits for a judge and in what order, in words."""
    counts = Counter(
        "ended" if row.state in ENDS else "agree" if row.state is CaseState.READ else "disagree"
        for row in rows
    )
    if not counts["disagree"] + counts["agree"]:
        return tr("Nothing waits for a judge now.") + (" Decided:" if rows else "")
    parts = [tr("{counts} disagree, the lowest Dice first", counts=counts["disagree"])]
    parts += [tr("{counts} agree and wait to be accepted", counts=counts["agree"])] * bool(
        counts["agree"]
    )
    parts += [tr("{counts} decided", counts=counts["ended"])] * bool(counts["ended"])
    return "; ".join(parts)


def describe_row(one: DisputeRow) -> str:
    """Return a line of what waits for a judge."""
    why = "; ".join(one.because)
    if one.state is CaseState.READ:
        why = why or tr("the readings agree")
    elif one.state is CaseState.ACCEPTED:
        why = tr("decided, not signed")
    elif one.state in ENDS:
        why = f"{tr('left out') if one.state is CaseState.REJECTED else one.state}: {why}".rstrip(
            ": "
        )
    who = tr(" · {judge} is at it", judge=one.judge) if one.judge else ""
    return f"{one.case_id} · {why}{who}"


def describe_lesions(table: LesionTable, first: str, second: str) -> str:
    """Return how many lesions both marked, how many one alone, and what both said of them."""
    if not table.rows and not table.lost_first and not table.lost_second:
        return tr("Neither reading has a lesion.")
    text = tr(
        "Lesions: {n_both} of both, {n_first} only {first}, {n_second} only {second}",
        n_both=table.n_both,
        n_first=table.n_first,
        first=first,
        n_second=table.n_second,
        second=second,
    )
    if table.n_parts:
        text += tr(", {n_parts} split or joined", n_parts=table.n_parts)
    parts = [text]
    if table.answers:
        n_same = sum(answer.is_same for answer in table.answers)
        parts.append(
            tr(
                "answers about those of both: {n_same} of {n_answers} the same",
                n_answers=len(table.answers),
                n_same=n_same,
            )
        )
    for name, lost in ((first, table.lost_first), (second, table.lost_second)):
        if lost:
            parts.append(
                tr(
                    "{name} describes lesion {lost}, which is not in that mask",
                    name=name,
                    lost=", ".join(lost),
                )
            )
    if table.n_left_out:
        parts.append(
            tr_n("{n} smaller part is left out", "{n} smaller parts are left out", table.n_left_out)
        )
    return "; ".join(parts)


def describe_lesion(one: LesionRow, first: str, second: str) -> str:
    """Return a line of the list of lesions: whose it is, and what both said of it."""
    if one.first and one.second:
        text = tr(
            "{number} of {first} = {other} of {second} · Dice {dsc:.2f}",
            first=first,
            number=one.first,
            second=second,
            other=one.second,
            dsc=one.dsc,
        )
        return "; ".join((text, *_describe_answers(one)))
    is_first = bool(one.first)
    name, other = (first, second) if is_first else (second, first)
    volume = one.volume_first_mm3 if is_first else one.volume_second_mm3
    number = one.first or one.second
    if one.part_of:
        return tr(
            "{number} of {name}, a part of {whole} of {other} · {volume:.2f} ml",
            name=name,
            number=number,
            other=other,
            whole=one.part_of,
            volume=volume / MM3_PER_ML,
        )
    return tr(
        "only {name}: lesion {number} · {volume:.2f} ml",
        name=name,
        number=number,
        volume=volume / MM3_PER_ML,
    )


def _describe_answers(one: LesionRow) -> list[str]:
    """Return the answers that differ, and how many are the same."""
    texts = [
        f"{answer.question}: {answer.first or '–'} / {answer.second or '–'}"
        for answer in one.answers
        if not answer.is_same
    ]
    n_same = len(one.answers) - len(texts)
    return [*texts, *([tr_n("{n} answer the same", "{n} answers the same", n_same)] * (n_same > 0))]

"""A study as a form plans it: drafted from what was typed, and told in lines."""

from dataclasses import dataclass
from html import escape
from pathlib import Path

from napari_mamamia.core.blinding import Blinding
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.review import ConsensusRule, ReadingMode, StudyPlan, Triggers
from napari_mamamia.io.files.user_folders import review_folder
from napari_mamamia.io.review.keys import make_lead_key
from napari_mamamia.io.review.study_file import read_case_list
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.review.make_study import (
    StudyDraft,
    StudyPeople,
    draft_study,
    freeze_study,
    read_lead_keys,
)

_MOST_PAIRS = 10


@dataclass(frozen=True, slots=True)
class StudyWish:
    """What a lead typed; `repeat_share` is 0 to 0.5, files are None where none was named.

    Readings disagree below a Dice of `dice_below`, None for whatever it is; `order` is a queue of
    quality control that everybody reads by.
    """

    data_set: Path
    name: str
    mode: ReadingMode
    n_readers: int
    blinding: Blinding
    people: StudyPeople
    repeat_share: float = 0.0
    seed: int = 42
    honeypots: Path | None = None
    protocol: Path | None = None
    consensus: ConsensusRule = ConsensusRule.MAJORITY_BACKGROUND
    dice_below: float | None = 0.7
    order: Path | None = None


def plan_study(wish: StudyWish) -> StudyDraft:
    """Return the study as it would be; nothing is written. Errors as `draft_study`.

    Raises
    ------
    CaseError
        If no data set or title was typed.
    """
    if wish.data_set == Path() or not wish.name:
        raise CaseError("expected a data set and a title, got an empty line: type both")
    plan = StudyPlan(
        wish.name,
        wish.mode,
        wish.n_readers,
        wish.blinding,
        wish.consensus,
        Triggers(dice_below=wish.dice_below),
        repeat_share=wish.repeat_share,
        seed=wish.seed,
    )
    pots = () if wish.honeypots is None else read_case_list(wish.honeypots)
    opened = open_data_set(wish.data_set)
    return draft_study(
        opened, plan, wish.people, honeypots=pots, protocol=wish.protocol, order=wish.order
    )


def freeze_with_key(
    draft: StudyDraft, folder: Path, lead: str, passphrase: str, others: str = ""
) -> str:
    """Freeze a study that binds the key of a lead, made here now, and those of others.

    Parameters
    ----------
    lead, passphrase
        Whose key is made on this computer; without a passphrase none is.
    others
        Of the other leads, see `read_lead_keys`.

    Raises
    ------
    CaseError
        As `freeze_study`, or if the passphrase is too short.
    """
    keys = list(read_lead_keys(others))
    if passphrase:
        keys.append((lead, make_lead_key(review_folder(), passphrase)))
    return freeze_study(draft, folder, lead_keys=keys)


def describe_draft(draft: StudyDraft) -> tuple[str, ...]:
    """Return who would read what and what to know, as lines whose names are safe in HTML."""
    study, deal = draft.study, draft.deal
    names = {one.reader_id: escape(one.name) for one in study.readers}
    repeats = dict(deal.n_repeats)
    lines = [f"{len(study.cases)} case(s)"]
    for reader, load in deal.loads:
        again = f", {repeats[reader]} of them hidden repeats" if repeats.get(reader) else ""
        lines.append(f"{names[reader]}: {load} reading(s){again}")
    if len(deal.pairs) <= _MOST_PAIRS:
        lines += [f"{names[a]} and {names[b]} share {count} case(s)" for a, b, count in deal.pairs]
    lines.append(study.plan.blinding.text or "Not blind")
    return (*lines, *(f"Note: {escape(note)}" for note in draft.notes))

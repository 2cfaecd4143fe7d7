"""Write reader agreement as ``agreement.json``, as tables, and as lines of text."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.form import Form
from napari_mamamia.core.names import count_of
from napari_mamamia.features.review.rules.agreement import Estimate
from napari_mamamia.features.review.rules.form_words import word_question, word_term, word_unit
from napari_mamamia.features.review.rules.ratings import (
    CategoryAgreement,
    NumberAgreement,
    PairedValues,
)
from napari_mamamia.features.review.services.agreement.agree import (
    NSD_TOLERANCE_MM,
    CaseAgreement,
    LesionAgreement,
    MaskAgreement,
    MaskPair,
    StudyAgreement,
)
from napari_mamamia.io.files.csv_text import write_csv
from napari_mamamia.io.files.save import saving
from napari_mamamia.io.tables.tables import plain_content, write_json

AGREEMENT: Final = "agreement.json"
SCHEMA: Final = 1
_ROWS: Final = ("cases", "pairs", "repeat_pairs", "honeypot_pairs")
_DEFINITIONS: Final = {
    "interval": "95 % percentiles over resampled cases; undefined resamples are counted",
    "both_empty": "two empty masks agree, but have no Dice and are not included in means",
    "one_empty": "Dice 0, no HD95 and no NSD",
    "hd95_mm": "95th percentile of the distances between contours, the larger direction, mm",
    "nsd": f"proportion of contour voxels within {NSD_TOLERANCE_MM:g} mm of the other contour",
    "volumes": "mm3; bias is first - second, ratio first / second; empty masks have no ratio",
    "icc": "ICC(A,1): two-way random, absolute agreement, one reader (McGraw and Wong 1996)",
    "lesions": "26-connected components, matched by overlap (IoU 0.1 or more), then a shared "
    "voxel, then centres less than 10 mm apart; n_first and n_second are marked by one reader "
    "only, n_parts are split or merged; positive is 2 n_both / (2 n_both + n_first + n_second); "
    "dsc of n_both",
    "n_alone": (
        "lesions with an answer from one reader only, although others read the case; they are not "
        "included in kappa and alpha"
    ),
    "n_computed": (
        "answers that the program measured on the reader's own mask and that the reader "
        "did not change; they agree to the extent that the masks agree"
    ),
    "kappa": "Cohen's, unweighted; linear and quadratic where the categories have an order",
    "fleiss": "over items with n_readers answers",
    "objects": "of honeypots, a mask as one object: valid from IoU 0.4 on, as CVAT counts shapes",
    "alpha": "Krippendorff's, nominal, readers may be missing; ordinal where there is an order",
}


def save_agreement(result: StudyAgreement, folder: Path) -> tuple[Path, ...]:
    """Write ``agreement.json`` and four tables, replacing old files, and return their paths.

    ``agreement_cases.csv`` has one row per case, ``agreement_pairs.csv`` one per pair of masks (its
    `kind`: readers, repeat, honeypot), ``agreement_readers.csv`` one per pair of readers, and
    ``agreement_questions.csv`` one per statistic of each question.
    """
    content = {
        "mamamia_agreement": SCHEMA,
        "definitions": _DEFINITIONS,
        **{
            field.name: plain_content(getattr(result, field.name))
            for field in fields(result)
            if field.name not in _ROWS
        },
    }
    pairs = [
        (kind, *asdict(row).values())
        for kind, rows in (
            ("readers", result.pairs),
            ("repeat", result.repeat_pairs),
            ("honeypot", result.honeypot_pairs),
        )
        for row in rows
    ]
    cases = [tuple(asdict(case).values()) for case in result.cases]
    tables = (
        ("agreement_cases.csv", _name_fields(CaseAgreement), cases),
        ("agreement_pairs.csv", ("kind", *_name_fields(MaskPair)), pairs),
        ("agreement_readers.csv", *_table_readers(result)),
        ("agreement_questions.csv", _QUESTION_HEAD, tuple(_table_questions(result))),
    )
    write_json(content, folder / AGREEMENT, overwrite=True)
    for name, head, rows in tables:
        save_rows(head, rows, folder / name, overwrite=True)
    return (folder / AGREEMENT, *(folder / name for name, _, _ in tables))


def save_rows(
    head: Sequence[str], rows: Iterable[Sequence[Any]], path: Path, *, overwrite: bool = False
) -> None:
    """Write a table as CSV; NaN and None become empty cells.

    Raises
    ------
    SaveConflictError
        If `path` exists and `overwrite` is False.
    SaveError
        If the system does not allow writing.
    """
    cells = (["" if value is None or value != value else value for value in row] for row in rows)
    with (
        saving(path, overwrite=overwrite) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as stream,
    ):
        write_csv((head, *cells), stream)


def _name_fields(record: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(record))


def _spell_estimate(name: str) -> tuple[str, str, str]:
    return name, f"{name}_low", f"{name}_high"


def _list_estimate(estimate: Estimate | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if estimate is None else (estimate.value, estimate.low, estimate.high)


def _table_readers(result: StudyAgreement) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    head = (
        *("kind", "first", "second", "n", "n_both_empty", "n_one_empty"),
        *(cell for name in ("dsc", "hd95_mm", "nsd") for cell in _spell_estimate(name)),
        *("bias_mm3", "sd_mm3", "limit_low_mm3", "limit_high_mm3"),
        *("ratio", "ratio_limit_low", "ratio_limit_high", "n_without_ratio"),
        *_spell_estimate("icc_a1"),
        *("n_lesions_both", "n_lesions_first", "n_lesions_second", "n_lesion_parts"),
        *(cell for name in ("lesion_agreement", "lesion_dsc") for cell in _spell_estimate(name)),
    )
    rows: list[tuple[Any, ...]] = []
    groups = (
        ("readers", result.readers, result.volumes),
        ("repeat", result.repeats, result.repeat_volumes),
        ("honeypot", tuple(honeypot.masks for honeypot in result.honeypots), ()),
    )
    for kind, masks, volumes in groups:
        by_names = {(volume.first, volume.second): volume for volume in volumes}
        for mask in masks:
            lesions = _row_of_lesions(result.lesions if kind == "readers" else (), mask)
            rows.append((kind, *_row_of_masks(mask), *_row_of_volumes(by_names, mask), *lesions))
    return head, rows


def _row_of_masks(agreement: MaskAgreement) -> tuple[Any, ...]:
    numbers = (
        cell
        for part in (agreement.dsc, agreement.hd95_mm, agreement.nsd)
        for cell in _list_estimate(part)
    )
    return (
        agreement.first,
        agreement.second,
        agreement.n,
        agreement.n_both_empty,
        agreement.n_one_empty,
        *numbers,
    )


def _row_of_volumes(
    by_names: dict[tuple[str, str], PairedValues], masks: MaskAgreement
) -> tuple[Any, ...]:
    one = by_names.get((masks.first, masks.second))
    if one is None:
        return (None,) * 11
    limits, ratio = one.bland_altman, one.ratio
    return (
        *(limits.bias, limits.sd, limits.low, limits.high),
        *(ratio.ratio, ratio.low, ratio.high, ratio.n_left_out),
        *_list_estimate(one.icc),
    )


def _row_of_lesions(lesions: Sequence[LesionAgreement], masks: MaskAgreement) -> tuple[Any, ...]:
    names = (masks.first, masks.second)
    one = next((lesion for lesion in lesions if (lesion.first, lesion.second) == names), None)
    if one is None:
        return (None,) * 10
    counts = (one.n_both, one.n_first, one.n_second, one.n_parts)
    return (*counts, *_list_estimate(one.positive), *_list_estimate(one.dsc))


_QUESTION_HEAD: Final = (
    *("question", "of", "what", "first", "second", "value", "low", "high", "n", "n_cases"),
)
"""Column names; `n` counts compared units (cases, breasts, lesions), `n_cases` cases."""


def _table_questions(result: StudyAgreement) -> Iterator[tuple[Any, ...]]:
    for of, questions in (("readers", result.categories), ("repeat", result.repeat_answers)):
        for question in questions:
            for row in _rows_of_categories(question):
                yield (question.question, of, *row)
    for of, numbers in (("readers", result.numbers), ("repeat", result.repeat_numbers)):
        for each in numbers:
            yield (each.question, of, *_row_of_computed(each))
            for pair in each.pairs:
                names = (pair.first, pair.second)
                for what, value in (("bias", pair.bias), ("icc_a1", pair.icc)):
                    counts = (pair.n, value.n)
                    yield (each.question, of, what, *names, *_list_estimate(value), *counts)


def _row_of_computed(agreement: CategoryAgreement | NumberAgreement) -> tuple[Any, ...]:
    return "computed", None, None, agreement.n_computed, None, None, agreement.n_answers, None


def _rows_of_categories(agreement: CategoryAgreement) -> Iterator[tuple[Any, ...]]:
    for category, share in agreement.prevalence:
        yield ("prevalence", category, None, share, None, None, agreement.n_answers, None)
    yield _row_of_computed(agreement)
    yield ("alone", None, None, agreement.n_alone, None, None, agreement.n_rated, None)
    n_of_usual = agreement.n_rated - agreement.n_fleiss_left_out if agreement.n_readers > 1 else 0
    whole = (
        ("fleiss", agreement.fleiss, n_of_usual),
        ("alpha", agreement.alpha, agreement.n_compared),
        ("alpha_ordinal", agreement.alpha_ordinal, agreement.n_compared),
    )
    for what, value, n in whole:
        if value is not None:
            yield (what, None, None, *_list_estimate(value), n, value.n)
    for pair in agreement.pairs:
        names = (pair.first, pair.second)
        yield ("same", *names, pair.same, None, None, pair.n, None)
        yield ("alone", *names, pair.n_alone, None, None, pair.n, None)
        weights = (("kappa", pair.kappa), ("linear", pair.linear), ("quadratic", pair.quadratic))
        for what, value in weights:
            if value is not None:
                yield (what, *names, *_list_estimate(value), pair.n, value.n)


# ------------------------------------------------------------------------- words


def agreement_lines(result: StudyAgreement, form: Form | None = None) -> list[str]:
    """Describe the agreement as lines of text, in the wording of `form`."""
    masks = result.masks
    lines = [
        (
            f"{result.n_compared} of {count_of(result.n_cases, 'case')} were read completely by "
            f"two or more readers, {count_of(masks.n, 'pair')} of masks; 95 % intervals are over "
            "cases."
        )
    ]
    if masks.n:
        lines += [
            f"Mean over cases: Dice {format_estimate(masks.dsc)}, HD95 "
            f"{format_estimate(masks.hd95_mm, 1)} mm, NSD at {NSD_TOLERANCE_MM:g} mm "
            f"{format_estimate(masks.nsd)}.",
        ]
    if masks.n_both_empty:
        lines.append(
            f"In {count_of(masks.n_both_empty, 'pair')} both masks are empty; they agree, but are "
            "not included in means."
        )
    if masks.n_one_empty:
        lines.append(
            f"In {count_of(masks.n_one_empty, 'pair')} one mask is empty, which gives a Dice of 0."
        )
    lines += [_say_volumes(volume) for volume in result.volumes]
    lines += [_say_lesions(lesion) for lesion in result.lesions]
    for question in result.categories:
        lines += _say_categories(question, form)
    for number in (*result.numbers, *result.repeat_numbers):
        lines += [
            f"{word_question(form, number.question)}, {pair.first} and {pair.second}: difference "
            f"{format_estimate(pair.bias, 2)}{word_unit(form, number.question)}, ICC(A,1) "
            f"{format_estimate(pair.icc)}{_say_computed(number)}."
            for pair in number.pairs
        ]
    lines += [
        (
            f"{repeat.first} read {count_of(repeat.n, 'case')} twice: Dice with the reader's first "
            f"reading {format_estimate(repeat.dsc)}."
        )
        for repeat in result.repeats
    ]
    lines += [
        f"{honeypot.reader} on {count_of(honeypot.masks.n, 'case')} of known truth: Dice "
        f"{format_estimate(honeypot.masks.dsc)}; first half "
        f"{_say_number(honeypot.first_half_dsc)}, second {_say_number(honeypot.second_half_dsc)}; "
        f"found {honeypot.objects.n_valid}, missed {honeypot.objects.n_missing}, extra "
        f"{honeypot.objects.n_extra} (accuracy {_say_number(honeypot.objects.accuracy)})."
        for honeypot in result.honeypots
    ]
    if result.n_lesions_unmatched:
        lines.append(
            f"{count_of(result.n_lesions_unmatched, 'reading')} with descriptions of lesions that "
            "are not in their mask, or of several lesions without a mask; these answers are not "
            "compared."
        )
    return lines


def format_estimate(estimate: Estimate, digits: int = 3) -> str:
    """Format a number with its confidence interval.

    Examples
    --------
    >>> format_estimate(Estimate(0.5, 0.25, 0.75, 12), 2)
    '0.50 (0.25 to 0.75)'
    """
    if estimate.value != estimate.value:
        return "undefined"
    # adding 0.0 avoids the text -0.00
    value, low, high = (
        round(number, digits) + 0.0 for number in (estimate.value, estimate.low, estimate.high)
    )
    if low != low:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _say_number(value: float) -> str:
    return "undefined" if value != value else f"{value:.3f}"


def _say_volumes(pair: PairedValues) -> str:
    limits, ratio = pair.bland_altman, pair.ratio
    text = (
        f"Volumes of {pair.first} and {pair.second}, {count_of(pair.n, 'case')}: difference "
        f"{limits.bias:.0f} mm3"
    )
    if limits.sd == limits.sd:
        text += f" (limits {limits.low:.0f} to {limits.high:.0f})"
    if ratio.ratio == ratio.ratio:
        text += f"; ratio {ratio.ratio:.2f}"
    if ratio.low == ratio.low:
        text += f" (limits {ratio.low:.2f} to {ratio.high:.2f})"
    return f"{text}; ICC(A,1) {format_estimate(pair.icc)}."


def _say_lesions(agreement: LesionAgreement) -> str:
    if not agreement.n_both + agreement.n_first + agreement.n_second + agreement.n_parts:
        return (
            f"Lesions of {agreement.first} and {agreement.second}: neither reader marked a lesion."
        )
    split = f", {agreement.n_parts} split or merged" if agreement.n_parts else ""
    return (
        f"Lesions of {agreement.first} and {agreement.second}: {agreement.n_both} marked by both "
        f"(Dice {format_estimate(agreement.dsc)}), {agreement.n_first} by {agreement.first} only, "
        f"{agreement.n_second} by {agreement.second} only{split}; positive agreement "
        f"{format_estimate(agreement.positive)}."
    )


def _say_computed(agreement: CategoryAgreement | NumberAgreement) -> str:
    return f", {agreement.n_computed} of the answers computed" if agreement.n_computed else ""


def _say_categories(agreement: CategoryAgreement, form: Form | None) -> list[str]:
    shares = ", ".join(
        f"{word_term(form, agreement.question, name)} {100 * share:.0f} %"
        for name, share in agreement.prevalence
        if share
    )
    head = f"{word_question(form, agreement.question)}: {agreement.n_answers} answers ({shares})"
    head += _say_computed(agreement)
    if sum(share > 0 for _, share in agreement.prevalence) < 2:
        return [f"{head}. All answers are the same: kappa and alpha are undefined."]
    kappas = [pair.kappa.value for pair in agreement.pairs if pair.kappa.value == pair.kappa.value]
    text = f"{head}; Krippendorff's alpha {format_estimate(agreement.alpha)}"
    if agreement.alpha_ordinal is not None:
        text += f", ordinal {format_estimate(agreement.alpha_ordinal)}"
    if agreement.fleiss.value == agreement.fleiss.value:
        text += f"; Fleiss' kappa of {agreement.n_readers} {format_estimate(agreement.fleiss)}"
    if kappas:
        text += f"; Cohen's kappa of pairs {min(kappas):.3f} to {max(kappas):.3f}"
    if agreement.n_alone:
        text += f"; {count_of(agreement.n_alone, 'lesion')} from only one reader not included"
    return [f"{text}."]

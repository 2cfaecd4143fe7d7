"""Score models on a site's own cases and write one file of metrics for sharing."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isnan
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import SiteShare
from napari_mamamia.core.errors import CaseError, FormatError, MamamiaError, Remedy
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import MODEL_DIGESTS, now_utc, software_version
from napari_mamamia.core.records import CaseFailure, CaseScore, ScoreStatus
from napari_mamamia.features.challenge.io.site_file import (
    SiteFile,
    SiteModel,
    SiteNumber,
    SiteRow,
    case_code,
    site_key,
    write_site_file,
)
from napari_mamamia.features.challenge.scoring.site_aggregates import (
    SMALLEST_GROUP,
    aggregate,
    withheld_groups,
)
from napari_mamamia.features.challenge.services.challenge.answers import score_readable
from napari_mamamia.io.tables.tables import plain_content
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path
from napari_mamamia.scoring.case.profiles import Profile
from napari_mamamia.scoring.cohort.group_rules import rules_of
from napari_mamamia.scoring.cohort.groups import Grouping
from napari_mamamia.scoring.cohort.policy import WITHOUT_REFERENCE
from napari_mamamia.scoring.cohort.ranking import ranks
from napari_mamamia.scoring.cohort.results import ModelScores
from napari_mamamia.services.score.clinical_table import read_table
from napari_mamamia.services.score.models import PredictionFolder, require_names
from napari_mamamia.services.score.pairs import FoundPairs, Pairs, find_cases
from napari_mamamia.services.score.score import score_pairs
from napari_mamamia.services.score.settings import ScoreSettings

METRICS: Final = (("dsc", True), ("norm_hd", False))
"""The shared metrics of each case, and whether a larger value is better."""
_WORST: Final = MappingProxyType({"dsc": 0.0, "norm_hd": 1.0})
_UNCOUNTED: Final = (
    *WITHOUT_REFERENCE,
    ScoreStatus.REFERENCE_EMPTY,
    ScoreStatus.BOTH_EMPTY,
)
"""Statuses of cases without a tumour in the reference, for which Dice is undefined."""
_HEX: Final = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """The settings of a site's evaluation and its shared file.

    `share` is ``cases`` (metrics of each case under a code) or ``aggregates``. `key` is the file of
    the site's key, which stays at the site. `digests` are the digests of models by name, for masks
    whose provenance does not name the model.
    """

    site: str
    share: SiteShare = SiteShare.CASES
    key: Path | None = None
    digests: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class SiteEvaluation:
    """The shareable content, and the ids of cases whose reference could not be used."""

    file: SiteFile
    left_out: tuple[CaseFailure, ...] = ()


def evaluate_site(
    reference: Path,
    predictions: Sequence[PredictionFolder],
    out: Path,
    site: SiteSettings,
    settings: ScoreSettings,
    *,
    overwrite: bool = False,
) -> SiteEvaluation:
    """Score models on a site's own cases and write the shareable file.

    A case without a usable mask of a model gets the worst score. A case whose reference is
    unreadable or exists twice does not count for any model and is reported.

    Parameters
    ----------
    reference
        Folder of the reference masks.
    predictions
        Folders of the models' masks.
    out
        The file to write.
    site
        Settings of the site.
    settings
        Definitions of the scores.
    overwrite
        Whether to replace `out`.

    Raises
    ------
    CaseError
        If there are too few cases for aggregates, no key for cases, or a model's digest is unknown.
    FormatError
        If a folder holds no mask, or the system refuses a file.
    SaveConflictError
        If `out` exists and `overwrite` is off.
    """
    require_names([model.name for model in predictions])
    cases = [find_cases(reference, model.folder) for model in predictions]
    pairs = [_with_reference(case) for case in cases]
    n_cases = len(pairs[0].pairs)
    if site.share is SiteShare.AGGREGATES and n_cases < SMALLEST_GROUP:
        raise CaseError(
            f"expected {SMALLEST_GROUP} cases or more for aggregates, but found {n_cases}: nothing "
            "was written, since the numbers would reveal single cases"
        )
    if site.share is SiteShare.CASES and site.key is None:
        raise CaseError(
            "expected a key for the codes of cases, but found none: give the file of a key, "
            "which stays at the site",
            remedies=(Remedy("key", ("FILE",)),),
        )
    digests = [
        _find_digest(model, files.pairs, site.digests or {})
        for model, files in zip(predictions, pairs, strict=True)
    ]
    plain = replace(settings, n_resamples=0)
    cohort = read_table(settings.clinical, settings.columns)
    scored = [
        score_readable(partial(score_pairs, model.name, files, plain, cohort), files.pairs)
        for model, files in zip(predictions, pairs, strict=True)
    ]
    content = _describe_site(site, scored, digests, plain)
    write_site_file(content, out, overwrite=overwrite)
    report_progress(1, 1, "Finished")
    return SiteEvaluation(content, _list_left_out(cases, scored))


def _list_left_out(
    cases: Sequence[FoundPairs], scored: Sequence[ModelScores]
) -> tuple[CaseFailure, ...]:
    """Return the distinct ids of cases whose reference exists but cannot be used."""
    unreadable = ScoreStatus.REFERENCE_UNREADABLE
    reasons = {
        case_id: reason
        for case in cases
        for case_id, (status, reason) in case.problems.items()
        if status is unreadable
    }
    rows = [row for model in scored for row in model.rows if row.status is unreadable]
    reasons |= {row.case_id: row.reason for row in rows}
    return tuple(CaseFailure(case_id, reasons[case_id]) for case_id in sorted(reasons))


def _with_reference(found: FoundPairs) -> FoundPairs:
    pairs = {case_id: files for case_id, files in found.pairs.items() if files[0] is not None}
    problems = {case_id: problem for case_id, problem in found.problems.items() if case_id in pairs}
    return FoundPairs(pairs, problems)


def _find_digest(model: PredictionFolder, pairs: Pairs, given: Mapping[str, str]) -> str:
    """Return the digest of the model that made the masks, from provenance files or from `given`."""
    from_files = set()
    for _, mask in pairs.values():
        if mask is None or not sidecar_path(mask).is_file():
            continue
        try:
            parameters = dict(read_provenance(sidecar_path(mask)).parameters)
        except MamamiaError:
            continue
        from_files |= {str(parameters[name]) for name in MODEL_DIGESTS if parameters.get(name)}
    if len(from_files) > 1:
        raise CaseError(
            f"expected masks of one model in {model.folder}, but found those of {len(from_files)}: "
            "use one folder per model"
        )
    digest = given.get(model.name, "").lower()
    if digest and (len(digest) != 64 or set(digest) - _HEX):
        raise CaseError(
            f"expected 64 hexadecimal digits as the digest of {model.name}, but found {digest!r}: "
            "give the SHA-256 of the model"
        )
    from_masks = next(iter(from_files), "")
    if digest and from_masks and digest != from_masks:
        raise CaseError(
            f"expected the masks of {model.name} to be of the model {digest[:12]}…, but their own "
            f"files say {from_masks[:12]}…: omit the digest, or check which model was run"
        )
    if not digest and not from_masks:
        raise CaseError(
            f"expected to know which model made the masks of {model.name}, but no file next to "
            "them says so: give the model's SHA-256, the same at every site",
            remedies=(Remedy("digest", (f"{model.name}=SHA256",)),),
        )
    return digest or from_masks


def _describe_site(
    site: SiteSettings,
    scored: Sequence[ModelScores],
    digests: Sequence[str],
    settings: ScoreSettings,
) -> SiteFile:
    # If the reference of a case cannot be read for one model, the case does not count for any
    # model.
    places = [
        index
        for index, rows in enumerate(zip(*(model.rows for model in scored), strict=True))
        if not any(row.status in _UNCOUNTED for row in rows)
    ]
    counted = [scored[0].rows[index].case_id for index in places]
    if not counted or (site.share is SiteShare.AGGREGATES and len(counted) < SMALLEST_GROUP):
        raise CaseError(
            f"expected {SMALLEST_GROUP} cases or more with a tumour in their reference for "
            f"aggregates, one or more for cases, but found {len(counted)}: nothing was written"
        )
    models = [(model.name, [model.rows[row_index] for row_index in places]) for model in scored]
    values = {
        metric: np.array([[_take_value(row, metric) for row in rows] for _, rows in models])
        for metric, _ in METRICS
    }
    names = [name for name, _ in models]
    numbers = number_models(names, values)
    withheld: list[str] = []
    for grouping in scored[0].segmentation.groupings if scored[0].segmentation else ():
        groups, hidden = _tell_groups(grouping, scored[0], counted)
        withheld += hidden
        numbers += _number_groups(names, values, grouping.variable, groups)
    key = site_key(site.key) if site.share is SiteShare.CASES and site.key is not None else None
    return SiteFile(
        site=site.site,
        profile=settings.profile.name,
        profile_version=settings.profile.version,
        definitions=definitions_digest(settings.profile),
        rule="worst-score",
        share=site.share.value,
        n_cases=len(counted),
        metrics=tuple(metric for metric, _ in METRICS),
        models=tuple(
            SiteModel(name, digest, sum(row.status is not ScoreStatus.OK for row in rows))
            for (name, rows), digest in zip(models, digests, strict=True)
        ),
        numbers=tuple(numbers),
        rows=() if key is None else _code_rows(models, values, key),
        withheld=tuple(withheld),
        software=software_version(),
        created=now_utc(),
    )


def number_models(
    names: Sequence[str], values: Mapping[str, NDArray[np.float64]]
) -> list[SiteNumber]:
    """Return the models' numbers over all cases from the metrics (m, n).

    Parameters
    ----------
    names
        Names of the models.
    values
        Metrics (m, n) of m models and n cases, by name.
    """
    numbers = []
    for metric, is_larger_better in METRICS:
        mean_ranks = _rank_cases(values[metric], is_larger_better).mean(axis=1)
        for index, name in enumerate(names):
            whole = _make_number(name, metric, values[metric][index])
            numbers.append(replace(whole, mean_rank=float(mean_ranks[index])))
    return numbers


def _number_groups(
    names: Sequence[str],
    values: Mapping[str, NDArray[np.float64]],
    variable: str,
    groups: Sequence[tuple[str, NDArray[np.intp]]],
) -> list[SiteNumber]:
    return [
        replace(
            _make_number(name, metric, values[metric][index][cases]), variable=variable, group=group
        )
        for metric, _ in METRICS
        for index, name in enumerate(names)
        for group, cases in groups
    ]


def _code_rows(
    models: Sequence[tuple[str, Sequence[CaseScore]]],
    values: Mapping[str, NDArray[np.float64]],
    key: bytes,
) -> tuple[SiteRow, ...]:
    """Return the rows of cases with codes, sorted by code so that the order reveals nothing."""
    rows = [
        SiteRow(
            case_code(row.case_id, key),
            name,
            tuple(float(values[metric][index][row_index]) for metric, _ in METRICS),
            row.status is ScoreStatus.OK,
        )
        for index, (name, own_rows) in enumerate(models)
        for row_index, row in enumerate(own_rows)
    ]
    return tuple(sorted(rows, key=lambda row: (row.model, row.code)))


def definitions_digest(profile: Profile) -> str:
    """Return the SHA-256 of all definitions of a profile, for cases and cohorts."""
    content = plain_content({"case": profile, "cohort": rules_of(profile.name)})
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _take_value(row: CaseScore, metric: str) -> float:
    """Return a metric of a case, or the worst value without a usable prediction."""
    value = float(getattr(row, metric))
    return _WORST[metric] if isnan(value) else value


def _rank_cases(values: NDArray[np.float64], is_larger_better: bool) -> NDArray[np.float64]:
    """Return the rank of each model (m, n) in each case; 1 is best, ties share the lowest."""
    return np.stack([ranks(case if is_larger_better else -case) for case in values.T], axis=1)


def _make_number(model: str, metric: str, values: NDArray[np.float64]) -> SiteNumber:
    numbers = aggregate(values)
    return SiteNumber(
        model, metric, numbers.n, numbers.mean, numbers.sd, numbers.q25, numbers.median, numbers.q75
    )


def _tell_groups(
    grouping: Grouping, model: ModelScores, ids: Sequence[str]
) -> tuple[list[tuple[str, NDArray[np.intp]]], list[str]]:
    """Return the cases of each shared group, and descriptions of the withheld groups."""
    scored_ids = model.segmentation.scores.case_ids if model.segmentation else ()
    places = {case_id: index for index, case_id in enumerate(ids)}
    codes = np.full(len(ids), -1, dtype=np.intp)
    for case_id, code in zip(scored_ids, grouping.codes, strict=True):
        if case_id in places:
            codes[places[case_id]] = code
    everyone = [np.flatnonzero(codes == code) for code in range(len(grouping.labels))]
    everyone.append(np.flatnonzero(codes < 0))
    hidden = set(withheld_groups([len(cases) for cases in everyone]))
    labels = [*grouping.labels, "in no group"]
    groups = [
        (labels[index], cases)
        for index, cases in enumerate(everyone)
        if cases.size and index not in hidden and index < len(grouping.labels)
    ]
    texts = [
        f"{grouping.variable} {labels[group]}: fewer than {SMALLEST_GROUP} cases, or it would "
        "reveal a smaller group"
        for group in sorted(hidden)
    ]
    return groups, texts


def read_digests(texts: Sequence[str]) -> dict[str, str]:
    """Parse digests from texts of the form ``NAME=SHA256``.

    Raises
    ------
    FormatError
        If a text has another form, or a name occurs twice.
    """
    digests: dict[str, str] = {}
    for text in texts:
        name, is_named, digest = text.rpartition("=")
        if not is_named or not name or name in digests:
            raise FormatError(
                f"expected NAME=SHA256 once per model, but found {text!r}: correct it"
            )
        digests[name] = digest.strip()
    return digests

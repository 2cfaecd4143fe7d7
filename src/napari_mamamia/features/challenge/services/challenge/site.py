"""Score models on a site's own cases for sharing, and merge the files from several sites."""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import isnan
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import SiteShare
from napari_mamamia.core.errors import CaseError, FormatError, MamamiaError, Remedy
from napari_mamamia.core.names import count_of, name_some
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import MODEL_DIGESTS, now_utc, software_version
from napari_mamamia.core.records import CaseFailure, CaseScore, ScoreStatus
from napari_mamamia.features.challenge.io.site_file import (
    SiteFile,
    SiteModel,
    SiteNumber,
    SiteRow,
    case_code,
    read_site_file,
    site_key,
    write_site_file,
)
from napari_mamamia.features.challenge.scoring.site_aggregates import (
    SMALLEST_GROUP,
    PooledMean,
    aggregate,
    pool_means,
    withheld_groups,
)
from napari_mamamia.features.challenge.services.challenge.attempt import score_readable
from napari_mamamia.io.tables.flat_tables import write_flat_table
from napari_mamamia.io.tables.tables import plain_content, write_json
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path
from napari_mamamia.scoring.case.profiles import Profile
from napari_mamamia.scoring.cohort.groups import Grouping, rules_of
from napari_mamamia.scoring.cohort.policy import WITHOUT_REFERENCE
from napari_mamamia.scoring.cohort.ranking import ranks
from napari_mamamia.scoring.cohort.results import ModelScores
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.score.clinical_table import read_table
from napari_mamamia.services.score.models import PredictionFolder, require_names
from napari_mamamia.services.score.score import FoundPairs, Pairs, find_cases, score_pairs
from napari_mamamia.services.score.settings import ScoreSettings

METRICS: Final = (("dsc", True), ("norm_hd", False))
"""The shared metrics of a case, and whether a larger value is better."""
_WORST: Final = MappingProxyType({"dsc": 0.0, "norm_hd": 1.0})
_UNCOUNTED: Final = (
    *WITHOUT_REFERENCE,
    ScoreStatus.REFERENCE_EMPTY,
    ScoreStatus.BOTH_EMPTY,
)
"""Statuses of cases whose reference has no tumour, so that Dice is undefined."""
_HEX: Final = frozenset("0123456789abcdef")
SITES_FILE: Final = "sites.json"
HEAT_MAP: Final = "site_heat_map.csv"


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """The settings for a site's evaluation and for the file that it shares.

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
    """The content to share, and the ids of cases whose reference could not be used."""

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
    """Score models on a site's own cases, and write the file that the site shares.

    If a model has no usable mask for a case, the case gets the worst score. A case whose reference
    is unreadable or exists twice does not count for any model and is reported.

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
        The scoring settings.
    overwrite
        Whether to replace `out`.

    Raises
    ------
    CaseError
        If there are too few cases for aggregates, there is no key for case codes, or a model's
        digest is unknown.
    FormatError
        If a folder contains no mask, or the system does not allow reading a file.
    SaveConflictError
        If `out` exists and `overwrite` is False.
    """
    require_names([model.name for model in predictions])
    cases = [find_cases(reference, model.folder) for model in predictions]
    pairs = [_with_reference(case) for case in cases]
    n_cases = len(pairs[0].pairs)
    if site.share is SiteShare.AGGREGATES and n_cases < SMALLEST_GROUP:
        raise CaseError(
            f"expected at least {SMALLEST_GROUP} cases to share aggregates, but found {n_cases}: "
            "nothing was written, because the numbers would reveal individual cases"
        )
    if site.share is SiteShare.CASES and site.key is None:
        raise CaseError(
            "expected a key for the case codes, but found none: choose the key file, which stays "
            "at the site",
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
    """Return the digest of the model that made the masks, from provenance files or `given`."""
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
            f"expected 64 hexadecimal digits as the checksum of {model.name}, but found "
            f"{digest!r}: enter the SHA-256 of the model"
        )
    from_masks = next(iter(from_files), "")
    if digest and from_masks and digest != from_masks:
        raise CaseError(
            f"expected the masks of {model.name} to come from the model {digest[:12]}…, but their "
            f"own files name {from_masks[:12]}…: omit the checksum, or check which model was run"
        )
    if not digest and not from_masks:
        raise CaseError(
            f"it is unknown which model wrote the masks of {model.name}, because no file next to "
            "them names the model: enter the model's SHA-256, which must be the same at every "
            "site",
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
            f"expected at least {SMALLEST_GROUP} cases with a tumour in their reference to share "
            f"aggregates, or at least one to share individual cases, but found {len(counted)}: "
            "nothing was written"
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
    """Summarise the models' metrics (m, n) over all cases.

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
    """Return rows with case codes, sorted by code, so that their order reveals nothing."""
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
    """Return the SHA-256 of all definitions in a profile, for cases and cohorts."""
    content = plain_content({"case": profile, "cohort": rules_of(profile.name)})
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _take_value(row: CaseScore, metric: str) -> float:
    """Return a metric of a case, or the worst value if there is no usable prediction."""
    value = float(getattr(row, metric))
    return _WORST[metric] if isnan(value) else value


def _rank_cases(values: NDArray[np.float64], is_larger_better: bool) -> NDArray[np.float64]:
    """Rank the models in each case, (m, n); 1 is best, and ties share the lower number."""
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
    """Parse model digests from strings such as ``NAME=SHA256``.

    Raises
    ------
    FormatError
        If a string does not have this format, or a name occurs twice.
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


_LIMITS: Final[Mapping[str, tuple[float, float]]] = MappingProxyType(
    {"dsc": (0.0, 1.0), "norm_hd": (0.0, np.inf)}
)
_COMPARED: Final = (
    ("profile", "profile"),
    ("profile_version", "version of the profile"),
    ("definitions", "definitions of the numbers"),
    ("rule", "rule for unusable cases"),
    ("metrics", "metrics"),
)


@dataclass(frozen=True, slots=True)
class MergedModel:
    """A model's results over the sites: its sites, worst site, spread of means, pooled values."""

    name: str
    digest: str
    metric: str
    sites: tuple[str, ...]
    worst_site: str
    spread: float
    pooled: PooledMean


@dataclass(frozen=True, slots=True)
class SiteRank:
    """A model's mean rank over the sites that ran all models, and its final rank."""

    name: str
    mean_rank: float
    rank: float


@dataclass(frozen=True, slots=True)
class MergedSites:
    """The merged content of the files from several sites.

    `heat_map` has one row per site: site, n, then the mean of each model and metric (NaN if the
    model was not run). `subset` lists sites that ran only some of the models and are not used in
    `ranking`. The ranking follows the rule ``fets-2022``: the ranks of each site and metric are
    averaged and ranked. `left_out` holds the ranking when each site in turn is omitted.
    """

    sites: tuple[str, ...]
    models: tuple[MergedModel, ...]
    ranking: tuple[SiteRank, ...]
    left_out: tuple[tuple[str, tuple[SiteRank, ...]], ...]
    subset: tuple[tuple[str, tuple[str, ...]], ...]
    heads: tuple[str, ...]
    heat_map: tuple[tuple[str | float, ...], ...]
    notes: tuple[str, ...]


def merge_sites(
    paths: Sequence[Path], out: Path, *, existing: Existing = Existing.REFUSE
) -> MergedSites:
    """Merge the files from several sites; write ``sites.json`` and ``site_heat_map.csv``.

    Parameters
    ----------
    paths
        The files from the sites.
    out
        Output folder.
    existing
        What to do with other results in `out`.

    Raises
    ------
    CaseError
        If two files are from the same site, or differ in definitions, rule, metrics or a model's
        digest.
    FormatError
        If a file cannot be read.
    SaveConflictError
        If `out` contains other results.
    """
    files = [read_site_file(path) for path in paths]
    require_equal(files)
    merged = join_sites(files)
    names = ", ".join(path.name for path in paths)
    claim_folder(out, "site merge", (("files", names),), existing)
    overwrite = existing is not Existing.REFUSE
    content = {
        "profile": files[0].profile,
        "definitions": files[0].definitions,
        "rule": files[0].rule,
        **plain_content(merged),
        "software": software_version(),
    }
    write_json(content, out / SITES_FILE, overwrite=overwrite)
    rows = [["" if cell != cell else cell for cell in row] for row in merged.heat_map]
    write_flat_table(
        merged.heads, rows, len(rows), out / HEAT_MAP, name="sites", overwrite=overwrite
    )
    return merged


def require_equal(files: Sequence[SiteFile]) -> None:
    """Raise `CaseError` if files from different sites cannot be merged."""
    names = [file.site.strip().casefold() for file in files]
    if not files or len(set(names)) < len(names):
        listed = name_some([file.site for file in files]) or "none"
        raise CaseError(f"expected one file per site, but found {listed}: pass each file once")
    first = files[0]
    for file in files[1:]:
        for name, words in _COMPARED:
            here, there = getattr(first, name), getattr(file, name)
            if here != there:
                raise CaseError(
                    f"expected the same {words} at all sites, but found {_quote_value(here)} at "
                    f"{first.site} and {_quote_value(there)} at {file.site}: evaluate again with "
                    "the same version and profile"
                )
    _require_one_model(files)
    for file in files:
        _require_sums(file)
    _require_own_cases(files)


def _require_one_model(files: Sequence[SiteFile]) -> None:
    digests: dict[str, tuple[str, str]] = {}
    for file in files:
        for model in file.models:
            digest, site = digests.setdefault(model.name, (model.digest, file.site))
            if digest != model.digest:
                raise CaseError(
                    f"expected the same model {model.name} at all sites, but found the checksum "
                    f"{digest[:12]}… at {site} and {model.digest[:12]}… at {file.site}: run the "
                    "same model everywhere, or use different names"
                )


def _require_own_cases(files: Sequence[SiteFile]) -> None:
    """Raise `CaseError` if two sites share a case code, although each site has its own key."""
    codes: dict[str, str] = {}
    for file in files:
        for code in {row.code for row in file.rows}:
            if code in codes:
                raise CaseError(
                    "expected each case at only one site, but found the same cases at "
                    f"{codes[code]} and {file.site} (code {code[:12]}…): pass the file of each "
                    "site once"
                )
            codes[code] = file.site


def _require_sums(file: SiteFile) -> None:
    """Raise `CaseError` if a site's numbers differ from those computed from its rows."""
    if not file.rows:
        return
    names = [model.name for model in file.models]
    of_models = [{row.code: row.values for row in file.rows if row.model == name} for name in names]
    codes = sorted(of_models[0])
    if len(file.rows) != len(names) * len(codes) or any(
        set(model) != set(codes) for model in of_models
    ):
        raise CaseError(
            f"the file of {file.site} does not contain each case exactly once for each of its "
            "models: ask the site for the original file that it wrote"
        )
    values = {
        metric: np.array([[model[code][index] for code in codes] for model in of_models])
        for index, metric in enumerate(file.metrics)
    }
    numbers = {
        (number.model, number.metric): number for number in file.numbers if not number.variable
    }
    for number_model in number_models(names, values):
        other = numbers.get((number_model.model, number_model.metric))
        if other is None or not np.allclose(
            [other.n, other.mean, other.sd, other.mean_rank],
            [number_model.n, number_model.mean, number_model.sd, number_model.mean_rank],
            rtol=0,
            atol=1e-9,
            equal_nan=True,
        ):
            raise CaseError(
                f"expected the {number_model.metric} of {number_model.model} at {file.site} to "
                f"match its cases (mean {number_model.mean:.6g}), but found "
                f"{'none' if other is None else f'{other.mean:.6g}'}: the file was changed; ask "
                "the site for the original file that it wrote"
            )


def _quote_value(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text if len(text) <= 20 else f"{text[:12]}…"


def join_sites(files: Sequence[SiteFile]) -> MergedSites:
    """Merge the files from several sites; see `MergedSites`."""
    names = tuple(dict.fromkeys(model.name for file in files for model in file.models))
    digests = {model.name: model.digest for file in files for model in file.models}
    metrics = files[0].metrics
    whole = {
        (file.site, number.model, number.metric): number
        for file in files
        for number in file.numbers
        if not number.variable
    }
    lacking = {
        file.site: tuple(name for name in names if (file.site, name, metrics[0]) not in whole)
        for file in files
    }
    full = [site for site, lacks in lacking.items() if not lacks]
    subset = tuple((site, lacks) for site, lacks in lacking.items() if lacks)
    pairs = [(name, metric) for metric in metrics for name in names]
    sites = tuple(lacking)
    notes = [
        f"{file.site} has fewer than {SMALLEST_GROUP} cases"
        for file in files
        if file.n_cases < SMALLEST_GROUP
    ]
    notes += [f"{site} did not run {', '.join(lacks)}: not ranked" for site, lacks in subset]
    notes += _list_doubles(files)
    notes += [] if full else ["no site ran all models: there is no ranking"]
    models = tuple(_join_model(name, digests[name], metric, sites, whole) for name, metric in pairs)
    widened = [f"{model.name} {model.metric}" for model in models if model.pooled.is_widened]
    if widened:
        notes.append(
            f"{name_some(widened)}: interval widened, because the means of the sites differ less "
            "than their standard errors suggest (Knapp and Hartung 2003)"
        )
    return MergedSites(
        sites,
        models,
        _rank_models(names, metrics, full, whole),
        tuple(
            (
                site,
                _rank_models(
                    names, metrics, [full_file for full_file in full if full_file != site], whole
                ),
            )
            for site in full
            if len(full) > 1
        ),
        subset,
        ("site", "n", *(f"{name} {metric}" for name, metric in pairs)),
        tuple(_make_row(file, pairs, whole) for file in files),
        tuple(notes),
    )


def _list_doubles(files: Sequence[SiteFile]) -> list[str]:
    """Return warnings about sites that seem to have evaluated the same cases.

    Equal codes occur only if two sites share a key. With different keys, the same case still has
    identical values for every model. Values at an end of the range are ignored.
    """
    notes = []
    for first, second in combinations(files, 2):
        common = {model.digest for model in first.models} & {
            model.digest for model in second.models
        }
        here, there = (_count_values(file, common) for file in (first, second))
        n_same = (here & there).total()
        of_all = [_list_numbers(file, common) for file in (first, second)]
        some = ""
        if n_same:
            some = f"{n_same} of {count_of(second.n_cases, 'case')} of {second.site} have"
        elif of_all[0] and of_all[0] == of_all[1]:
            some = f"all cases of {second.site} together have"
        if some:
            notes.append(
                f"{some} exactly the same numbers as {first.site}, for every model: if they are "
                "the same cases under two keys, they count twice here; ask both sites"
            )
    return notes


def _count_values(file: SiteFile, digests: Collection[str]) -> Counter[tuple[object, ...]]:
    """Count how often each set of values occurs, ignoring values at the ends of the range."""
    of_models = {model.name: model.digest for model in file.models if model.digest in digests}
    cases: dict[str, list[tuple[str, tuple[float, ...]]]] = {}
    for row in file.rows:
        if row.model in of_models:
            cases.setdefault(row.code, []).append((of_models[row.model], row.values))
    telling = (rows for rows in cases.values() if any({*values} - {0.0, 1.0} for _, values in rows))
    return Counter(tuple(sorted(rows)) for rows in telling)


def _list_numbers(file: SiteFile, digests: Collection[str]) -> set[tuple[object, ...]]:
    of_models = {model.name: model.digest for model in file.models if model.digest in digests}
    return {
        (of_models[number.model], number.metric, number.n, number.mean, number.sd, number.median)
        for number in file.numbers
        if number.model in of_models and not number.variable and number.sd > 0
    }


def _join_model(
    name: str,
    digest: str,
    metric: str,
    sites: Sequence[str],
    whole: Mapping[tuple[str, str, str], SiteNumber],
) -> MergedModel:
    there = tuple(site for site in sites if (site, name, metric) in whole)
    of_sites = [whole[site, name, metric] for site in there]
    means = [site.mean for site in of_sites]
    worst = int(np.argmin(means) if dict(METRICS).get(metric, True) else np.argmax(means))
    sds, sizes = [site.sd for site in of_sites], [site.n for site in of_sites]
    pooled = pool_means(means, sds, sizes, _LIMITS.get(metric, (-np.inf, np.inf)))
    return MergedModel(name, digest, metric, there, there[worst], max(means) - min(means), pooled)


def _make_row(
    file: SiteFile,
    pairs: Sequence[tuple[str, str]],
    whole: Mapping[tuple[str, str, str], SiteNumber],
) -> tuple[str | float, ...]:
    cells: list[str | float] = [file.site, file.n_cases]
    for name, metric in pairs:
        number = whole.get((file.site, name, metric))
        cells.append(float("nan") if number is None else number.mean)
    return tuple(cells)


def _rank_models(
    names: Sequence[str],
    metrics: Sequence[str],
    sites: Sequence[str],
    whole: Mapping[tuple[str, str, str], SiteNumber],
) -> tuple[SiteRank, ...]:
    """Rank the models by ``fets-2022``, in which all sites and metrics have equal weight."""
    if not sites:
        return ()
    of_tables = [
        ranks(-np.array([whole[site, name, metric].mean_rank for name in names]))
        for site in sites
        for metric in metrics
    ]
    means = np.mean(of_tables, axis=0)
    places = ranks(-means)
    return tuple(
        SiteRank(name, float(mean), float(rank))
        for name, mean, rank in zip(names, means, places, strict=True)
    )

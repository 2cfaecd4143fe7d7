"""Merge the files of sites into one table, or refuse incompatible files."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.names import count_of, name_some
from napari_mamamia.core.provenance import software_version
from napari_mamamia.features.challenge.io.site_file import SiteFile, SiteNumber, read_site_file
from napari_mamamia.features.challenge.scoring.site_aggregates import (
    SMALLEST_GROUP,
    PooledMean,
    pool_means,
)
from napari_mamamia.features.challenge.services.challenge.site import METRICS, number_models
from napari_mamamia.io.tables.flat_tables import write_flat_table
from napari_mamamia.io.tables.tables import plain_content, write_json
from napari_mamamia.scoring.cohort.ranking import ranks
from napari_mamamia.services.batch.output_folder import Existing, claim_folder

SITES_FILE: Final = "sites.json"
HEAT_MAP: Final = "site_heat_map.csv"
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
    """A model's mean rank over the sites that ran all models, and the resulting final rank."""

    name: str
    mean_rank: float
    rank: float


@dataclass(frozen=True, slots=True)
class MergedSites:
    """The merged files of sites.

    `heat_map` has one row per site: site, n, then the mean of each model and metric (NaN if the
    model was not run). `subset` lists sites that ran only some models and do not count in
    `ranking`. The ranking follows the rule ``fets-2022``: the ranks of each site and metric are
    averaged and ranked. `left_out` holds the ranking without each site.
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
    """Merge the files of sites; write ``sites.json`` and ``site_heat_map.csv``.

    Parameters
    ----------
    paths
        The files of the sites.
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
        If `out` holds other results.
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
    """Raise `CaseError` if files of sites cannot be merged."""
    names = [file.site.strip().casefold() for file in files]
    if not files or len(set(names)) < len(names):
        listed = name_some([file.site for file in files]) or "none"
        raise CaseError(f"expected one file per site, but found {listed}: give each once")
    first = files[0]
    for file in files[1:]:
        for name, words in _COMPARED:
            here, there = getattr(first, name), getattr(file, name)
            if here != there:
                raise CaseError(
                    f"expected one {words} at all sites, but found {_quote_value(here)} at "
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
                    f"expected one model {model.name} at all sites, but found the digest "
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
                    f"expected each case at one site, but found the same cases at {codes[code]} "
                    f"and {file.site} (code {code[:12]}…): give each site once"
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
            f"expected each case of {file.site} once for each of its models: ask the site for the "
            "original file that it wrote"
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
    """Return the merged files of sites; see `MergedSites`."""
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
    return MergedSites(
        sites,
        tuple(_join_model(name, digests[name], metric, sites, whole) for name, metric in pairs),
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
    """Count each set of values, without values at the ends of the range."""
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
    """Return the ranking by ``fets-2022``: sites and metrics count equally."""
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

"""Rank algorithms: read their tables, rank by every method, and write the results."""

from pathlib import Path

import numpy as np

from napari_mamamia.core.choices import MissingKind, RankResampling
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import Setting
from napari_mamamia.features.challenge.scoring.sites import SitesResult, describe_sites
from napari_mamamia.features.challenge.services.rank import output
from napari_mamamia.features.challenge.services.rank.inputs import (
    RankInputs,
    ReadInputs,
    read_inputs,
)
from napari_mamamia.features.challenge.services.rank.pages import ranking_pages, write_pages
from napari_mamamia.io.data_set.rank_files import RANK_FILE
from napari_mamamia.io.tables.flat_tables import write_flat_table
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.scoring.ranking.ranking import (
    PARITY_REASON,
    Ranking,
    check_draws,
    combine,
    rank_tables,
    weights_of,
)
from napari_mamamia.scoring.ranking.table import RankSettings, fill_missing
from napari_mamamia.services.batch.output_folder import Existing, claim_folder


def rank_files(
    inputs: RankInputs,
    out: Path,
    settings: RankSettings | None = None,
    *,
    smallest_site: int = 0,
    existing: Existing = Existing.REFUSE,
) -> output.RankSummary:
    """Rank algorithms; write ``rank.json``, ``rank_details.json``, two tables and pages.

    Parameters
    ----------
    inputs
        The tables.
    out
        Output folder.
    settings
        Methods, rules and resamples; None for the defaults.
    smallest_site
        Sites with fewer cases are not used in the ranks over sites.
    existing
        What to do with other results in `out`.

    Raises
    ------
    FormatError, CaseError
        If a file cannot be read, values are missing without a rule, or names do not match; in that
        case nothing is written.
    SaveConflictError
        If `out` contains other results.
    """
    settings = settings or RankSettings()
    read = read_inputs(inputs)
    _check_inputs(read, settings)
    claim_folder(
        out, "rank", (*inputs.parameters, *setting_parameters(settings, smallest_site)), existing
    )
    ranking = rank_tables(read.tables, settings, read.draws, read.composite)
    overall = ranking.overall
    if read.keys and overall is None:
        overall = combine(ranking.tables, settings)
    sites = describe_sites(read.tables, smallest_site)
    notes = (*read.notes, *_list_notes(ranking, sites))
    summary = output.RankSummary(ranking, overall, sites, notes, out)
    overwrite = existing is not Existing.REFUSE
    write_ranking(summary, read, overwrite=overwrite)
    groupings = () if read.group is None else read.group(ranking.tables[0].cases)
    write_pages(ranking_pages(summary, groupings), out, overwrite=overwrite)
    return summary


def setting_parameters(
    settings: RankSettings, smallest_site: int = 0
) -> tuple[tuple[str, Setting], ...]:
    """Return the settings by name, for ``run.json``."""
    return (
        ("methods", ", ".join(settings.methods)),
        ("ties", settings.ties.value),
        ("missing", settings.missing.text if settings.missing else None),
        ("exact", settings.is_exact),
        ("correction", settings.correction.value),
        ("resamples", settings.n_resamples),
        ("seed", settings.seed),
        ("resampling", settings.resampling.value),
        ("smallest_site", smallest_site or None),
    )


def write_ranking(
    summary: output.RankSummary, read: ReadInputs, *, overwrite: bool = False
) -> None:
    """Write the five data files of a ranking.

    Parameters
    ----------
    summary
        The results.
    read
        The inputs.
    overwrite
        Whether to replace existing files.

    Raises
    ------
    SaveConflictError, SaveError
        If a file exists and `overwrite` is False, or the system does not allow writing.
    """
    ranking, out = summary.ranking, summary.folder
    report_progress(0, 1, f"Writing {RANK_FILE}")
    content = output.rank_content(ranking, read, summary.sites, summary.overall)
    write_json(content, out / RANK_FILE, overwrite=overwrite)
    details = output.details_content(ranking, read, summary.sites, summary.notes)
    write_json(details, out / output.DETAILS_FILE, overwrite=overwrite)
    head, *rows = output.rank_rows(ranking, summary.overall)
    heads = [str(cell) for cell in head]
    write_flat_table(heads, rows, len(rows), out / output.RANKS_FILE, overwrite=overwrite)
    columns = ["task", "metric", "site", "case", *read.tables[0].algorithms]
    n_cases = sum(len(table.cases) for table in ranking.tables)
    lines = output.case_rows(ranking.tables)
    write_flat_table(columns, lines, n_cases, out / output.CASES_FILE, overwrite=overwrite)
    values = output.value_rows(ranking.tables)
    n_listed = sum(len(table.table.cases) for table in ranking.tables)
    write_flat_table(columns, values, n_listed, out / output.VALUES_FILE, overwrite=overwrite)


def _check_inputs(read: ReadInputs, settings: RankSettings) -> None:
    """Raise `FormatError` if the inputs cannot be ranked with the settings."""
    try:
        for table in read.tables:
            merits = fill_missing(table, settings)
            if read.draws is not None:
                check_draws([table.cases for table in read.tables], read.draws)
                for _ in weights_of(table.cases, merits.kept, settings, read.draws, table.name):
                    pass
    except ValueError as error:
        raise FormatError(str(error)) from error


def _find_gains(ranking: Ranking) -> list[str]:
    """Return warnings if a missing value counts for more than the worst submitted value."""
    rule = ranking.settings.missing
    if rule is None or rule.kind is not MissingKind.VALUE:
        return []
    notes = []
    for ranked in ranking.tables:
        table, values = ranked.table, ranked.table.values
        worst = np.nanmin(values) if table.is_larger_better else np.nanmax(values)
        is_better = rule.value > worst if table.is_larger_better else rule.value < worst
        if np.isnan(values).any() and is_better:
            notes.append(
                f"{rule.text} is better than the worst submitted value{table.phrase} "
                f"({worst:g}): an algorithm gains by leaving out hard cases"
            )
    return notes


def _list_notes(ranking: Ranking, sites: SitesResult | None) -> list[str]:
    notes = []
    settings = ranking.settings
    if settings.resampling is RankResampling.CHALLENGER:
        notes.append(f"resampled as in challengeR 1.0.5: {PARITY_REASON}")
    n_dropped = sum(len(table.dropped) for table in ranking.tables)
    if n_dropped:
        notes.append(
            f"{count_of(n_dropped, 'case')} left out for all, because an algorithm has no value: "
            "leaving out hard cases changes the ranks of all algorithms"
        )
    notes += _find_gains(ranking)
    if sites is not None and sites.small:
        notes.append(f"sites with under 10 cases: {', '.join(sites.small)}")
    return notes

"""`mamamia site`: evaluate models at one site, and merge the result files of several sites."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from napari_mamamia.cli import options
from napari_mamamia.cli.given import Program
from napari_mamamia.cli.printing import NOT_EVERY_CASE, print_table, run, shown
from napari_mamamia.core.choices import ProfileName, SiteShare
from napari_mamamia.core.names import count_of

app = Program(help="Federated evaluation: sites share scores only.", no_args_is_help=True)


@app.command("evaluate")
def evaluate(
    reference: Annotated[Path, typer.Option("--reference", help="Folder of reference masks.")],
    prediction: Annotated[
        list[str],
        typer.Option("--prediction", metavar="[NAME=]DIR", help="Masks of a model; repeatable."),
    ],
    site: Annotated[str, typer.Option("--site", metavar="NAME", help="Name of the site.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to share.")],
    share: Annotated[
        SiteShare,
        typer.Option("--share", help="Metrics of each case under a code, or aggregates only."),
    ] = SiteShare.CASES,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key", metavar="FILE", help="The site's key, created if missing; do not share it."
        ),
    ] = None,
    digest: Annotated[
        list[str] | None,
        typer.Option("--digest", metavar="NAME=SHA256", help="SHA-256 of a model; repeatable."),
    ] = None,
    clinical: options.ClinicalOption = None,
    columns: options.ColumnsOption = None,
    profile: options.ProfileOption = ProfileName.CLINICAL,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Score models on a site's own cases, and write the scores without case ids to one JSON file.

    Example: mamamia site evaluate --reference EXPERT --prediction MASKS --site A --out site_a.json
    """
    from napari_mamamia.features.challenge.services.challenge.site import (
        SiteSettings,
        evaluate_site,
        read_digests,
    )
    from napari_mamamia.scoring.case.profiles import profile_named
    from napari_mamamia.services.score.models import prediction_folder
    from napari_mamamia.services.score.settings import ScoreSettings

    settings = ScoreSettings(
        profile_named(profile), clinical, n_resamples=0, columns=options.column_choice(columns)
    )
    site_settings = SiteSettings(site, share, key, read_digests(digest or ()))
    models = [prediction_folder(text) for text in prediction]
    job = partial(
        evaluate_site, reference, models, out, site_settings, settings, overwrite=overwrite
    )
    evaluation = run(job)
    written = evaluation.file
    print(f"site        {written.site}: {count_of(written.n_cases, 'case')}, {written.share}")
    for model in written.models:
        print(f"model       {model.name} {model.digest[:12]}…, {model.n_unusable} unusable")
    for text in written.withheld:
        print(f"withheld    {text}")
    print(f"File to share: {out}")
    for model in written.models:
        if model.n_unusable:
            text = (
                f"{count_of(model.n_unusable, 'case')} without a usable mask, counted as the worst"
            )
            print(f"failed: {model.name}: {text}", file=sys.stderr)
    for case in evaluation.left_out:
        print(f"failed: {case.case_id}: left out: {case.reason}", file=sys.stderr)
    if evaluation.left_out or any(model.n_unusable for model in written.models):
        raise typer.Exit(NOT_EVERY_CASE)


@app.command("merge")
def merge(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files of sites.")],
    out: options.OutOption,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Merge site files that use the same definitions: OUT/sites.json, OUT/site_heat_map.csv.

    Example: mamamia site merge site_a.json site_b.json --out SITES
    """
    from napari_mamamia.features.challenge.services.challenge.site import merge_sites

    existing = options.existing_policy(False, overwrite)
    merged = run(partial(merge_sites, files, out, existing=existing))
    cells = [
        (str(row[0]), str(row[1]), *(shown(float(cell), 3) for cell in row[2:]))
        for row in merged.heat_map
    ]
    print_table("Means by site (–: not run)", merged.heads, cells, to_the_right=merged.heads[1:])
    for model in merged.models:
        pooled = model.pooled
        print(
            f"{model.name} {model.metric}: {shown(pooled.mean, 3)} ({shown(pooled.low, 3)} to "
            f"{shown(pooled.high, 3)}, random effects, {pooled.k} sites), worst {model.worst_site}"
        )
    for ranked in merged.ranking:
        print(f"rank {ranked.rank:.0f}  {ranked.name}, mean rank over sites {ranked.mean_rank:.3f}")
    for note in merged.notes:
        print(f"note: {note}")

"""Sites: what leaves one, what does not, and what is refused when their files meet."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from tests.features.challenge.challenge_world import (
    ids,
    reference,
    write_mask,
    write_references,
    write_team,
)

from napari_mamamia.core.choices import SiteShare
from napari_mamamia.core.errors import CaseError, FormatError, Remedy
from napari_mamamia.features.challenge.io.site_file import SiteNumber, read_site_file
from napari_mamamia.features.challenge.scoring.site_aggregates import pool_means, withheld_groups
from napari_mamamia.features.challenge.services.challenge.site import (
    SiteSettings,
    evaluate_site,
    join_sites,
    merge_sites,
    read_digests,
    require_equal,
)
from napari_mamamia.io.files import checksums
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.volumes import streams
from napari_mamamia.services.score.models import PredictionFolder
from napari_mamamia.services.score.settings import ScoreSettings

DIGESTS = {"a": "a" * 64, "b": "b" * 64}
N = 12


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp("site")
    write_references(root, N)
    write_team(root / "a", 0, N)
    write_team(root / "b", 1, N)
    return root


def evaluated(world, out, share=SiteShare.CASES, models=("a", "b"), **more):
    return evaluation(world, out, share, models, **more).file


def evaluation(world, out, share=SiteShare.CASES, models=("a", "b"), **more):
    site = SiteSettings("GUM", share, world / "site.key", DIGESTS)
    settings = ScoreSettings(clinical=world / "clinical.csv", n_resamples=0)
    folders = [PredictionFolder(name, world / name) for name in models]
    return evaluate_site(world / "reference", folders, out, replace(site, **more), settings)


@pytest.mark.parametrize("stays", [False, True])
@pytest.mark.parametrize("refused", ["reference", "a"])
def test_a_file_that_the_disk_refuses_counts_for_no_models_worst(
    world, tmp_path, monkeypatch, refused, stays
):
    usual = evaluated(world, tmp_path / "usual.json")
    calls = []

    def refuse(path):
        if path.parts[-2:] == (refused, "C_01.nii.gz") and (stays or not calls):
            calls.append(path)
            raise OSError(116, "Stale file handle", str(path))
        return open_plain(path)

    for module in (streams, checksums):
        monkeypatch.setattr(module, "open_plain", refuse)
    out = tmp_path / "out.json"
    if stays:
        with pytest.raises(FormatError, match="Stale file handle"):
            evaluated(world, out)
        assert not out.exists()
    else:
        assert evaluated(world, out).rows == usual.rows
    assert calls


def test_no_id_leaves_a_site_and_the_same_key_gives_the_same_codes(world, tmp_path):
    first = evaluated(world, tmp_path / "1.json")
    again = evaluated(world, tmp_path / "2.json")
    text = (tmp_path / "1.json").read_text()
    assert not any(case_id.lower() in text.lower() for case_id in ids(N))
    assert len({row.code for row in first.rows}) == N
    assert first.rows == again.rows
    assert (world / "site.key").stat().st_size == 32
    assert (world / "site.key").read_bytes().hex() not in text
    other = evaluated(world, tmp_path / "3.json", key=tmp_path / "other.key")
    assert not {row.code for row in first.rows} & {row.code for row in other.rows}
    assert [row.code for row in first.rows[:N]] == sorted(row.code for row in first.rows[:N])
    assert read_site_file(tmp_path / "1.json") == first


def test_aggregates_hold_no_case_and_no_group_of_fewer_than_ten(world, tmp_path):
    site = evaluated(world, tmp_path / "s.json", SiteShare.AGGREGATES)
    assert site.rows == ()
    assert all(one.n >= 10 for one in site.numbers)
    # menopause has two groups of 6, both too small; the file names what it keeps to itself
    assert [text for text in site.withheld if text.startswith("menopausal_status pre")]
    (whole,) = [
        one for one in site.numbers if (one.model, one.metric, one.variable) == ("a", "dsc", "")
    ]
    assert (whole.n, whole.mean, whole.mean_rank) == (N, 1.0, 1.0)


def test_a_site_with_fewer_than_ten_cases_gives_no_aggregates(tmp_path):
    write_references(tmp_path, 9)
    write_team(tmp_path / "a", 0, 9)
    with pytest.raises(CaseError, match="at least 10 cases"):
        evaluated(tmp_path, tmp_path / "s.json", SiteShare.AGGREGATES, models=("a",))
    assert not (tmp_path / "s.json").exists()


def test_a_mask_that_is_damaged_or_missing_counts_as_the_worst(tmp_path):
    write_references(tmp_path, 10)
    write_team(tmp_path / "a", 0, 10)
    (tmp_path / "a" / "C_00.nii.gz").unlink()
    (tmp_path / "a" / "C_01.nii.gz").write_bytes(b"x")
    site = evaluated(tmp_path, tmp_path / "s.json", models=("a",))
    assert site.models[0].n_unusable == 2
    whole = next(one for one in site.numbers if one.metric == "dsc" and not one.variable)
    assert whole.mean == pytest.approx(0.8)


def test_a_reference_that_cannot_be_read_counts_for_nobody_and_is_named(tmp_path):
    write_references(tmp_path, 12)
    write_team(tmp_path / "a", 0, 12)
    write_team(tmp_path / "b", 1, 12)
    (tmp_path / "reference" / "C_03.nii.gz").write_bytes(b"damaged")
    write_mask(tmp_path / "reference" / "C_05.nii", reference(5))
    both = evaluation(tmp_path, tmp_path / "s.json")
    assert [case.case_id for case in both.left_out] == ["C_03", "C_05"]
    assert "C_05.nii" in both.left_out[1].reason
    assert both.file.n_cases == 10
    assert all(model.n_unusable == 0 for model in both.file.models)
    assert not any("C_03" in text for text in (tmp_path / "s.json").read_text().splitlines())


def test_which_model_made_the_masks_must_be_known(world, tmp_path):
    with pytest.raises(CaseError, match="wrote the masks of a,") as refused:
        evaluated(world, tmp_path / "s.json", digests={})
    assert refused.value.remedies == (Remedy("digest", ("a=SHA256",)),)
    with pytest.raises(CaseError, match="64 hexadecimal digits"):
        evaluated(world, tmp_path / "s.json", digests={"a": "xyz", "b": "b" * 64})
    with pytest.raises(FormatError, match="NAME=SHA256"):
        read_digests(["a=1", "a=2"])
    with pytest.raises(CaseError, match="choose the key file"):
        evaluated(world, tmp_path / "s.json", key=None)


# ---------------------------------------------------------------- merging


def of_site(first, name, means, n=20, sd=0.1, models=("a", "b")):
    """Return a site's file with the given mean Dice of each model, in the order of its ranks."""
    order = {model: 1.0 + sum(means[one] > means[model] for one in models) for model in models}
    numbers = tuple(
        SiteNumber(model, "dsc", n, means[model], sd, 0, 0, 0, mean_rank=order[model])
        for model in models
    )
    kept = tuple(one for one in first.models if one.name in models)
    parts = {"metrics": ("dsc",), "numbers": numbers, "rows": (), "n_cases": n, "models": kept}
    return replace(first, site=name, **parts)


@pytest.fixture(scope="module")
def first(world, tmp_path_factory):
    return evaluated(world, tmp_path_factory.mktemp("f") / "s.json")


def test_sites_count_equally_and_each_is_left_out_once(first):
    # b leads at two small sites, a at the large one: by sites b is first, by cases it would be a
    files = [
        of_site(first, "big", {"a": 0.9, "b": 0.2}, n=500),
        of_site(first, "x", {"a": 0.6, "b": 0.7}),
        of_site(first, "y", {"a": 0.6, "b": 0.7}),
    ]
    merged = join_sites(files)
    assert {one.name: one.rank for one in merged.ranking} == {"a": 2.0, "b": 1.0}
    left_out = {site: {one.name: one.rank for one in ranking} for site, ranking in merged.left_out}
    assert left_out["x"] == {"a": 1.0, "b": 1.0}
    assert left_out["big"] == {"a": 2.0, "b": 1.0}
    worst = {model.name: (model.worst_site, model.spread) for model in merged.models}
    assert worst["b"] == ("big", pytest.approx(0.5))
    assert merged.heat_map[0] == ("big", 500, 0.9, 0.2)


def test_a_site_that_ran_some_models_is_listed_and_not_ranked(first):
    files = [
        of_site(first, "x", {"a": 0.6, "b": 0.7}),
        of_site(first, "y", {"a": 0.9}, models=("a",)),
    ]
    merged = join_sites(files)
    assert merged.subset == (("y", ("b",)),)
    assert math.isnan(merged.heat_map[1][3])
    assert {one.name: one.rank for one in merged.ranking} == {"a": 2.0, "b": 1.0}
    assert any("did not run b" in note for note in merged.notes)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"profile": "paper"}, "the same profile"),
        ({"profile_version": 99}, "the same version of the profile"),
        ({"definitions": "0" * 64}, "the same definitions"),
        ({"rule": "leave-out"}, "the same rule"),
        ({"metrics": ("dsc", "norm_hd", "iou"), "numbers": (), "rows": ()}, "the same metrics"),
        ({"site": "gum "}, "one file per site"),
    ],
)
def test_unequal_sites_are_refused(first, change, why):
    with pytest.raises(CaseError, match=why):
        require_equal([first, replace(first, **{"site": "HCB", **change})])


def test_another_digest_under_one_name_is_refused(first):
    models = tuple(replace(one, digest="c" * 64) for one in first.models)
    with pytest.raises(CaseError, match="the same model a at all sites"):
        require_equal([first, replace(first, site="HCB", models=models)])


def test_numbers_that_are_not_those_of_their_cases_are_refused(first):
    better = replace(first.numbers[0], mean=first.numbers[0].mean - 0.1)
    changed = replace(first, numbers=(better, *first.numbers[1:]))
    with pytest.raises(CaseError, match="the file was changed"):
        require_equal([changed])
    rank = replace(first.numbers[0], mean_rank=2.0)
    with pytest.raises(CaseError, match="the file was changed"):
        require_equal([replace(first, numbers=(rank, *first.numbers[1:]))])
    with pytest.raises(CaseError, match="file of GUM does not contain each case"):
        require_equal([replace(first, rows=first.rows[1:])])
    require_equal([first])


def test_the_same_cases_under_another_site_are_refused(first):
    with pytest.raises(CaseError, match="the same cases at GUM and HCB"):
        require_equal([first, replace(first, site="HCB")])


def find_doubles(*files):
    return [note for note in join_sites(files).notes if "count twice" in note]


def test_the_same_cases_under_two_keys_are_told(world, first, tmp_path):
    """Codes of two keys tell nothing: the values of all models do, to the last digit."""
    other = evaluated(world, tmp_path / "s.json", site="HCB", key=tmp_path / "other.key")
    require_equal([first, other])
    (note,) = find_doubles(first, other)
    assert note.startswith(f"{N} of {N} cases of HCB have exactly the same numbers as GUM")
    one_model = replace(
        other,
        models=other.models[1:],
        rows=tuple(row for row in other.rows if row.model == "b"),
        numbers=tuple(one for one in other.numbers if one.model == "b"),
    )
    assert find_doubles(first, one_model)[0].startswith(f"{N} of {N} cases")
    some = {row.code for row in other.rows[:3]}
    some_rows = tuple(row for row in other.rows if row.code in some)
    assert find_doubles(first, replace(other, rows=some_rows))[0].startswith(f"3 of {N} cases")
    without = replace(other, rows=())
    assert find_doubles(first, without)[0].startswith("all cases of HCB together")
    assert len(find_doubles(first, other, replace(without, site="KAU"))) == 3
    apart = replace(
        other,
        models=tuple(replace(one, name=f"{one.name}2") for one in other.models),
        rows=tuple(replace(one, model=f"{one.model}2") for one in other.rows),
        numbers=tuple(replace(one, model=f"{one.model}2") for one in other.numbers),
    )
    assert find_doubles(first, apart)[0].startswith(f"{N} of {N} cases")


def test_other_cases_are_not_told_as_the_same(world, first, tmp_path):
    other = evaluated(world, tmp_path / "s.json", site="HCB", key=tmp_path / "other.key")
    moved = tuple(
        replace(row, values=tuple(value * 0.999 for value in row.values)) for row in other.rows
    )
    numbers = tuple(replace(one, mean=one.mean * 0.999) for one in other.numbers)
    assert find_doubles(first, replace(other, rows=moved, numbers=numbers)) == []
    # of one model in two the same, or at an end of the range, as where nothing was found
    half = tuple(
        row if row.model == "a" else replace(row, values=(0.1234, 0.5)) for row in other.rows
    )
    assert find_doubles(first, replace(other, rows=half, numbers=numbers)) == []
    ends = tuple(replace(row, values=(0.0, 1.0)) for row in other.rows)
    empty = [replace(one, rows=ends, numbers=()) for one in (first, other)]
    assert find_doubles(replace(empty[0], numbers=first.numbers), empty[1]) == []
    another = tuple(replace(one, digest=one.digest[::-1][:-1] + "0") for one in other.models)
    assert find_doubles(first, replace(other, models=another)) == []


def test_no_end_lies_beyond_the_metrics_range():
    pooled = pool_means([0.94, 0.88], [0.1, 0.2], [18, 18], (0.0, 1.0))
    assert pooled.high == 1.0
    assert 0 <= pooled.low < 0.88


def test_files_are_merged_and_a_damaged_one_is_named(world, tmp_path):
    evaluated(world, tmp_path / "gum.json")
    evaluated(world, tmp_path / "hcb.json", site="HCB", share=SiteShare.AGGREGATES)
    merge_sites([tmp_path / "gum.json", tmp_path / "hcb.json"], tmp_path / "out")
    content = json.loads((tmp_path / "out" / "sites.json").read_text())
    assert content["sites"] == ["GUM", "HCB"]
    assert content["ranking"][0] == {"name": "a", "mean_rank": 1.0, "rank": 1.0}
    assert (tmp_path / "out" / "site_heat_map.csv").read_text().count("\n") == 3
    (tmp_path / "hcb.json").write_text('{"site": 3}')
    with pytest.raises(FormatError, match=r"hcb\.json"):
        merge_sites([tmp_path / "gum.json", tmp_path / "hcb.json"], tmp_path / "out2")
    assert not (tmp_path / "out2").exists()


# ---------------------------------------------------------------- the numbers


def test_what_is_withheld_never_lets_a_small_group_be_computed_from_the_rest():
    rng = np.random.default_rng(5)
    for _ in range(500):
        sizes = rng.integers(0, 25, rng.integers(1, 6)).tolist()
        hidden = withheld_groups(sizes)
        told = [size for place, size in enumerate(sizes) if place not in hidden]
        assert all(size == 0 or size >= 10 for size in told)
        rest = sum(sizes[place] for place in hidden)
        assert rest == 0 or rest >= 10 or not any(told)


def test_random_effects_by_hand():
    # means .6 .8, standard errors .05 each: w = 400, Q = 800 * .01 = 8, C = 800 - 400 = 400
    pooled = pool_means([0.6, 0.8], [0.5, 0.5], [100, 100])
    assert pooled.tau2 == pytest.approx((8 - 1) / 400)
    assert pooled.mean == pytest.approx(0.7)
    # Hartung-Knapp: sqrt(sum (y - m)^2 / (k (k - 1))) = .1 for equal weights, t(1) = 12.7062
    assert pooled.high == pytest.approx(0.7 + 12.7062 * 0.1, abs=1e-4)
    assert pooled.i2 == pytest.approx(1 - 1 / 8)


# y, v: designs of PyMARE (metafor_small_sample.csv); pooled mean, ends: metafor 4.6-0,
# rma.uni(y, v, method = "DL", test = "adhoc")
AD_HOC = [
    (
        [-0.375707, 0.087667, 3.101687, -0.06849, 0.31128],
        [0.8, 0.929221, 0.970525, 1.094569, 1.2],
        (0.6049766538166617, -1.1824853418661843, 2.392438649499508),
        True,
    ),
    (
        [-0.073207, -0.415375, 5.226533, -0.785429, -2.088512],
        [0.02, 0.050569, 2.721731, 0.041877, 5.0],
        (-0.25834451420148663, -1.76837366225205, 1.2516846338490768),
        False,
    ),
]


@pytest.mark.parametrize(("means", "variances", "expected", "is_widened"), AD_HOC)
def test_intervals_are_those_of_metafor_with_the_ad_hoc_correction(
    means, variances, expected, is_widened
):
    pooled = pool_means(means, np.sqrt(variances).tolist(), [1] * len(means))
    assert (pooled.mean, pooled.low, pooled.high) == pytest.approx(expected, abs=1e-9)
    assert pooled.is_widened is is_widened


def test_sites_that_agree_get_the_variance_of_the_common_effect():
    # weights 25, 20, 33.3, 22.2: metafor's standard error at tau2 = 0 is .0997233743;
    # t(3) = 3.1824463
    pooled = pool_means([0.20, 0.25, 0.22, 0.18], np.sqrt([0.04, 0.05, 0.03, 0.045]), [1] * 4)
    assert pooled.tau2 == 0
    assert pooled.mean == pytest.approx(0.2121546961, abs=1e-9)
    assert pooled.high - pooled.mean == pytest.approx(3.1824463 * 0.0997233743, abs=1e-7)
    assert pooled.is_widened
    equal = pool_means([0.5, 0.5], [0.1, 0.1], [10, 10])
    assert equal.high == pytest.approx(0.5 + 12.7062 * 0.1 / np.sqrt(20), abs=1e-4)


def test_no_interval_of_few_sites_is_narrower_than_that_of_the_common_effect():
    rng = np.random.default_rng(3)
    for _ in range(500):
        k = int(rng.integers(2, 6))
        sds, n = rng.uniform(0.01, 0.4, k), rng.integers(5, 500, k)
        means = 0.7 + rng.normal(0, 1, k) * (sds / np.sqrt(n)) * rng.choice([0.2, 1, 3])
        pooled = pool_means(means, sds, n)
        common = 1.959964 / np.sqrt((n / sds**2).sum())
        assert (pooled.high - pooled.low) / 2 >= common


def test_a_widened_interval_is_named_in_the_notes(first):
    files = [
        of_site(first, "x", {"a": 0.70, "b": 0.2}),
        of_site(first, "y", {"a": 0.70, "b": 0.9}),
    ]
    merged = join_sites(files)
    assert [model.pooled.is_widened for model in merged.models] == [True, False]
    (note,) = [note for note in merged.notes if "widened" in note]
    assert note.startswith("a dsc:")
    apart = [
        of_site(first, site, {"a": mean, "b": mean}) for site, mean in (("x", 0.2), ("y", 0.9))
    ]
    assert not any("widened" in note for note in join_sites(apart).notes)


def test_pooling_says_why_it_cannot():
    assert pool_means([0.5], [0.1], [9]).reason == "fewer than 2 sites"
    assert "one case" in pool_means([0.5, 0.6], [0.0, 0.1], [9, 9]).reason
    same = pool_means([0.5, 0.5], [0.1, 0.1], [10, 10])
    assert (same.tau2, same.i2) == (0.0, 0.0)


def test_a_reference_without_a_tumour_counts_for_nobody(tmp_path):
    write_references(tmp_path, 10)
    write_team(tmp_path / "a", 0, 10)
    for folder in ("reference", "a"):
        write_mask(tmp_path / folder / "C_00.nii.gz", np.zeros((6, 20, 24)))
    assert evaluated(tmp_path, tmp_path / "s.json", models=("a",)).n_cases == 9

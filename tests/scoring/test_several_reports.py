"""Reports of several models: what is first said, and a page for each."""

import re
from dataclasses import replace
from math import nan
from urllib.parse import unquote

import numpy as np
import pytest
from tests.scoring.test_report import a_model, report_of

from napari_mamamia.core.choices import RankMethod
from napari_mamamia.core.errors import SaveConflictError
from napari_mamamia.scoring.cohort.model_results import compare_results
from napari_mamamia.scoring.cohort.ranking import ModelScore, sweep_weights
from napari_mamamia.scoring.ranking.methods import rank_scores
from napari_mamamia.scoring.ranking.ranking import MethodRanking, stability_of
from napari_mamamia.scoring.report.answers import answer_comparison
from napari_mamamia.scoring.report.content import RankedModels, ReportContent
from napari_mamamia.scoring.report.figures import weight_sweep
from napari_mamamia.scoring.report.models import comparison_tables, say_weights
from napari_mamamia.scoring.report.report import write_reports
from napari_mamamia.services.score.report import rank_models

NAMES = ("Ä & <b>", "b", "c")


@pytest.fixture(scope="module")
def content():
    models = [a_model(name, seed)[0] for seed, name in enumerate(NAMES, start=1)]
    return ReportContent(
        tuple(report_of(model) for model in models), comparison=compare_results(models)
    )


def test_each_model_has_a_page_to_and_from_the_one_of_all(content, tmp_path):
    write_reports(content, tmp_path / "report.html", draw=lambda _: _Undrawn)
    first = (tmp_path / "report.html").read_text()
    links = [unquote(one) for one in re.findall(r'href="([^"#]*/report.html)"', first)]
    assert sorted(set(links)) == sorted(f"{name}/report.html" for name in NAMES)
    assert "Worst subgroups" not in first
    for name in NAMES:
        text = (tmp_path / name / "report.html").read_text()
        assert '<a href="../report.html">← All models</a>' in text
        assert "Worst subgroups" in text
        for target in re.findall(r'href="(\.\./[^"]*)"', text):
            assert (tmp_path / name / unquote(target)).resolve().is_file()
    assert "<b></a>" not in first
    with pytest.raises(SaveConflictError):
        write_reports(content, tmp_path / "report.html", draw=lambda _: _Undrawn)


class _Undrawn:
    svg, png = "<svg></svg>", b""


def test_many_rows_stand_on_the_models_own_pages_alone(content, tmp_path):
    many = [replace(part, scores=replace(part.scores, n_cases=2000)) for part in content.models]
    own = replace(content, models=tuple(many))
    write_reports(own, tmp_path / "report.html", draw=lambda _: _Undrawn)
    assert 'id="case-data"' not in (tmp_path / "report.html").read_text()
    assert 'id="case-data"' in (tmp_path / "b" / "report.html").read_text()


def test_another_weight_that_changes_the_lead_is_named():
    # a: .9 - .4 w, b: .6 + .2 w: level at w = .5; at .51 b leads
    models = [ModelScore("a", 0.9, 0.5), ModelScore("b", 0.6, 0.8)]
    sweep = sweep_weights(models)
    assert say_weights(sweep, 0.3) == (
        "With a fairness weight other than 0.3: at 0.5 a, b share the lead."
    )
    assert say_weights(sweep, 0.8) == (
        "With a fairness weight other than 0.8: at 0.5 a, b share the lead."
    )
    ahead = sweep_weights([ModelScore("a", 0.9, 0.9), ModelScore("b", 0.6, 0.8)])
    assert say_weights(ahead, 0.5) == "The same model leads at every fairness weight."


def test_the_answers_are_who_leads_how_sure_and_what_would_change_it(content):
    comparison = content.comparison
    draws = np.array([[0.9, 0.5, 0.1]] * 8 + [[0.5, 0.9, 0.1]] * 2)
    ranks = rank_scores(np.array([0.9, 0.5, 0.1]))
    order = sorted(comparison.ranking, key=lambda one: one.rank)
    names = tuple(one.name for one in order)
    stable = stability_of(ranks, rank_scores(draws))
    method = MethodRanking(RankMethod.COMPOSITE, draws[0], ranks, stable)
    who, sure, *_ = answer_comparison(comparison, RankedModels(names, method, 10))
    assert who.sentences[0].startswith(f"{names[0]} leads: ranking score ")
    assert sure.sentences[0] == (
        f"Likely: first in 80 % of 10 resamples of the cases, rank 1 to 2 in 95 % of them; next "
        f"{names[1]}, first in 20 %."
    )
    assert sure.sentences[1].startswith(f"Dice of {names[0]} minus {names[1]}: ")
    unranked = replace(comparison, ranking=tuple(
        replace(one, rank=nan, ranking_score=nan, reason="no table") for one in comparison.ranking
    ))  # fmt: skip
    (answer,) = answer_comparison(unranked, None)
    assert answer.sentences[0].startswith("No model has a ranking score (no table). Best")


def test_of_many_models_the_tests_of_neighbours_are_shown(content):
    models = [a_model(f"m{at}", at)[0] for at in range(7)]
    tables = comparison_tables(compare_results(models))
    assert tables[-1].title.startswith("Paired comparisons of neighbours; all 42 are")
    assert len(tables[-1].rows) == 12  # six neighbours in two metrics


def test_models_are_ranked_anew_in_resamples_of_their_own_score(content):
    models = []
    for seed, name in enumerate(NAMES, start=1):
        model, cohort = a_model(name, seed)
        models.append(replace(model, cohort=cohort))
    ranks = rank_models(models, 40, 3)
    order = {one.name: one.rank for one in content.comparison.ranking}
    assert dict(zip(ranks.names, ranks.method.ranks.tolist(), strict=True)) == order
    assert ranks.method.stability.ranks.shape == (40, 3)
    assert ranks.method.scores == pytest.approx(
        [one.segmentation.cohort.ranking_score for one in models]
    )
    assert rank_models(models[:1], 40, 3) is None
    # without the clinical rows the score would be another one
    assert rank_models([part.scores for part in content.models], 40, 3) is None
    assert rank_models(models, 0, 3) is None


def test_of_many_models_the_best_seven_are_named_in_figures():
    scores = [ModelScore(f"m{at}", 0.5 + 0.01 * at, 0.9) for at in range(12)]
    figure = weight_sweep(sweep_weights(scores))
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert texts == [f"m{at}" for at in range(5, 12)]
    few = weight_sweep(sweep_weights(scores[:7]))
    assert len(few.axes[0].get_legend().get_texts()) == 7

"""Make a ranking of the models that were scored on a data set."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path

from napari_mamamia.features.challenge.services.rank.inputs import AlgorithmTable, RankInputs
from napari_mamamia.features.challenge.services.rank.rank import rank_files
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.scoring.ranking.table import MissingRule, RankSettings
from napari_mamamia.services.batch.output_folder import RUN_FILE


def list_score_tables(scores: Path) -> tuple[AlgorithmTable, ...]:
    """Return the tables of case scores in a workspace, named after the models.

    Parameters
    ----------
    scores
        The folder of scores. The folder of a single run contains its table; the folder of a
        comparison contains one subfolder per model. If a model was scored twice, its latest table
        is returned.
    """
    latest: dict[str, Path] = {}
    for path in sorted(scores.glob("**/case_scores.csv"), key=lambda path: path.stat().st_mtime):
        latest[_read_model(path.parent)] = path
    return tuple(AlgorithmTable(name, latest[name]) for name in sorted(latest))


def _read_model(folder: Path) -> str:
    """Return the name of the masks that a run scored, or else the folder's name."""
    try:
        return str(read_json(folder / RUN_FILE)["parameters"]["prediction"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return folder.name


def make_ranking(tables: Sequence[AlgorithmTable], metric: str, scores: Path) -> Path:
    """Rank models by a metric, and return the new folder with the ranking.

    A case without a value gets the worst rank.

    Raises
    ------
    FormatError, CaseError
        If a table cannot be read, or names do not match; in that case nothing is written.
    """
    folder = scores.parent / "rankings"
    out = next(
        path
        for number in count(1)
        if not (path := folder / (metric if number == 1 else f"{metric} {number}")).exists()
    )
    settings = RankSettings(missing=MissingRule.of_text("worst-rank"))
    rank_files(RankInputs(tuple(tables), metrics=(metric,)), out, settings)
    return out

"""Measured durations of predictions on this computer, used to estimate the next duration.

The file is in the cache folder. A run is similar if it has half to twice as many voxels.
"""

import json
import logging
import math
from statistics import median
from typing import Any, Final

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.files.user_folders import cache_folder

_FILE: Final = "durations.json"
_MOST_RUNS: Final = 20
_SIMILAR: Final = 2.0
"""Largest ratio of voxel counts of similar runs, whose time is proportional to voxels."""
_log = logging.getLogger(__name__)


def estimate_seconds(model: str, voxels: int) -> float | None:
    """Return the expected duration of a run in s, from the median time per voxel of similar runs.

    Parameters
    ----------
    model
        The name of the model.
    voxels
        The number of voxels in one phase of the case.

    Returns
    -------
    float or None
        The duration in s; None if this computer has not run the model on a similar case yet.
    """
    per_voxel = [
        seconds / earlier
        for earlier, seconds in _read_runs().get(model, ())
        if voxels / _SIMILAR <= earlier <= voxels * _SIMILAR
    ]
    return median(per_voxel) * voxels if per_voxel else None


def remember_seconds(model: str, voxels: int, seconds: float) -> None:
    """Store the duration of a finished run in s, if the cache folder is writable."""
    runs = _read_runs()
    runs[model] = [*runs.get(model, ()), (voxels, round(seconds, 3))][-_MOST_RUNS:]
    try:
        write_text_atomically(cache_folder() / _FILE, json.dumps(runs) + "\n", overwrite=True)
    except MamamiaError as error:
        _log.warning("the time of %s could not be stored: %s", model, error)


def _read_runs() -> dict[str, list[tuple[int, float]]]:
    """Return the voxels and seconds of the last runs of each model; invalid lines are skipped."""
    try:
        content = read_json(cache_folder() / _FILE)
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {
        model: [(run[0], run[1]) for run in runs if _is_run(run)]
        for model, runs in content.items()
        if isinstance(runs, list)
    }


def _is_run(run: Any) -> bool:
    if not isinstance(run, list) or len(run) != 2:
        return False
    return all(type(number) in (int, float) and 0 < number < math.inf for number in run)

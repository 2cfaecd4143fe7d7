"""Store the measured speed of each model on this computer in the cache folder."""

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.engine_settings import EngineSettings, Ran
from napari_mamamia.segmentation.model.nnunet_files import model_cache
from napari_mamamia.segmentation.model.planner import OTHER_S_PER_MEGAVOXEL, Pace

_FILE: Final = "paces.json"
_MOST: Final = 200
_log = logging.getLogger(__name__)


def known_pace(card: ModelCard, settings: EngineSettings) -> Pace | None:
    """Return the last measured speed of a model on a device, or None if there is none."""
    entry = _read_paces(_find_path()).get(_make_key(card, settings))
    if not isinstance(entry, list) or len(entry) != 2:
        return None
    with suppress(TypeError, ValueError):
        forward_s, other_s = float(entry[0]), float(entry[1])
        if forward_s > 0 and other_s >= 0:
            return Pace(forward_s, other_s)
    return None


def remember_pace(card: ModelCard, settings: EngineSettings, pace: Pace) -> None:
    """Store a measured speed; if the cache is not writable, nothing is stored."""
    paces = _read_paces(_find_path())
    key = _make_key(card, settings)
    # Inserted again as the latest entry: the oldest entries are dropped.
    paces.pop(key, None)
    entries = dict(list(paces.items())[-(_MOST - 1) :])
    entries[key] = [round(pace.forward_s, 6), round(pace.other_s_per_megavoxel, 6)]
    try:
        write_text_atomically(_find_path(), json.dumps(entries, indent=1) + "\n", overwrite=True)
    except MamamiaError as error:
        _log.warning("the pace of %s could not be stored: %s", card.name, error)


def pace_of_run(ran: Ran, voxels: int) -> Pace | None:
    """Return the speed of a finished run, or None if its record is incomplete.

    Parameters
    ----------
    ran
        The record of the run.
    voxels
        Number of voxels of the case's grid, which approximates that of the model's grid.
    """
    seconds = dict(ran.seconds)
    forwards = ran.tiles * ran.passes * max(len(ran.folds_done), 1)  # other kinds have no folds
    if ran.cut_short or not forwards or not seconds.get("predict"):
        return None
    other = seconds.get("prepare", 0.0) + seconds.get("export", 0.0)
    megavoxels = voxels / 1e6
    return Pace(
        seconds["predict"] / forwards, other / megavoxels if voxels else OTHER_S_PER_MEGAVOXEL
    )


def _make_key(card: ModelCard, settings: EngineSettings) -> str:
    who = card.sha256[:16] or str(card.path)
    threads = settings.threads or "all"
    return f"{who} {settings.device} {settings.backend} {settings.precision} {threads} threads"


def _find_path() -> Path:
    return model_cache() / _FILE


def _read_paces(path: Path) -> dict[str, Any]:
    try:
        content = read_json(path)
    except (OSError, ValueError, RecursionError):
        return {}
    return dict(content) if isinstance(content, Mapping) else {}

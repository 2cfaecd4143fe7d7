"""Messages between the window and the model's process, each of them one line of JSON."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from napari_mamamia.core import errors
from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.files.record_codec import RecordCodec
from napari_mamamia.segmentation.model.card import ModelCard, WeightFile
from napari_mamamia.segmentation.model.engine_settings import EngineSettings, Ran, TilePlan
from napari_mamamia.segmentation.model.network_spec import network_from, network_made
from napari_mamamia.segmentation.model.planner import OutOfMemoryError, OverLimitError
from napari_mamamia.segmentation.network.card import with_network
from napari_mamamia.segmentation.run.weights import recognise_model
from napari_mamamia.segmentation.worker.shared_arrays import SharedArray

_REMEDY: Final = "start the program again"
SETTINGS: Final = RecordCodec(EngineSettings, _REMEDY, kind=errors.ModelError)
TILES: Final = RecordCodec(TilePlan, _REMEDY, kind=errors.ModelError)
RAN: Final = RecordCodec(Ran, _REMEDY, kind=errors.ModelError)
SHARED: Final = RecordCodec(SharedArray, _REMEDY, kind=errors.ModelError)
OTHER: Final = "a message of the model's process"
"""Description of these messages in errors."""

_ERRORS: Final[dict[str, type[errors.MamamiaError]]] = {
    kind.__name__: kind
    for kind in (
        errors.CaseError,
        errors.FormatError,
        errors.ModelError,
        OutOfMemoryError,
        OverLimitError,
        errors.RefusedCheckpointError,
        errors.SaveError,
    )
}


def line_of(message: dict[str, Any]) -> str:
    """Return a message as one line of JSON."""
    return json.dumps(message, allow_nan=False) + "\n"


def card_on_wire(card: ModelCard) -> dict[str, Any]:
    """Return a model's card as data from which the other process finds the model again."""
    return {
        "path": str(card.path.absolute()),
        "inner": card.inner,
        "weights": [[w.name, w.n_bytes, w.sha256] for w in card.weights],
        "network": card.network and network_made(card.network),
    }


def card_from(found: dict[str, Any]) -> ModelCard:
    """Return the card of a model that a message names; the model is recognised again."""
    card = recognise_model(Path(found["path"]), inner=found["inner"], checksums=False)
    network = found["network"]
    card = with_network(card, None if network is None else network_from(network, OTHER))
    return replace(card, weights=tuple(WeightFile(*one) for one in found["weights"]))


def grid_on_wire(grid: Grid) -> dict[str, Any]:
    """Return a grid as message data: shape, affine, and header for nnU-Net's spacing."""
    header = None if grid.nifti_header is None else grid.nifti_header.hex()
    return {
        "shape": list(grid.shape),
        "affine": np.asarray(grid.affine).tolist(),
        "header": header,
    }


def grid_from(found: dict[str, Any]) -> Grid:
    """Return the grid in a message, bit-identical because JSON preserves every float64."""
    z, y, x = found["shape"]
    header = found["header"]
    affine = np.array(found["affine"], dtype=np.float64)
    return Grid((z, y, x), affine, None if header is None else bytes.fromhex(header))


def region_on_wire(region: Box | None) -> list[list[int]] | None:
    """Return the start and stop of a box, or None if there is no box."""
    return None if region is None else [list(map(int, region.start)), list(map(int, region.stop))]


def region_from(found: list[list[int]] | None) -> Box | None:
    """Return the box with this start and stop, or None."""
    if found is None:
        return None
    (a, b, c), (d, e, f) = found
    return Box((a, b, c), (d, e, f))


def error_on_wire(error: Exception) -> dict[str, Any]:
    """Return an error as message data; an unexpected error includes its type."""
    if isinstance(error, errors.MissingExtraError):
        return {"event": "error", "kind": "missing", "package": error.package, "extra": error.extra}
    is_known = type(error).__name__ in _ERRORS
    text = str(error) if is_known else f"unexpected {type(error).__name__}: {error}"
    return {"event": "error", "kind": type(error).__name__ if is_known else "", "text": text}


def error_from(found: dict[str, Any]) -> errors.MamamiaError:
    """Return the error described in a message."""
    if found["kind"] == "missing":
        return errors.MissingExtraError(found["package"], found["extra"])
    return _ERRORS.get(found["kind"], errors.ModelError)(found["text"])

"""Reject settings that do not apply to a MONAI bundle, which defines its own run."""

from collections.abc import Iterator
from typing import Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.model.engine_settings import EngineSettings

ONLY_NETWORK: Final = "network"
"""Name that replaces the fold names in `Ran`, because a bundle has a single network."""


def require_meant(settings: EngineSettings, name: str) -> None:
    """Raise a `ModelError` that names every setting that does not apply to a bundle.

    Turning mirroring off is allowed, because a bundle uses no mirrored copies.
    """
    reasons = "; ".join(_list_meaningless(settings))
    if reasons:
        raise ModelError(
            f"{name} is a MONAI bundle, which defines how it is run, so these settings do not "
            f"apply: {reasons}; omit them, or change the bundle's inference.json"
        )


def _list_meaningless(settings: EngineSettings) -> Iterator[str]:
    usual = EngineSettings()
    if settings.folds not in ((), (ONLY_NETWORK,)):
        yield f"it has no folds ({', '.join(settings.folds)} requested)"
    if settings.step != usual.step:
        yield f"its windows have their own overlap (step {settings.step:g} requested)"
    if settings.most_copies is not None and settings.most_copies > 1:
        yield "it does not average mirrored copies"
    if settings.backend != usual.backend:
        yield f"it runs only with torch (backend {settings.backend} requested)"
    if settings.precision != usual.precision:
        yield f"it runs only in its own precision ({settings.precision} requested)"
    if settings.accept_trainer:
        yield "it names no trainer (accept_trainer requested)"
    if settings.checkpoint:
        yield f"it has only one weights file (checkpoint {settings.checkpoint} requested)"

"""Reject settings that a single-file network does not support."""

from collections.abc import Sequence

from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.kinds import NETWORK_KINDS, ModelKind
from napari_mamamia.segmentation.model.planner import Rung


def require_network_choices(card: ModelCard, settings: EngineSettings) -> None:
    """Raise `ModelError` if a single-file network does not support a setting.

    Parameters
    ----------
    card
        The card of the model.
    settings
        Settings of the run.

    Raises
    ------
    ModelError
        If folds, a checkpoint or a trainer are set, or bf16 for a format that does not support it.
    """
    if card.kind not in NETWORK_KINDS:
        return
    asked = {
        f"folds {', '.join(settings.folds)}": bool(settings.folds),
        f"the checkpoint {settings.checkpoint}": bool(settings.checkpoint),
        "accept_trainer": settings.accept_trainer,
    }
    choices = ", ".join(name for name, is_asked in asked.items() if is_asked)
    if choices:
        raise ModelError(
            f"{card.name} is a single-file network ({card.kind}), which has no folds, checkpoints "
            f"or trainers, so {choices} cannot be used; remove this setting"
        )
    if settings.precision == "bf16" and not _has_bf16(card, settings):
        raise ModelError(
            f"{card.name} cannot run in bf16, because ONNX Runtime does not support it on a "
            "CPU; choose the backend openvino, or do not use bf16"
        )


def rungs_of(card: ModelCard, settings: EngineSettings, rungs: Sequence[Rung]) -> tuple[Rung, ...]:
    """Return those reductions in `rungs` that a model supports.

    Parameters
    ----------
    card
        The card of the model.
    settings
        Settings of the run.
    rungs
        The reductions to filter.
    """
    return tuple(r for r in rungs if r is not Rung.PRECISION or _has_bf16(card, settings))


def _has_bf16(card: ModelCard, settings: EngineSettings) -> bool:
    return card.kind is not ModelKind.ONNX or settings.backend == "openvino"

"""Which choices a network in a single file can obey; the others are refused, never passed over."""

from collections.abc import Sequence

from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.kinds import NETWORK_KINDS, ModelKind
from napari_mamamia.segmentation.model.planner import Rung


def require_network_choices(card: ModelCard, settings: EngineSettings) -> None:
    """Raise `ModelError` where a network could not do what is asked; other kinds pass.

    Raises
    ------
    ModelError
        If folds, a checkpoint or a trainer are chosen, or bf16 for a format that has it not.
    """
    if card.kind not in NETWORK_KINDS:
        return
    asked = {
        f"fold(s) {', '.join(settings.folds)}": bool(settings.folds),
        f"the checkpoint {settings.checkpoint}": bool(settings.checkpoint),
        "accept_trainer": settings.accept_trainer,
    }
    choices = ", ".join(name for name, is_asked in asked.items() if is_asked)
    if choices:
        raise ModelError(
            f"{card.name} is one network in a file ({card.kind.value}), which has no folds, "
            f"checkpoints or trainers, but {choices} was asked for: leave it out"
        )
    if settings.precision == "bf16" and not _has_bf16(card, settings):
        raise ModelError(
            f"{card.name} should run in bf16, which ONNX Runtime has not on a processor: choose "
            "the backend openvino, or leave bf16 out"
        )


def rungs_of(card: ModelCard, settings: EngineSettings, rungs: Sequence[Rung]) -> tuple[Rung, ...]:
    """Return those of `rungs` that a model can take to stay within a limit."""
    return tuple(r for r in rungs if r is not Rung.PRECISION or _has_bf16(card, settings))


def _has_bf16(card: ModelCard, settings: EngineSettings) -> bool:
    return card.kind is not ModelKind.ONNX or settings.backend == "openvino"

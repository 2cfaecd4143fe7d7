"""Which model runs, and how: from what a person typed or clicked to a segmenter."""

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path

from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.engine_host import EngineHost, Host
from napari_mamamia.segmentation.engine_settings import EngineSettings
from napari_mamamia.segmentation.planned import PlannedSegmenter
from napari_mamamia.segmentation.planner import Budget, Rung
from napari_mamamia.segmentation.recipe import Recipe
from napari_mamamia.segmentation.registry import (
    ModelEntry,
    default_registry,
    find_model,
    model_recipe,
)
from napari_mamamia.segmentation.segmenter import Segmenter
from napari_mamamia.segmentation.weights import WeightFile, recognise_model
from napari_mamamia.services.predict import segmenter_named, segmenters

__all__ = ["ModelChoice", "RunChoices", "choice_of", "open_model", "planned", "segmenter_of"]


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model and its settings as plain values, for another process and for fingerprints.

    `weights` is empty for a model that needs none. Where the files are does not matter to the
    result, so `path` is not part of its text.
    """

    name: str
    path: Path = field(default=Path(), repr=False)
    inner: str = field(default="", repr=False)
    weights: tuple[WeightFile, ...] = ()
    settings: EngineSettings = field(default_factory=EngineSettings)
    recipe: Recipe = field(default_factory=Recipe)
    budget: Budget = field(default_factory=Budget)

    @property
    def key(self) -> str:
        """Digest of everything that the result depends on."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class RunChoices:
    """How a person wants a model to run; the defaults are nnU-Net's own and exact.

    Parameters
    ----------
    device
        "auto", "cpu", "cuda" or "mps".
    backend
        "torch", "openvino", or "auto": torch, and OpenVINO where bf16 was asked for on a processor
        and it is installed.
    folds, step, mirroring
        As in `EngineSettings`.
    postprocessing
        Whether the recipe's steps after the network are done.
    limit_s, give_up
        As in `Budget`.
    fast
        Whether bf16 is used, which is not exact and is recorded.
    recipe
        A preset's name or a file; "" for the model's own.
    threads
        Of the processor; None leaves it to torch.
    keep_probability
        Whether the probability map is wanted.
    """

    device: str = "auto"
    backend: str = "torch"
    folds: tuple[str, ...] = ()
    step: float = 0.5
    mirroring: bool = True
    postprocessing: bool = True
    limit_s: float | None = None
    give_up: tuple[Rung, ...] = ()
    fast: bool = False
    recipe: str = ""
    threads: int | None = None
    keep_probability: bool = False

    def settings(self) -> EngineSettings:
        """Return them as the engine takes them."""
        return EngineSettings(
            folds=self.folds,
            step=self.step,
            mirroring=self.mirroring,
            device=self.device,
            backend=self._chosen_backend(),
            precision="bf16" if self.fast else "fp32",
            threads=self.threads,
            keep_probability=self.keep_probability,
        )

    def _chosen_backend(self) -> str:
        if self.backend != "auto":
            return self.backend
        from importlib.util import find_spec

        fits = self.fast and self.device in ("auto", "cpu") and find_spec("openvino") is not None
        return "openvino" if fits and not _has_card(self.device) else "torch"


def open_model(
    wanted: str, choices: RunChoices, host: Host, registry: Path | None = None
) -> Segmenter:
    """Return the segmenter for a model's name or path.

    Raises
    ------
    ModelError
        If there is none, it cannot be run, or the weight-free one is asked for what it has not.
    """
    if any(own.name == wanted for own in segmenters()):
        _require_no_network_choices(wanted, choices)
        return segmenter_named(wanted)
    entry = find_model(wanted, registry or default_registry())
    return planned(entry, choices, host)


def _require_no_network_choices(name: str, choices: RunChoices) -> None:
    """Raise `ModelError` where a choice would be passed over in silence."""
    asked = {
        f"--device {choices.device}": choices.device in ("cuda", "mps"),
        f"--backend {choices.backend}": choices.backend == "openvino",
        "--folds": bool(choices.folds),
        "--step": choices.step != RunChoices().step,
        "--no-mirroring": not choices.mirroring,
        "--no-postprocessing": not choices.postprocessing,
        "--recipe": bool(choices.recipe),
        "--fit-time": bool(choices.give_up),
        "--fast": choices.fast,
    }
    found = ", ".join(option for option, is_asked in asked.items() if is_asked)
    if found:
        raise ModelError(
            f"{name} should run without choices that only a trained model has, got {found}: leave "
            "them out, it runs on the processor in seconds"
        )


def planned(entry: ModelEntry, choices: RunChoices, host: Host) -> PlannedSegmenter:
    """Return an added model's segmenter, under the name that it was added by."""
    recipe = model_recipe(entry, choices.recipe)
    if not choices.postprocessing:
        recipe = replace(recipe, post=())
    folds = recipe.settings(choices.settings()).folds
    absent = [fold for fold in folds if fold not in entry.card.folds]
    if absent:
        raise ModelError(
            f"{entry.name} should have fold(s) {', '.join(folds)}, but {', '.join(absent)} is not "
            f"there; it has {', '.join(entry.card.folds)}: choose among these"
        )
    return PlannedSegmenter(
        replace(entry.card, name=entry.name),
        choices.settings(),
        recipe,
        host,
        Budget(choices.limit_s, choices.give_up),
    )


def choice_of(segmenter: Segmenter) -> ModelChoice:
    """Return a segmenter as plain values."""
    if not isinstance(segmenter, PlannedSegmenter):
        return ModelChoice(segmenter.name)
    card = segmenter.card
    return ModelChoice(
        segmenter.name,
        card.path,
        card.inner,
        card.weights,
        segmenter.settings,
        segmenter.recipe,
        segmenter.budget,
    )


def segmenter_of(choice: ModelChoice, host: Host | None = None) -> Segmenter:
    """Return the segmenter of a choice, in this process unless `host` says otherwise."""
    if not choice.weights:
        return segmenter_named(choice.name)
    card = recognise_model(choice.path, inner=choice.inner, checksums=False)
    return PlannedSegmenter(
        replace(card, name=choice.name, weights=choice.weights),
        choice.settings,
        choice.recipe,
        host or EngineHost(),
        choice.budget,
    )


def _has_card(device: str) -> bool:
    """Whether "auto" may mean a graphics card: its driver shows a device file."""
    return device == "auto" and any(Path("/dev").glob("nvidia[0-9]*"))

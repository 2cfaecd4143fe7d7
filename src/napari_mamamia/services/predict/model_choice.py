"""Create segmenters from the chosen models and the settings of a run."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from napari_mamamia.core.choices import FusionRule
from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.model.card import ModelCard, WeightFile
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.planner import Budget, Rung
from napari_mamamia.segmentation.model.recipe import Recipe
from napari_mamamia.segmentation.model.segmenter import Segmenter
from napari_mamamia.segmentation.network.card import with_network
from napari_mamamia.segmentation.network.choices import require_network_choices
from napari_mamamia.segmentation.run.engine_host import EngineHost, Host
from napari_mamamia.segmentation.run.engines import MODEL_KINDS, require_installed
from napari_mamamia.segmentation.run.planned import PlannedSegmenter
from napari_mamamia.segmentation.run.registry import (
    ModelEntry,
    default_registry,
    find_model,
    model_recipe,
)
from napari_mamamia.segmentation.run.weights import recognise_model
from napari_mamamia.services.predict.fused_models import FusedSegmenter, require_fusible
from napari_mamamia.services.predict.predict import segmenter_named, segmenters


@dataclass(frozen=True, slots=True)
class RunChoices:
    """The user's settings for running a model; the defaults are exact and equal nnU-Net's own.

    Parameters
    ----------
    device
        The device: "auto", "cpu", "cuda" or "mps".
    backend
        The runtime: "torch", "openvino", or "auto" for the runtime of the model's format.
    folds, step, mirroring
        As in `EngineSettings`.
    postprocessing
        Whether to apply the recipe's postprocessing steps.
    limit_s, give_up
        As in `Budget`.
    fast
        Whether to use bf16, which is less exact and recorded in the provenance.
    recipe
        The name of a preset or the path of a file; "" for the model's own recipe.
    threads
        The number of CPU threads; None for torch's default.
    keep_probability
        Whether to return the probability map.
    """

    device: str = "auto"
    backend: str = "auto"
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
        """Return the settings for the engine."""
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
        has_card = self.device == "auto" and any(Path("/dev").glob("nvidia[0-9]*"))
        return "openvino" if fits and not has_card else "torch"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model and its settings as plain values, for use in other processes and in fingerprints.

    `weights` is empty for a model without weights. `path` is not part of the key, because the
    location of the files does not affect the result. Several models are `members` that are fused by
    the rule `fusion`; in this case only the fields name and budget also apply.
    """

    name: str
    path: Path = field(default=Path(), repr=False)
    inner: str = field(default="", repr=False)
    weights: tuple[WeightFile, ...] = ()
    settings: EngineSettings = field(default_factory=EngineSettings)
    recipe: Recipe = field(default_factory=Recipe)
    budget: Budget = field(default_factory=Budget)
    members: "tuple[ModelChoice, ...]" = ()
    fusion: FusionRule | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all models."""
        return tuple(member.name for member in self.members) or (self.name,)

    @property
    def engine_settings(self) -> EngineSettings:
        """The settings of a trained model, or of the first trained member."""
        trained = (member.settings for member in self.members if member.weights)
        return next(trained, self.settings)

    @property
    def is_plain(self) -> bool:
        """Whether the name defines the choice completely, as for a single model without weights."""
        return not self.weights and not self.members

    @property
    def key(self) -> str:
        """Digest of everything on which the result depends.

        The number of threads is excluded, so a run can be resumed with a different number of
        workers or on a different computer. Threads change only the last digits of sums, and each
        case's file records their number.
        """
        return hashlib.sha256(repr(_without_threads(self)).encode()).hexdigest()[:32]


def _without_threads(choice: ModelChoice) -> ModelChoice:
    members = tuple(_without_threads(member) for member in choice.members)
    return replace(choice, settings=replace(choice.settings, threads=None), members=members)


def open_model(
    wanted: str, choices: RunChoices, host: Host, registry: Path | None = None
) -> Segmenter:
    """Return the segmenter for a model's name or path.

    Parameters
    ----------
    wanted
        The name or path of the model.
    choices
        The user's settings for the run.
    host
        The host on which models run.
    registry
        The folder of added models; None for the user's own.

    Raises
    ------
    ModelError
        If the model does not exist or cannot be run, or if a setting does not apply to a model
        without weights.
    """
    if any(segmenter.name == wanted for segmenter in segmenters()):
        _require_no_network_choices(wanted, choices)
        return segmenter_named(wanted)
    entry = find_model(wanted, registry or default_registry(), choices.recipe)
    return planned(entry, choices, host)


def open_models(
    wanted: Sequence[str],
    rule: FusionRule,
    choices: RunChoices,
    host: Host,
    registry: Path | None = None,
) -> FusedSegmenter:
    """Return one segmenter that fuses several models, given by name or path, by `rule`.

    Settings that apply only to trained models are ignored for other models.

    Parameters
    ----------
    wanted
        The names or paths of the models.
    rule
        The fusion rule.
    choices
        The user's settings for the run.
    host
        The host on which models run.
    registry
        The folder of added models; None for the user's own.

    Raises
    ------
    ModelError
        As in `open_model` and `fused`.
    """
    by_name = {segmenter.name: segmenter for segmenter in segmenters()}
    if not set(wanted) - set(by_name):
        _require_no_network_choices(", ".join(wanted), choices)
    place = registry or default_registry()
    members = [by_name.get(name) or find_model(name, place, choices.recipe) for name in wanted]
    return fused(members, rule, choices, host)


def fused(
    members: Sequence[ModelEntry | Segmenter], rule: FusionRule, choices: RunChoices, host: Host
) -> FusedSegmenter:
    """Return one segmenter that fuses several models.

    All models run on `host` one after the other, with the same settings. Their probabilities are
    kept if `rule` needs them.

    Parameters
    ----------
    members
        The models to fuse.
    rule
        The fusion rule.
    choices
        The user's settings for the run.
    host
        The host on which models run.

    Raises
    ------
    ModelError
        If there are too few or too many models, two models have the same name, a model does not
        return the probability that the rule needs, or a recipe or folds do not match a model.
    """
    require_fusible([member.name for member in members])
    mean = rule is FusionRule.MEAN
    without = [member.name for member in members if not isinstance(member, ModelEntry)]
    if mean and without:
        raise ModelError(
            f"expected every model to return a probability for the mean, but {', '.join(without)} "
            "returns none, because it uses thresholds; fuse by majority or staple, or omit that "
            "model"
        )
    member_choices = replace(choices, keep_probability=True) if mean else choices
    models = tuple(
        planned(member, member_choices, host) if isinstance(member, ModelEntry) else member
        for member in members
    )
    _require_different(models)
    return FusedSegmenter(models, rule, choices.limit_s)


def _require_different(members: Sequence[Segmenter]) -> None:
    """Raise `ModelError` if a model occurs under two names, because it would count twice."""
    seen: dict[str, str] = {}
    for member in members:
        if not isinstance(member, PlannedSegmenter):
            continue
        key = repr((member.card.sha256, member.settings, member.recipe))
        if key in seen:
            raise ModelError(
                f"expected different models to fuse, but {seen[key]} and {member.name} have the "
                f"same weights (sha256 {member.card.sha256[:12]}) and settings and would count "
                "twice; omit one of them"
            )
        seen[key] = member.name


def _require_no_network_choices(name: str, choices: RunChoices) -> None:
    """Raise `ModelError` for settings that the model would silently ignore."""
    asked = {
        f"the device {choices.device}": choices.device in ("cuda", "mps"),
        f"the backend {choices.backend}": choices.backend == "openvino",
        "folds": bool(choices.folds),
        "a tile step": choices.step != RunChoices().step,
        "no mirroring": not choices.mirroring,
        "no postprocessing": not choices.postprocessing,
        "a recipe": bool(choices.recipe),
        "a time limit": bool(choices.give_up),
        "fast": choices.fast,
        "a probability map": choices.keep_probability,
    }
    flags = ", ".join(option for option, is_asked in asked.items() if is_asked)
    if flags:
        raise ModelError(
            f"these settings apply only to trained models, not to {name}: {flags}; omit them, "
            "because this model takes only seconds on the CPU"
        )


def planned(entry: ModelEntry, choices: RunChoices, host: Host) -> PlannedSegmenter:
    """Return the segmenter of an added model with its name in the list.

    Parameters
    ----------
    entry
        The added model.
    choices
        The user's settings for the run.
    host
        The host on which models run.
    """
    recipe = model_recipe(entry, choices.recipe)
    if not choices.postprocessing:
        recipe = replace(recipe, post=())
    card = with_network(entry.card, recipe.network)
    if card.network is not None:  # The choice is then complete as plain values.
        recipe = replace(recipe, network=card.network)
    settings = recipe.settings(choices.settings())
    _require_fits(card, settings, choices)
    folds = settings.folds
    absent = [fold for fold in folds if fold not in entry.card.folds]
    if absent:
        raise ModelError(
            f"expected {entry.name} to have the folds {', '.join(absent)}, but it has "
            f"{', '.join(entry.card.folds) or 'none'}; choose among these, or omit the folds"
        )
    return PlannedSegmenter(
        replace(card, name=entry.name),
        choices.settings(),
        recipe,
        host,
        Budget(choices.limit_s, choices.give_up),
    )


def _require_fits(card: ModelCard, settings: EngineSettings, choices: RunChoices) -> None:
    """Raise `ModelError` if a network in a single file would silently ignore a setting."""
    require_network_choices(card, settings)
    spec = MODEL_KINDS.get(card.kind)
    if spec is not None and choices.backend not in ("auto", *spec.backends):
        raise ModelError(
            f"{card.name} has the format {card.kind}, which {choices.backend} cannot run; choose "
            f"the backend {' or '.join(('auto', *spec.backends))}"
        )


def require_ready(segmenter: Segmenter) -> None:
    """Raise `MissingExtraError` if the runtime of any model is not installed."""
    for member in segmenter.members if isinstance(segmenter, FusedSegmenter) else (segmenter,):
        if isinstance(member, PlannedSegmenter):
            require_installed(member.card, member.settings)


def choice_of(segmenter: Segmenter) -> ModelChoice:
    """Return the choice that describes a segmenter."""
    if isinstance(segmenter, FusedSegmenter):
        return ModelChoice(
            segmenter.name,
            budget=Budget(segmenter.limit_s),
            members=tuple(choice_of(member) for member in segmenter.members),
            fusion=segmenter.rule,
        )
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
    """Return the segmenter for a choice, which runs in this process if `host` is None."""
    if choice.fusion is not None:
        shared = host or EngineHost()
        members = tuple(segmenter_of(member, shared) for member in choice.members)
        return FusedSegmenter(members, choice.fusion, choice.budget.limit_s)
    if not choice.weights:
        return segmenter_named(choice.name)
    # The choice includes the checksums, because computing them again would read gigabytes.
    card = recognise_model(choice.path, inner=choice.inner, checksums=False)
    card = with_network(card, choice.recipe.network)
    return PlannedSegmenter(
        replace(card, name=choice.name, weights=choice.weights),
        choice.settings,
        choice.recipe,
        host or EngineHost(),
        choice.budget,
    )

"""Recipes: the steps before and after a network that make a published pipeline reproducible.

A recipe is the file ``mamamia_model.json`` next to a model. Without a recipe, channel k is phase k
and there are no further steps.
"""

import json
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.io.files.foreign import explained, open_plain, reads
from napari_mamamia.io.files.json_text import parsed_json
from napari_mamamia.io.files.record_codec import Form, Layout, NotFinite, RecordCodec
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.network_spec import NETWORK_LAYOUTS, NetworkSpec
from napari_mamamia.segmentation.model.postprocess import PostKind, PostStep, check_order

_FORMAT: Final = "napari-mamamia recipe"
_VERSION: Final = 1
_PHASE: Final = r"(?:p\d{1,2}|first_post|last_post)"
_EXPRESSION: Final = re.compile(rf"^(?:{_PHASE}(?:-{_PHASE})?|pe(?:\({_PHASE}\))?|ser)$")
_REPAIR: Final = "correct the recipe, or remove it to use the model as it is"


class Scope(StrEnum):
    """The voxels over which the mean and standard deviation for normalisation are computed."""

    ALL = "all phases"
    PRE = "phase 0"
    EACH = "each channel"


class RegionKind(StrEnum):
    """The part of the volume that the network processes.

    "breast crop" crops the volume before the network, as the published pipelines do, so the result
    differs from the result for the whole volume. "breast tiles" skips tiles that do not overlap the
    breast; inside the breast, the result is the same as for the whole volume.
    """

    WHOLE = "whole volume"
    CROP = "breast crop"
    TILES = "breast tiles"


@dataclass(frozen=True, slots=True)
class Normalise:
    """Normalisation before the network: (value - mean) / standard deviation.

    `percentiles` are the low and high percentile (0 to 100) to which each channel is first clipped;
    None does not clip. With `nonzero`, percentiles are computed over nonzero voxels. If all
    channels share a mean and standard deviation, these are computed before clipping.
    """

    scope: Scope
    percentiles: tuple[float, float] | None = None
    nonzero: bool = False

    def __post_init__(self) -> None:
        if self.percentiles is not None:
            low, high = self.percentiles
            if not 0 <= low < high <= 100:
                raise ModelError(
                    f"expected percentiles from 0 to 100, with the lower one first, but got {low} "
                    f"and {high}; {_REPAIR}"
                )


@dataclass(frozen=True, slots=True)
class Recipe:
    """The steps before and after a network.

    Parameters
    ----------
    title
        The name shown to users.
    channels
        One expression for each channel: ``p0`` .. ``p99``, ``first_post``, ``last_post``, a
        difference
        such as ``p1-p0``, ``pe`` (percent enhancement of the first post-contrast phase) or
        ``pe(p2)``, or ``ser``. If empty, channel k is phase k.
    whole_numbers
        Whether phases are converted to int16 before subtraction, as some pipelines do.
    normalise
        The normalisation before the network's own normalisation.
    spacing_mm
        Spacing along (z, y, x), or along the network's axes if `network` gives their orientation.
        The
        volume is resampled to this spacing before the network, and the mask is resampled back to
        the
        case by nearest neighbour. None keeps the grid.
    region, margin_mm
        The part of the volume that is passed to the network, and a margin around it.
    post
        The steps after the network.
    folds, checkpoint, step, mirroring, accept_trainer
        As in `EngineSettings`; None and "" do not change the settings.
    tumour_labels
        Label values that form the mask; empty for all labels except background.
    network
        Input and output of a network in a single file; None for a model that describes them itself.

    Raises
    ------
    ModelError
        If an expression is unknown, a number is out of range, or the steps are in an invalid order.
    """

    title: str = ""
    channels: tuple[str, ...] = ()
    whole_numbers: bool = False
    normalise: Normalise | None = None
    spacing_mm: tuple[float, float, float] | None = None
    region: RegionKind = RegionKind.WHOLE
    margin_mm: float = 0.0
    post: tuple[PostStep, ...] = ()
    folds: tuple[str, ...] | None = None
    checkpoint: str = ""
    step: float | None = None
    mirroring: bool | None = None
    accept_trainer: bool | None = None
    tumour_labels: tuple[int, ...] = ()
    network: NetworkSpec | None = None

    def __post_init__(self) -> None:
        for expression in self.channels:
            if not _EXPRESSION.match(expression):
                raise ModelError(
                    "expected a channel to be p0, p1 ..., first_post, last_post, a difference "
                    f"such as p1-p0, pe, pe(p2) or ser, but it is {expression!r}; {_REPAIR}"
                )
        if self.spacing_mm is not None and not all(0.05 <= s <= 50 for s in self.spacing_mm):
            raise ModelError(
                f"expected the spacing to be from 0.05 to 50 mm, but it is {self.spacing_mm}; "
                f"{_REPAIR}"
            )
        if not 0 <= self.margin_mm <= 200:
            raise ModelError(
                f"expected the margin to be from 0 to 200 mm, but it is {self.margin_mm}; {_REPAIR}"
            )
        check_order(self.post)
        if self.network is not None:
            self._require_for_network(self.network)

    def settings(self, given: EngineSettings) -> EngineSettings:
        """Return `given` with the recipe's values in place of default values."""
        default = EngineSettings()
        engine_settings = given
        choices: tuple[tuple[str, Any], ...] = (
            ("folds", self.folds),
            ("checkpoint", self.checkpoint or None),
            ("step", self.step),
            ("mirroring", self.mirroring),
            ("accept_trainer", self.accept_trainer),
        )
        for name, value in choices:
            if value is not None and getattr(given, name) == getattr(default, name):
                changed: dict[str, Any] = {name: value}
                engine_settings = replace(engine_settings, **changed)
        return engine_settings

    def _require_for_network(self, network: NetworkSpec) -> None:
        """Raise `ModelError` if the recipe has values that the network would ignore silently."""
        asked = {
            "folds": bool(self.folds),
            "checkpoint": bool(self.checkpoint),
            "accept_trainer": bool(self.accept_trainer),
            "mirroring (mirror_axes are empty)": bool(self.mirroring) and not network.mirror_axes,
        }
        names = ", ".join(name for name, is_asked in asked.items() if is_asked)
        if names:
            raise ModelError(
                f"a network in a single file has no {names}, but the recipe sets them; {_REPAIR}; "
                "mirrored "
                'copies are set by "mirror_axes" in its section "network"'
            )
        strange = set(self.tumour_labels) - {value for _, value in network.labels}
        if strange:
            raise ModelError(
                "expected tumour_labels to be labels of the network, but the network has no "
                f"labels {sorted(strange)}; {_REPAIR}"
            )

    @property
    def needs_breast(self) -> bool:
        """Whether the recipe needs the position of the breast."""
        cuts = (PostKind.BREAST_BOX, PostKind.BREAST_MASK)
        return self.region is not RegionKind.WHOLE or any(s.kind in cuts for s in self.post)


def presets() -> tuple[tuple[str, Recipe], ...]:
    """Return the published pipelines by name.

    Sources: the challenge's sample submission (first post-contrast phase, fold 0, mirroring, breast
    box); the MAMA-MIA data set's repository (baseline: z-score with the mean and standard deviation
    of all phases, 1 mm); team FME, code_submission_7 (first subtraction in int16, checkpoint_best,
    five folds, mirroring, breast box, largest component); team ViCOROB, VICTORIA commit 7f3619f
    (breast crop, percentiles 0.1 to 99.9 of nonzero voxels, statistics of phase 0, 1 mm); team MIC
    (p0, p1, p2, breast box; its program is not public). "Breast box" means the box in the case's
    patient file.
    """
    box, largest = PostStep(PostKind.BREAST_BOX), PostStep(PostKind.LARGEST)
    one_mm = (1.0, 1.0, 1.0)
    return (
        (
            "mama-mia-baseline",
            Recipe("MAMA-MIA baseline", normalise=Normalise(Scope.ALL), spacing_mm=one_mm),
        ),
        (
            "mama-mia-sample",
            Recipe(
                "MAMA-MIA sample submission",
                channels=("p1",),
                folds=("0",),
                checkpoint="checkpoint_final.pth",
                step=0.5,
                mirroring=True,
                post=(box,),
            ),
        ),
        (
            "fme",
            Recipe(
                "FME",
                channels=("p1-p0",),
                whole_numbers=True,
                folds=("0", "1", "2", "3", "4"),
                checkpoint="checkpoint_best.pth",
                step=0.5,
                mirroring=True,
                post=(box, largest),
            ),
        ),
        (
            "vicorob",
            Recipe(
                "ViCOROB",
                channels=("p0", "p1", "p2"),
                normalise=Normalise(Scope.PRE, (0.1, 99.9), nonzero=True),
                spacing_mm=one_mm,
                region=RegionKind.CROP,
                folds=("0",),
            ),
        ),
        ("mic", Recipe("MIC", channels=("p0", "p1", "p2"), post=(box,))),
    )


def channels_recipe(text: str) -> Recipe | None:
    """Return the recipe for a string of channels, such as ``p0,p1-p0``, or None."""
    channels = tuple(part.strip() for part in text.split(","))
    return Recipe(channels=channels) if all(map(_EXPRESSION.match, channels)) else None


def preset(name: str) -> Recipe:
    """Return the preset with this name; raise a `ModelError` that lists all presets."""
    recipes = dict(presets())
    if name not in recipes:
        raise ModelError(
            f"expected the name of a recipe to be one of {', '.join(recipes)}, but it is {name!r}"
        )
    return recipes[name]


@reads("a readable recipe", "correct it, or remove it", ModelError)
def read_recipe(path: Path) -> Recipe:
    """Return the recipe in a ``mamamia_model.json``; raise `ModelError` if it is invalid."""
    try:
        with open_plain(path) as stream:
            text = stream.read().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"cannot read the recipe {path}: {error}; {_REPAIR}") from error
    return recipe_from(text, str(path))


def recipe_from(text: str, where: str) -> Recipe:
    """Return the recipe in a JSON string.

    Parameters
    ----------
    text
        The JSON string.
    where
        Name of the model or file in error messages.

    Raises
    ------
    ModelError
        If the text is not a recipe, has a later version, or contains an unknown key or value.
    """
    with explained(where, "a recipe", _REPAIR, ModelError):
        content = parsed_json(text)
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ModelError(f'{where} lacks "format": "{_FORMAT}"; {_REPAIR}')
        if content.get("version") != _VERSION:
            raise ModelError(
                f"expected {where} to have version {_VERSION}, but it has "
                f"{content.get('version')!r}; update napari-mamamia, or correct the recipe"
            )
        return _CODEC.record(
            {key: value for key, value in content.items() if key not in ("format", "version")},
            where,
        )


def recipe_text(recipe: Recipe) -> str:
    """Return a recipe as a JSON string that `recipe_from` can read."""
    content = {"format": _FORMAT, "version": _VERSION, **_CODEC.plain(recipe)}
    return json.dumps(content, indent=2) + "\n"


def write_recipe(recipe: Recipe, path: Path, *, overwrite: bool = False) -> None:
    """Write a recipe next to a model; raise `SaveConflictError` or `SaveError` on failure.

    Parameters
    ----------
    recipe
        The recipe of the model.
    path
        The path of the model's file or folder.
    overwrite
        Whether to replace an existing recipe.
    """
    write_text_atomically(path, recipe_text(recipe), overwrite=overwrite)


def _read_channels(items: Any) -> tuple[str, ...]:
    """Return channel expressions with spaces removed, such as "p1-p0" for "p1 - p0"."""
    return tuple(str(item).replace(" ", "") for item in items)


def _plain_folds(folds: tuple[str, ...] | None) -> list[str] | None:
    return None if folds is None else list(folds)


def _read_folds(items: Any) -> tuple[str, ...] | None:
    """Return the names of folds, which may also be given as numbers."""
    return None if items is None else tuple(str(item) for item in items)


_CODEC: Final = RecordCodec(
    Recipe,
    _REPAIR,
    [
        Layout(
            Recipe,
            {"channels": Form(list, _read_channels), "folds": Form(_plain_folds, _read_folds)},
        ),
        Layout(PostStep, keys={"kind": "step"}),
        *NETWORK_LAYOUTS,
    ],
    not_finite=NotFinite.AS_IT_IS,
    kind=ModelError,
)

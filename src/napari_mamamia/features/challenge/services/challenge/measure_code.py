"""Record the code of measures and models that installed packages add to a challenge."""

import inspect
import sys
from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.plugins import Registry
from napari_mamamia.features.challenge.io.challenge_file import FrozenCode, FrozenFile
from napari_mamamia.features.challenge.io.definition import ChallengeDefinition
from napari_mamamia.features.challenge.scoring.measure_registry import MEASURES, MODELS
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.metrics.registry import METRIC_REGISTRY

_OURS: Final = "napari_mamamia"


def freeze_code(
    definitions: Sequence[ChallengeDefinition], models: Sequence[str] = ()
) -> tuple[FrozenCode, ...]:
    """Return the code of all measures and models that installed packages add.

    Parameters
    ----------
    definitions
        The definitions of a challenge.
    models
        Texts of its models, such as ``threshold:1.75``.
    """
    used: list[tuple[Registry[Any], str]] = [
        (MEASURES if definition.has_own_files else METRIC_REGISTRY, measure.of)
        for definition in definitions
        for measure in definition.measures
    ]
    used += [(MODELS, text.partition(":")[0]) for text in models]
    frozen = {
        (registry.group, name): _freeze_plugin(registry, name)
        for registry, name in used
        if name in registry.plugins
    }
    return tuple(frozen.values())


def find_changed_code(code: Sequence[FrozenCode]) -> list[str]:
    """Describe each measure or model whose package or code differs from its frozen state."""
    registries = {registry.group: registry for registry in (MEASURES, METRIC_REGISTRY, MODELS)}
    changes = []
    for frozen in code:
        registry = registries[frozen.group]
        is_here = frozen.name in registry.plugins
        here = _freeze_plugin(registry, frozen.name) if is_here else None
        if here != frozen:
            found = f"other code of {here.package} {here.version}" if here else "none installed"
            changes.append(
                f"expected {frozen.name} of {frozen.package} {frozen.version}, with which the "
                f"challenge was created, but found {found}"
            )
    return changes


def _freeze_plugin(registry: Registry[Any], name: str) -> FrozenCode:
    from importlib.metadata import entry_points  # 15 ms of the program's start

    spec = registry[name]
    point = next(point for point in entry_points(group=registry.group) if point.name == name)
    functions = [getattr(spec, one.name) for one in fields(spec)]
    modules = {point.module, *(_find_module(value) for value in functions if callable(value))}
    files = {module: getattr(sys.modules.get(module), "__file__", None) for module in modules}
    frozen = [
        FrozenFile(module, sha256_of(Path(file)))
        for module, file in sorted(files.items())
        if file is not None and module.partition(".")[0] != _OURS
    ]
    package = point.dist
    return FrozenCode(
        registry.group,
        name,
        package.name if package else "",
        package.version if package else "",
        tuple(frozen),
    )


def _find_module(function: Any) -> str:
    while isinstance(function, partial):
        function = function.func
    return str(inspect.unwrap(function).__module__)

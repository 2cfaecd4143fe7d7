"""The steps of a MONAI bundle's configs as records: names and arguments; no class is imported."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.bundle.references import IN_A_ROOM, WRAP, References, understood

UNUSED: Final = frozenset({"device", "sw_device", "_requires_", "_desc_", "_target_"})
"""Arguments that choose MONAI's device; here the user chooses it."""
_LOADER: Final = "LoadImaged"
WRITERS: Final = frozenset({"SaveImaged", "SaveClassificationd"})
_REPAIR: Final = "correct the bundle, or ask its author"


@dataclass(frozen=True, slots=True)
class Step:
    """One class of MONAI with its arguments; `key` is its key in the config.

    Arguments are data, but may contain `Refused` values until `objections` has checked them.
    """

    name: str
    arguments: tuple[tuple[str, Any], ...]
    key: str

    def argument(self, name: str, default: Any = None) -> Any:
        """Return an argument, or `default`."""
        return dict(self.arguments).get(name, default)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the data that the step works on (its argument ``keys``)."""
        names = self.argument("keys", ())
        if isinstance(names, list | tuple):
            return tuple(map(str, names))
        return (names,) if isinstance(names, str) else ()


def short_name(target: Any, where: str) -> str:
    """Return the class name of a ``_target_`` from MONAI's own modules, or raise an error.

    Examples
    --------
    >>> short_name("monai.transforms.SpacingD", "here")
    'Spacingd'
    """
    if not isinstance(target, str):
        raise ModelError(
            f"expected {where} to name a class of MONAI, but it has {target!r}; {_REPAIR}"
        )
    module, _, name = target.rpartition(".")
    if module and module.split(".")[0] != "monai":
        raise ModelError(
            f"expected {where} to name a class of MONAI, but it names {target!r}, which was "
            "neither imported nor run; use MONAI's own classes, export the network as "
            f"models/model.ts, or {IN_A_ROOM}",
            remedies=(WRAP,),
        )
    # MONAI has each of them under three names: Flipd, FlipD and FlipDict.
    for ending in ("Dict", "D"):
        if name.endswith(ending) and len(name) > len(ending):
            return f"{name.removesuffix(ending)}d"
    return name


def read_steps(references: References, key: str) -> tuple[tuple[Step, ...], bool]:
    """Return the steps of a Compose or a list of transforms, and whether they are run lazily.

    Raises
    ------
    ModelError
        If there are none, one is not a class of MONAI, or an argument is an expression.
    """
    if key not in references:
        raise ModelError(f"expected {references.where} to have {key!r}, but it does not; {_REPAIR}")
    transforms = references.value(key)
    lazy = isinstance(transforms, Mapping) and transforms.get("lazy", False)
    understood(lazy, references.where)
    return tuple(_flatten_steps(transforms, key, references)), bool(lazy)


def _flatten_steps(found: Any, key: str, references: References) -> Iterator[Step]:
    where = references.where
    if isinstance(found, list):
        for number, item in enumerate(found):
            yield from _flatten_steps(item, f"{key}#{number}", references)
        return
    if not isinstance(found, Mapping) or "_target_" not in found:
        understood(found, where)
        raise ModelError(f"{where}: expected {key} to be a transform with _target_; {_REPAIR}")
    understood(found.get("_mode_", "default"), where)
    if _is_disabled(found, where):
        return
    name = short_name(understood(found["_target_"], where), f"{where}: {key}")
    if name == "Compose":
        yield from _flatten_steps(found.get("transforms", []), f"{key}#transforms", references)
    else:
        yield _make_step(name, found, key, references)


def _make_step(name: str, found: Mapping[str, Any], key: str, references: References) -> Step:
    arguments = {part: value for part, value in found.items() if part not in UNUSED}
    arguments.pop("_disabled_", None)
    if arguments.pop("_mode_", "default") != "default":
        raise ModelError(
            f"{references.where}: expected {key} to be created in the default mode, but it has "
            f"_mode_ {found['_mode_']!r}; leave that out"
        )
    if name in WRITERS:
        # It writes nothing here, so that its arguments may be expressions.
        return Step(name, (), key)
    if name == _LOADER:
        loader_keys = {"keys", "ensure_channel_first", "dtype"}
        arguments = {part: value for part, value in arguments.items() if part in loader_keys}
        understood(arguments, references.where)
    if name == "Invertd":
        arguments["transform"] = _check_inverse(arguments.get("transform"), key, references)
    return Step(name, tuple(arguments.items()), key)


def _check_inverse(transform: Any, key: str, references: References) -> str:
    if transform != references.value("preprocessing"):
        raise ModelError(
            f"{references.where}: expected {key}#transform to be '@preprocessing', the bundle's "
            f"own preprocessing, which is the only one that can be inverted; {_REPAIR}"
        )
    return "@preprocessing"


def without_loader(steps: Sequence[Step], where: str) -> tuple[tuple[str, ...], tuple[Step, ...]]:
    """Return the keys that images are read into, and the steps after reading.

    Raises
    ------
    ModelError
        Unless the first step, and only the first, reads images in single precision.
    """
    if not steps or steps[0].name != _LOADER or any(s.name == _LOADER for s in steps[1:]):
        raise ModelError(
            f"{where}: expected preprocessing to begin with one {_LOADER}, whose images come from "
            f"the case here, but it has {', '.join(step.name for step in steps) or 'no step'}; "
            f"{_REPAIR}"
        )
    loader = steps[0]
    read_as = getattr(loader.argument("dtype"), "name", loader.argument("dtype", "float32"))
    if read_as not in ("float32", None):
        raise ModelError(
            f"{where}: expected {loader.key} to read float32, but it has dtype {read_as!r}; "
            f"{_REPAIR}"
        )
    first: tuple[Step, ...] = ()
    if loader.argument("ensure_channel_first", False):
        first = (Step("EnsureChannelFirstd", (("keys", list(loader.keys)),), loader.key),)
    return loader.keys, (*first, *steps[1:])


def _is_disabled(found: Mapping[str, Any], where: str) -> bool:
    value = understood(found.get("_disabled_", False), where)
    return value.lower().strip() == "true" if isinstance(value, str) else bool(value)

"""Read the configs, steps and run of a MONAI bundle as data, without importing its classes.

In a bundle, a string that begins with ``@`` refers to another value in the same file, and a string
that begins with ``$`` is a Python expression that MONAI would run. This module resolves references,
reads the few expressions that are plain values, and replaces every other expression by `Refused`,
which causes an error only if the value is needed. Source: MONAI 1.6.1, bundle/reference_resolver.py
and config_item.py (the syntax).
"""

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from napari_mamamia.core.errors import ModelError, Remedy

_MOST_VALUES: Final = 20_000  # a real inference.json has a few hundred
_DEEPEST: Final = 50
_LONGEST: Final = 2_000
UNUSED: Final = frozenset({"device", "sw_device", "_requires_", "_desc_", "_target_"})
"""Arguments that choose MONAI's device, which users of this program choose themselves."""
_LOADER: Final = "LoadImaged"
WRITERS: Final = frozenset({"SaveImaged", "SaveClassificationd"})
_REPAIR: Final = "correct the bundle, or ask its author"
_MOST_EXTENT: Final = 4096


_REFERENCE: Final = re.compile(r"^@(\w[\w#-]*)$")
_MOVED: Final = re.compile(r"^(@\w[\w#-]*)\.to\(@device\)$")
_LENGTH: Final = re.compile(r"^len\((@\w[\w#-]*)\)$")
_SUM: Final = re.compile(r"^@\w[\w#-]*( ?\+ ?@\w[\w#-]*)+$")
_COMMON_KEY: Final = re.compile(r"^monai\.utils\.(?:enums\.)?CommonKeys\.(IMAGE|LABEL|PRED)$")
_NUMBER_TYPE: Final = re.compile(
    r"^(?:torch|np|numpy)\.(float16|float32|float64|u?int8|int16|int32|int64|bool)$"
)
_NO_DATA: Final = "is a Python expression"
IN_SANDBOX: Final = "wrap it as a program that runs in a sandbox"
"""The suggested fix for every rejected bundle."""
WRAP: Final = Remedy(command="models wrap")
_REMEDY: Final = f"write it as a value into the bundle's inference.json, or {IN_SANDBOX}"


@dataclass(frozen=True, slots=True)
class NumberType:
    """A numeric data type named in a config, such as ``$torch.float32``."""

    name: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A config value that is not plain data: its key, its text and the reason."""

    key: str
    text: str
    why: str


class References:
    """The values of a config, accessed by keys such as ``inferer#roi_size``.

    Parameters
    ----------
    config
        The content of the file.
    where
        The name of the file, used in messages.
    """

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        self._config = config
        self._count = 0
        self.where = where

    def __contains__(self, key: str) -> bool:
        return not isinstance(self._find_value(key), Refused)

    def value(self, key: str) -> Any:
        """Return the value at `key` with all references resolved; it may contain `Refused`.

        Raises
        ------
        ModelError
            If the value is missing or too large for a config, or references form a cycle.
        """
        self._count = 0
        content = self._find_value(key)
        if isinstance(content, Refused):
            raise ModelError(f"{self.where} lacks {key!r}: {content.why}; complete the bundle")
        return self._resolve_value(content, key, (key,))

    def _resolve_value(self, value: Any, key: str, followed: tuple[str, ...]) -> Any:
        self._count += 1
        if self._count > _MOST_VALUES or len(followed) > _DEEPEST or key.count("#") > _DEEPEST:
            raise ModelError(
                f"expected {self.where} to be a small config, but {key} expands to more than "
                f"{_MOST_VALUES} values or {_DEEPEST} levels and was not read further; ask the "
                "author of the bundle for a simpler config"
            )
        if isinstance(value, Mapping):
            return {
                str(name): self._resolve_value(part, f"{key}#{name}", followed)
                for name, part in value.items()
            }
        if isinstance(value, list):
            return [
                self._resolve_value(part, f"{key}#{n}", followed) for n, part in enumerate(value)
            ]
        return self._resolve_text(value, key, followed) if isinstance(value, str) else value

    def _resolve_text(self, text: str, key: str, followed: tuple[str, ...]) -> Any:
        plain = text.strip().replace("::", "#")
        if plain.startswith("$"):
            plain = plain[1:].strip()
            moved = _MOVED.match(plain)
            plain = moved[1] if moved else plain
            if not _REFERENCE.match(plain):
                return self._resolve_expression(plain, key, text, followed)
        if plain.startswith("%"):
            return Refused(key, text, "takes text from a different value")
        if not plain.startswith("@"):
            return text
        reference = _REFERENCE.match(plain)
        if reference is None:
            return Refused(key, text, "is not a simple reference")
        return self._follow_reference(reference[1], key, text, followed)

    def _resolve_expression(
        self, plain: str, key: str, text: str, followed: tuple[str, ...]
    ) -> Any:
        """Return the value of an expression that has one of a few supported forms."""
        length = _LENGTH.match(plain)
        if length:
            counted = self._resolve_text(length[1], key, followed)
            return len(counted) if isinstance(counted, list) else Refused(key, text, _NO_DATA)
        if _SUM.match(plain):
            parts = [self._resolve_text(part.strip(), key, followed) for part in plain.split("+")]
            if all(isinstance(part, list) for part in parts):
                return [value for part in parts for value in part]
            return Refused(key, text, _NO_DATA)
        return _read_literal(plain, key, text)

    def _follow_reference(self, target: str, key: str, text: str, followed: tuple[str, ...]) -> Any:
        if target in followed:
            circle = " -> ".join((*followed, target))
            raise ModelError(
                f"{self.where}: references form a cycle ({circle}); correct the bundle"
            )
        value = self._find_value(target)
        if isinstance(value, Refused):
            return Refused(key, text, value.why)
        return self._resolve_value(value, target, (*followed, target))

    def _find_value(self, key: str) -> Any:
        value: Any = self._config
        for name in key.split("#"):
            if isinstance(value, Mapping) and name in value:
                value = value[name]
            elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
                value = value[int(name)]
            else:
                return Refused(key, key, f"{key!r} is not in the file")
        return value


def understood(value: Any, where: str) -> Any:
    """Return `value` if it consists only of plain data.

    Raises
    ------
    ModelError
        If `value` contains a `Refused`; the message has the key and the expression.
    """
    refused = _first_refused(value)
    if refused is not None:
        raise ModelError(
            f"{where}: expected {refused.key} to be a value, but it is {refused.text!r}, which "
            f"{refused.why}; none of it was run: {_REMEDY}",
            remedies=(WRAP,),
        )
    return value


def _first_refused(value: Any) -> Refused | None:
    if isinstance(value, Refused):
        return value
    parts: Any = ()
    if isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, list | tuple):
        parts = value
    return next(filter(None, map(_first_refused, parts)), None)


def _read_literal(plain: str, key: str, text: str) -> Any:
    """Return the value of an expression that is a MONAI name, a number type or a literal.

    Source of the names: MONAI 1.6.1, utils/enums.py, CommonKeys.
    """
    common = _COMMON_KEY.match(plain)
    if common:
        return common[1].lower()
    number_type = _NUMBER_TYPE.match(plain)
    if number_type:
        return NumberType(number_type[1])
    if len(plain) <= _LONGEST:
        try:
            return ast.literal_eval(plain)  # This reads only literals and calls no function.
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            pass
    shown = text if len(text) <= 200 else f"{text[:200]}…"
    return Refused(key, shown, _NO_DATA)


@dataclass(frozen=True, slots=True)
class Step:
    """A MONAI class with its arguments; `key` is the position in the config.

    Arguments are data, but may contain `Refused` values until `objections` has checked them.
    """

    name: str
    arguments: tuple[tuple[str, Any], ...]
    key: str

    def argument(self, name: str, default: Any = None) -> Any:
        """Return an argument, or `default` if it is missing."""
        return dict(self.arguments).get(name, default)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the data that the step processes (its argument ``keys``)."""
        names = self.argument("keys", ())
        if isinstance(names, list | tuple):
            return tuple(map(str, names))
        return (names,) if isinstance(names, str) else ()


def short_name(target: Any, where: str) -> str:
    """Return the class name in a ``_target_`` that refers to one of MONAI's own modules.

    Examples
    --------
    >>> short_name("monai.transforms.SpacingD", "here")
    'Spacingd'
    """
    if not isinstance(target, str):
        raise ModelError(
            f"expected {where} to name a MONAI class, but it has {target!r}; {_REPAIR}"
        )
    module, _, name = target.rpartition(".")
    if module and module.split(".")[0] != "monai":
        raise ModelError(
            f"expected {where} to name a MONAI class, but it names {target!r}, which was neither "
            "imported nor run; use MONAI's own classes, export the network as models/model.ts, "
            f"or {IN_SANDBOX}",
            remedies=(WRAP,),
        )
    # Each class has three names in MONAI: Flipd, FlipD and FlipDict.
    for ending in ("Dict", "D"):
        if name.endswith(ending) and len(name) > len(ending):
            return f"{name.removesuffix(ending)}d"
    return name


def read_steps(references: References, key: str) -> tuple[tuple[Step, ...], bool]:
    """Return the steps of a Compose or a list of transforms, and whether MONAI runs them lazily.

    Raises
    ------
    ModelError
        If there are no steps, a step is not a MONAI class, or an argument is an expression.
    """
    if key not in references:
        raise ModelError(f"{references.where} lacks {key!r}; {_REPAIR}")
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
        raise ModelError(
            f"{where}: expected {key} to be a transform, but it has no _target_; {_REPAIR}"
        )
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
            f"_mode_ {found['_mode_']!r}; remove that entry"
        )
    if name in WRITERS:
        # This step writes no file here, so its arguments may be expressions.
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
            f"{references.where}: expected {key}#transform to be '@preprocessing', because only "
            f"the bundle's own preprocessing can be inverted; {_REPAIR}"
        )
    return "@preprocessing"


def without_loader(steps: Sequence[Step], where: str) -> tuple[tuple[str, ...], tuple[Step, ...]]:
    """Return the keys that images are read into, and the steps after reading.

    Raises
    ------
    ModelError
        If the first step does not read images in single precision, or a later step reads images.
    """
    if not steps or steps[0].name != _LOADER or any(s.name == _LOADER for s in steps[1:]):
        raise ModelError(
            f"{where}: expected preprocessing to begin with exactly one {_LOADER}, but it has "
            f"{', '.join(step.name for step in steps) or 'no step'}; {_REPAIR}"
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


@dataclass(frozen=True, slots=True)
class DataFormat:
    """Input and output described in metadata.json, with the channel names in order."""

    channels: tuple[str, ...]
    outputs: tuple[str, ...]
    spatial_shape: tuple[str, ...] = ()
    value_range: tuple[str, ...] = ()

    @property
    def has_background(self) -> bool:
        """Whether the first output is background."""
        return bool(self.outputs) and self.outputs[0].strip().casefold() == "background"

    @property
    def labels(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Labels as (name, values). With background, output k has the value k, otherwise k + 1."""
        first = 1 if self.has_background else 0
        return tuple((name, (number,)) for number, name in enumerate(self.outputs[first:], start=1))


@dataclass(frozen=True, slots=True)
class Windows:
    """Settings of MONAI's sliding window.

    If `roi_size` is None, the network runs once on the whole volume. An extent below 1 stands for
    the extent of the volume. The defaults are those of SlidingWindowInferer.
    """

    roi_size: tuple[int, int, int] | None = None
    batch: int = 1
    overlap: tuple[float, float, float] = (0.25, 0.25, 0.25)
    mode: str = "constant"
    sigma_scale: tuple[float, float, float] = (0.125, 0.125, 0.125)
    padding_mode: str = "constant"
    cval: float = 0.0


@dataclass(frozen=True, slots=True)
class BundleConfig:
    """The configuration with which a bundle is run.

    `preprocessing` has the steps after reading. `images` are the keys into which the images are
    read: one key for all channels, or one for each. `mixed` is True if the bundle computes in half
    precision on a CUDA GPU.
    """

    where: str
    images: tuple[str, ...]
    preprocessing: tuple[Step, ...]
    postprocessing: tuple[Step, ...]
    windows: Windows
    network: Step | None
    lazy: bool = False
    mixed: bool = False


def read_format(metadata: Mapping[str, Any], where: str) -> DataFormat:
    """Return the input and output that metadata.json describes.

    Raises
    ------
    ModelError
        If ``network_data_format`` lacks the input ``image`` or the output ``pred``.
    """
    try:
        data = metadata["network_data_format"]
        image, pred = data["inputs"]["image"], data["outputs"]["pred"]
        return DataFormat(
            channels=_name_channels(image, "channel"),
            outputs=_name_channels(pred, "output"),
            spatial_shape=tuple(map(str, image.get("spatial_shape", ()))),
            value_range=tuple(map(str, image.get("value_range", ()))),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelError(
            f"{where}: expected network_data_format with inputs.image and outputs.pred, each with "
            f"num_channels, in metadata.json, but reading it failed ({type(error).__name__}: "
            f"{error}); {_REPAIR}"
        ) from error


def read_config(references: References) -> BundleConfig:
    """Return the configuration with which a bundle is run, read from its inference.json.

    Raises
    ------
    ModelError
        If a needed value is missing or is an expression, or a step is not allowed in a bundle.
    """
    where = references.where
    before, lazy = read_steps(references, "preprocessing")
    after, _ = read_steps(references, "postprocessing")
    images, before = without_loader(before, where)
    return BundleConfig(
        where=where,
        images=images,
        preprocessing=before,
        postprocessing=tuple(step for step in after if step.name not in WRITERS),
        windows=_read_windows(references),
        network=_find_network(references),
        lazy=lazy,
        mixed="evaluator#amp" in references and references.value("evaluator#amp") is True,
    )


def has_background(data_format: DataFormat, config: BundleConfig) -> bool:
    """Return whether the first output is background, by its name or because the largest wins."""
    named = data_format.outputs[0].strip().casefold() == "background"
    wins = any(
        step.name == "AsDiscreted" and step.argument("argmax") not in (None, False, [False])
        for step in config.postprocessing
    )
    return len(data_format.outputs) > 1 and (named or wins)


def label_names(
    data_format: DataFormat, config: BundleConfig
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return labels as (name, values): output k has the value k with background, else k + 1."""
    names = data_format.outputs[1 if has_background(data_format, config) else 0 :]
    return tuple((name, (value,)) for value, name in enumerate(names, start=1))


def _read_windows(references: References) -> Windows:
    where = references.where
    inferer = references.value("inferer")
    if not isinstance(inferer, Mapping):
        understood(inferer, where)
        raise ModelError(
            f"{where}: expected inferer to have _target_, but it is {inferer!r}; {_REPAIR}"
        )
    name = short_name(understood(inferer.get("_target_"), where), f"{where}: inferer")
    if name == "SimpleInferer":
        return Windows()
    if name not in ("SlidingWindowInferer", "SlidingWindowInfererAdapt"):
        raise ModelError(
            f"{where}: expected the inferer SlidingWindowInferer or SimpleInferer, but found "
            f"{name}; export the network as TorchScript and choose that file instead"
        )
    understood({k: v for k, v in inferer.items() if k not in UNUSED}, where)
    try:
        return _window_record(inferer)
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise ModelError(
            f"{where}: the inferer needs a roi_size of three whole numbers and valid settings: "
            f"{error}; {_REPAIR}"
        ) from error


def _window_record(found: Mapping[str, Any]) -> Windows:
    default = Windows()
    overlap = _make_triple(found.get("overlap", default.overlap), float)
    batch = int(found.get("sw_batch_size", 1))
    mode = str(found.get("mode", default.mode))
    padding = str(found.get("padding_mode", default.padding_mode))
    if not all(0 <= share < 1 for share in overlap) or not 1 <= batch <= 1024:
        raise ValueError(
            "expected overlap to be at least 0 and less than 1, and sw_batch_size to be from 1 to "
            f"1024, but overlap is {overlap} and sw_batch_size is {batch}"
        )
    if mode not in ("constant", "gaussian"):
        raise ValueError(f"expected the mode to be constant or gaussian, but it is {mode!r}")
    if padding not in ("constant", "reflect", "replicate", "circular"):
        raise ValueError(
            "expected padding_mode to be constant, reflect, replicate or circular, "
            f"but it is {padding!r}"
        )
    if found.get("with_coord"):
        raise ValueError("with_coord is not supported, because it gives the network a second input")
    size = _make_triple(found["roi_size"], int)
    sigma = _make_triple(found.get("sigma_scale", default.sigma_scale), float)
    cval = float(found.get("cval", 0.0))
    if max(size) > _MOST_EXTENT or not all(0 < s <= 10 for s in sigma) or not math.isfinite(cval):
        raise ValueError(
            f"expected roi_size to be up to {_MOST_EXTENT}, sigma_scale to be above 0 and up to "
            f"10, and cval to be finite, but roi_size is {size}, sigma_scale is {sigma} and cval "
            f"is {cval}"
        )
    return Windows(size, batch, overlap, mode, sigma, padding, cval)


def _find_network(references: References) -> Step | None:
    key = next((name for name in ("network_def", "network") if name in references), "")
    definition = references.value(key) if key else None
    if not isinstance(definition, Mapping) or "_target_" not in definition:
        return None
    arguments = {k: v for k, v in definition.items() if k not in UNUSED and k != "_disabled_"}
    target = str(understood(definition["_target_"], references.where))
    return Step(target, tuple(arguments.items()), key)


def _make_triple(value: Any, kind: Any) -> Any:
    values = list(value) if isinstance(value, list | tuple) else [value] * 3
    if len(values) != 3:
        raise ValueError(
            f"expected one value or one for each of 3 axes, but {value!r} has {len(values)}"
        )
    return tuple(kind(-1 if value is None else value) for value in values)


def _name_channels(found: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    count = int(found["num_channels"])
    if not 1 <= count <= 1000:
        raise ValueError(f"expected num_channels to be from 1 to 1000, but it is {count}")
    names = found.get("channel_def") or {}
    return tuple(str(names.get(str(k), f"{kind} {k}")) for k in range(count))

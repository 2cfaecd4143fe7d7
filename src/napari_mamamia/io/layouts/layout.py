"""`Layout`: describes how the files of a data set are arranged, in a few lines of TOML.

The form is described in docs/howto/open_data.md; the built-in layouts are in ``known.toml``.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.names import name_some
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.layouts.pattern import PathPattern

T = TypeVar("T")

_MOST_BYTES: Final = 1 << 20
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]*")


class ImageKind(StrEnum):
    """What a path that matches a phase contains."""

    VOLUME = "volume"
    """A file that contains one phase."""
    FRAMES = "frames"
    """A 4-D file whose fourth axis is the phase."""
    DICOM = "dicom"
    """A folder of DICOM files, whose headers determine the phases and times."""
    SCENE = "scene"
    """A 3D Slicer scene (.mrb, a zip file), in which image names determine the phases."""


@dataclass(frozen=True, slots=True)
class ImageRule:
    """Rule that identifies paths of phases.

    `phase` is the phase number if the path does not contain it, and `first` is the number of the
    first phase. If `holds` is set, a DICOM folder matches only if it contains a folder that matches
    `holds`. If `needs` is set, a DICOM folder without a folder that matches `needs` is incomplete.
    """

    pattern: PathPattern
    kind: ImageKind = ImageKind.VOLUME
    phase: int | None = None
    first: int = 0
    holds: PathPattern | None = None
    needs: PathPattern | None = None


@dataclass(frozen=True, slots=True)
class MaskRule:
    """Rule that identifies paths of masks.

    `label` is the foreground value, or None if every value above 0 is foreground. `region` names
    what the mask outlines. `is_reference` states whether an expert drew the mask. With `is_folder`,
    the pattern matches a folder that contains a mask for each case (`io.data_set.mask_files`).
    """

    pattern: PathPattern
    name: str = ""
    label: int | None = None
    region: str = "tumour"
    is_reference: bool = False
    kind: ImageKind = ImageKind.VOLUME
    is_folder: bool = False

    def fits(self, path: str) -> bool:
        """Return whether this rule applies to a mask, given by its path in the data set."""
        if self.is_folder:
            return self.pattern.match_folder(path.rpartition("/")[0]) is not None
        return self.pattern.match(path) is not None


@dataclass(frozen=True, slots=True)
class OtherRule:
    """Rule that identifies images that are not phases, such as subtractions and T2 images."""

    pattern: PathPattern
    role: str
    kind: ImageKind = ImageKind.VOLUME


@dataclass(frozen=True, slots=True)
class TableRule:
    """Rule that identifies a table with a row for each case, and defines its columns.

    `key` is a column, or several columns such as ``{pat}_{side}``. `id_template` computes the key's
    value from the fields of a path. `times` names the column with acquisition times, and `spacing`
    the columns with the spacing in mm along z, y, x. If `has_exams` is True, the columns patient,
    visit, visit_number and side take precedence over the paths; such a table may be missing.
    """

    pattern: PathPattern
    key: str
    id_template: str = "{patient}"
    times: str = ""
    spacing: tuple[str, ...] = ()
    person: str = ""
    has_exams: bool = False


@dataclass(frozen=True, slots=True)
class ListRule:
    """Rule for a JSON file that lists cases: keys of its lists, images, masks and splits."""

    pattern: PathPattern
    items: tuple[str, ...]
    image: str
    mask: str
    id_pattern: PathPattern
    split: str = ""


@dataclass(frozen=True, slots=True)
class SplitRule:
    """Rule for a file that assigns cases to training and testing.

    For a list of ids, `name` is the part to which the ids belong. For a table, `key`, `column` and
    `fold` name the columns with ids, parts and folds; `id_template` computes an id from the fields
    of a path.
    """

    pattern: PathPattern
    name: str = ""
    key: str = ""
    id_template: str = "{patient}"
    column: str = ""
    fold: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the files of one kind of data set are arranged on disk.

    Attributes
    ----------
    name
        Name in lower case without blanks, which is the value of ``layout=``.
    title
        Name for display.
    case_template
        Template that computes a case id from the fields; "" joins patient, visit and side with
        ``_``.
    rename
        For a field, the text to replace and its replacement.
    sidecar
        Key of the time in the JSON file next to each image; "" if there is none.
    visit_order
        Pattern of a table with a patient's visits in order; None if their names give the order.
    axes
        Order of a file's axes, fastest last, if files store no affine; otherwise "".
    notes
        Notes that are shown to the user for every data set with this layout.
    refused
        Patterns of files that cannot be read as images, each with the reason.
    names
        Pattern of a JSON file of grand-challenge jobs that contains the names of cases.
    channel_names
        Pattern of nnU-Net's JSON file, which states the content of each channel.
    ignored
        Patterns of files that are ignored without a message, such as copies.
    words
        Meanings of words in paths, such as left for L.
    case_folder
        Pattern of folders that each represent a case, even without a phase.
    info
        Pattern of each patient's JSON file in MAMA-MIA's format.
    priority
        Layouts with a lower priority are used only if no layout with a higher priority fits.
    about
        Text for the documentation on which files are read and which are not.
    """

    name: str
    title: str
    images: tuple[ImageRule, ...] = ()
    masks: tuple[MaskRule, ...] = ()
    others: tuple[OtherRule, ...] = ()
    table: TableRule | None = None
    case_list: ListRule | None = None
    splits: tuple[SplitRule, ...] = ()
    case_template: str = ""
    rename: tuple[tuple[str, str, str], ...] = ()
    sidecar: str = ""
    visit_order: PathPattern | None = None
    axes: str = ""
    notes: tuple[str, ...] = ()
    refused: tuple[tuple[PathPattern, str], ...] = ()
    names: PathPattern | None = None
    channel_names: PathPattern | None = None
    ignored: tuple[PathPattern, ...] = ()
    words: tuple[tuple[str, str], ...] = ()
    case_folder: PathPattern | None = None
    info: PathPattern | None = None
    priority: int = 0
    about: str = ""

    @property
    def is_certain(self) -> bool:
        """Whether phase names end in four digits, so that even a single file is a series."""
        return any(rule.pattern.kinds.get("phase") == "nnnn" for rule in self.images)

    @property
    def fields(self) -> frozenset[str]:
        """Names of the fields that occur in an image pattern."""
        return frozenset(name for rule in self.images for name in rule.pattern.kinds)


@reads("a layout file", "see the form in the documentation (Open your data set)")
def read_layouts(path: Path) -> tuple[Layout, ...]:
    """Return the layouts in a TOML file, one for each top-level table.

    Parameters
    ----------
    path
        The TOML file; the name of each top-level table is the name of a layout.

    Raises
    ------
    FormatError
        If the file is not valid TOML, or contains an unknown key or an invalid pattern.
    """
    return parse_layouts(read_layout_text(path), str(path))


@reads("a layout file", "see the form in the documentation (Open your data set)")
def read_layout_text(path: Path) -> str:
    """Return the text of a layout file; raise `FormatError` if it cannot be read."""
    with open_plain(path) as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise FormatError(f"expected a layout file of at most 1 MB at {path}, but it is larger")
    return content.decode("utf-8-sig")


def parse_layouts(text: str, source: str) -> tuple[Layout, ...]:
    """Return the layouts in TOML text; error messages name the text as `source`.

    Raises
    ------
    FormatError
        As in `read_layouts`.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"cannot read {source} as TOML: {error}") from error
    if not tables or not all(isinstance(table, dict) for table in tables.values()):
        raise FormatError(
            f"expected at least one table [name] in {source}, each with image = [...], but found "
            f"{name_some(list(tables)) or 'nothing'}"
        )
    layouts = []
    for name, table in tables.items():
        try:
            layouts.append(_parse_layout(name, table))
        except ValueError as error:
            raise FormatError(f"layout [{name}] in {source}: {error}") from error
    return tuple(layouts)


def _parse_layout(name: str, table: Mapping[str, Any]) -> Layout:
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"expected a name of lower-case letters, digits, _ and -, but found {name!r}"
        )
    settings = _Settings(table, "")
    layout = Layout(
        name,
        settings.text("title", name),
        settings.each("image", _parse_image),
        settings.each("mask", _parse_mask),
        settings.each("other", _parse_other),
        settings.one("table", _parse_table),
        settings.one("list", _parse_list),
        settings.each("split", _parse_split),
        settings.text("case"),
        _parse_renames(settings.take("rename", dict, {})),
        settings.one("times", lambda times: times.text("sidecar")) or "",
        settings.one("visits", lambda visits: visits.pattern("order")),
        settings.one("geometry", lambda geometry: geometry.text("axes")) or "",
        tuple(settings.texts("notes")),
        settings.each("refuse", lambda rule: (rule.pattern("path"), rule.text("why"))),
        settings.one("names", lambda names: names.pattern("path")),
        settings.one("channel_names", lambda names: names.pattern("path")),
        tuple(map(PathPattern, settings.texts("ignore"))),
        _parse_words(settings.take("words", dict, {})),
        settings.one("folder", lambda folder: folder.pattern("path")),
        settings.one("info", lambda info: info.pattern("path")),
        settings.take("priority", int, 0),
        settings.text("about"),
    )
    settings.require_known()
    if not layout.images and layout.case_list is None:
        raise ValueError(
            "expected image = [{path = ...}] or list = {path = ...}, but found neither"
        )
    if layout.axes and layout.axes != "zyx":
        raise ValueError(f'expected geometry.axes = "zyx", but found {layout.axes!r}')
    return layout


class _Settings:
    """One TOML table, from which keys are taken by name and type."""

    def __init__(self, table: Mapping[str, Any], where: str) -> None:
        self._table = dict(table)
        self._known: list[str] = []
        self._where = where

    def take(self, key: str, kind: type, default: Any) -> Any:
        """Return the value of a key; raise `ValueError` if it has a different type."""
        self._known.append(key)
        value = self._table.pop(key, default)
        if value is not default and (
            not isinstance(value, kind) or (kind is int and isinstance(value, bool))
        ):
            expected = {str: "text", int: "a whole number", list: "a list", dict: "a table"}
            raise ValueError(
                f"expected {expected.get(kind, kind.__name__)} for {self._where}{key}, but found "
                f"{value!r}"
            )
        return value

    def has(self, key: str) -> bool:
        return key in self._table

    def text(self, key: str, default: str = "") -> str:
        return str(self.take(key, str, default))

    def texts(self, key: str) -> list[str]:
        values = self.take(key, list, [])
        if not all(isinstance(value, str) for value in values):
            raise ValueError(f"expected strings in {self._where}{key}, but found {values!r}")
        return list(values)

    def flag(self, key: str) -> bool:
        return bool(self.take(key, bool, False))

    def pattern(self, key: str) -> PathPattern:
        text = self.text(key)
        if not text or text.startswith("/") or ".." in text.split("/"):
            raise ValueError(
                f"expected a path below the data set's root for {self._where}{key}, but found "
                f"{text!r}"
            )
        return PathPattern(text)

    def one(self, key: str, parse: Callable[["_Settings"], T]) -> T | None:
        table = self.take(key, dict, None)
        return None if table is None else self._parse(f"{key}.", table, parse)

    def each(self, key: str, parse: Callable[["_Settings"], T]) -> tuple[T, ...]:
        tables = self.take(key, list, [])
        if not all(isinstance(table, dict) for table in tables):
            raise ValueError(f"expected {key} = [{{path = ...}}, ...], but found {tables!r}")
        return tuple(
            self._parse(f"{key}[{index}].", table, parse) for index, table in enumerate(tables)
        )

    def _parse(self, where: str, table: Mapping[str, Any], parse: Callable[["_Settings"], T]) -> T:
        inner = _Settings(table, f"{self._where}{where}")
        value = parse(inner)
        inner.require_known()
        return value

    def require_known(self) -> None:
        """Raise `ValueError` if the table contains a key that was not used."""
        if self._table:
            raise ValueError(
                f"expected {self._where or 'the keys '}{', '.join(sorted(self._known))}, but found "
                f"{', '.join(sorted(self._table))}"
            )


def _parse_kind(settings: _Settings) -> ImageKind:
    kind = settings.text("kind", ImageKind.VOLUME)
    frames = settings.flag("frames")
    if kind not in tuple(ImageKind):
        raise ValueError(f"expected kind = {' or '.join(ImageKind)}, but found {kind!r}")
    return ImageKind.FRAMES if frames else ImageKind(kind)


def _parse_image(settings: _Settings) -> ImageRule:
    rule = ImageRule(
        settings.pattern("path"),
        _parse_kind(settings),
        settings.take("phase", int, None),
        settings.take("first", int, 0),
        PathPattern(holds) if (holds := settings.text("holds")) else None,
        PathPattern(needs) if (needs := settings.text("needs")) else None,
    )
    has_order = rule.phase is not None or {"phase", "time"} & rule.pattern.kinds.keys()
    if rule.kind is ImageKind.VOLUME and not has_order:
        raise ValueError(
            f"expected {{phase:n}} or {{time:x}} in {rule.pattern.text!r}, or phase = a number, "
            "but found neither"
        )
    return rule


def _parse_mask(settings: _Settings) -> MaskRule:
    is_folder = settings.has("folder")
    rule = MaskRule(
        settings.pattern("folder" if is_folder else "path"),
        settings.text("name"),
        settings.take("label", int, None),
        settings.text("what", "tumour"),
        settings.flag("reference"),
        _parse_kind(settings),
        is_folder,
    )
    if rule.label is not None and rule.label < 1:
        raise ValueError(
            f"expected label = 1 or more for the mask {rule.pattern.text!r}, because 0 is the "
            f"background, but found {rule.label}"
        )
    is_segments = rule.pattern.text.endswith(".seg.nrrd")
    if not rule.name and "name" not in rule.pattern.kinds and not is_segments:
        raise ValueError(
            f"expected name = ... or {{name}} in the mask {rule.pattern.text!r}, but found neither"
        )
    return rule


def _parse_other(settings: _Settings) -> OtherRule:
    return OtherRule(settings.pattern("path"), settings.text("role"), _parse_kind(settings))


def _parse_table(settings: _Settings) -> TableRule:
    return TableRule(
        settings.pattern("path"),
        settings.text("key"),
        settings.text("id", "{patient}"),
        settings.text("times"),
        tuple(settings.texts("spacing")),
        settings.text("person"),
        settings.flag("exams"),
    )


def _parse_list(settings: _Settings) -> ListRule:
    return ListRule(
        settings.pattern("path"),
        tuple(settings.texts("items")),
        settings.text("image", "image"),
        settings.text("mask", "label"),
        settings.pattern("id"),
        settings.text("split"),
    )


def _parse_split(settings: _Settings) -> SplitRule:
    return SplitRule(
        settings.pattern("path"),
        settings.text("name"),
        settings.text("key"),
        settings.text("id", "{patient}"),
        settings.text("column"),
        settings.text("fold"),
    )


def _parse_renames(table: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    renames = []
    for name, pair in table.items():
        if not (isinstance(pair, list) and len(pair) == 2 and all(map(_is_text, pair))):
            raise ValueError(f'expected rename.{name} = ["old", "new"], but found {pair!r}')
        renames.append((name, pair[0], pair[1]))
    return tuple(renames)


def _parse_words(table: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    if not all(map(_is_text, table.values())):
        raise ValueError(f'expected words = {{L = "left"}}, but found {table!r}')
    return tuple(table.items())


def _is_text(value: object) -> bool:
    return isinstance(value, str)

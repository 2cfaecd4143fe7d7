"""Find patient identifiers in volumes other than DICOM, and in JSON files next to them.

dcm2niix writes name, number and dates into the JSON file beside an image unless told not to; other
converters write the name into `descrip` or an extension.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError, is_refused
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.dicom.persons import Persons, kind_of, telling
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.privacy.identifiers import Identifier, find_personal
from napari_mamamia.io.volumes.formats import file_stem
from napari_mamamia.io.volumes.nifti_header import known_fields
from napari_mamamia.io.volumes.streams import open_stream

_META_SILENT: Final = re.compile(
    r"objecttype|ndims|binarydata.*|elementbyteordermsb|compresseddata.*|transformmatrix|rotation|"
    r"orientation|offset|position|origin|centerofrotation|anatomicalorientation|element.*|dimsize|"
    r"distanceunits|headersize"
)
"""Elements of a MetaImage that contain only numbers and fixed words."""
_TEXTS: Final = ("descrip", "aux_file", "intent_name", "db_name")
_LONGEST: Final = 540
_MOST_EXTENSION: Final = 1 << 20
_MOST_NRRD: Final = 1 << 16
_RUN: Final = re.compile(rb"[\x20-\x7e\x80-\xff]{5,}")
_DEPTH: Final = 8


def find_volume_identifiers(files: Iterable[Path]) -> Persons:
    """Return the identifiers in headers of volumes and in JSON files, each once.

    Of a JSON file those keys count that have names of DICOM elements; for a volume the JSON file of
    the same name is read too. No identifier is `certain`, because nothing says whether the identity
    was removed.

    Raises
    ------
    FormatError
        If the system refuses a file, because its identifiers would be missing.
    """
    identifiers: dict[Identifier, None] = {}
    n_unread = 0
    looked: set[Path] = set()
    for number, path in enumerate(files):
        report_progress(number, number + 1, "Reading patient identifiers")
        for file in (path, *_find_sidecar(path)):
            if file in looked:
                continue
            looked.add(file)
            try:
                identifiers.update(dict.fromkeys(_read_identifiers(file)))
            except FormatError as error:
                if is_refused(error):
                    raise
                n_unread += 1
    return Persons(telling(identifiers), n_unread)


def _find_sidecar(path: Path) -> Iterator[Path]:
    if file_stem(path.name):
        sidecar = path.with_name(f"{file_stem(path.name)}.json")
        if sidecar.is_file():
            yield sidecar


@reads("a volume's header, or JSON", "check it by hand")
def _read_identifiers(path: Path) -> tuple[Identifier, ...]:
    name = path.name.lower()
    if name.endswith(".json"):
        return tuple(_in_json(read_json(path), _DEPTH))
    if name.endswith((".nrrd", ".nhdr")):
        return tuple(_in_texts(_nrrd_texts(path)))
    if name.endswith((".mha", ".mhd")):
        return tuple(_in_texts(_metaimage_texts(path)))
    return tuple(_in_texts(_nifti_texts(path))) if file_stem(name) else ()


def _in_json(value: Any, depth: int) -> Iterator[Identifier]:
    if depth and isinstance(value, list):
        for item in value:
            yield from _in_json(item, depth - 1)
    if not depth or not isinstance(value, dict):
        return
    for key, item in value.items():
        kind = kind_of(key)
        texts = item if isinstance(item, list) else [item]
        if not kind:
            yield from _in_json(item, depth - 1)
            continue
        for text in texts:
            if isinstance(text, str | int) and str(text).strip():
                yield Identifier(key, str(text).strip(), kind, certain=False)


def _nifti_texts(path: Path) -> Iterator[tuple[str, str]]:
    with open_stream(path) as stream:
        head = stream.head(_LONGEST)
        fields = known_fields(head)
        if fields is None:
            raise FormatError(f"expected a NIfTI file, got {path}: check it by hand")
        for name in _TEXTS:
            if name in fields.keys():  # noqa: SIM118 - nibabel's header is no mapping
                # After the first zero byte there may be anything from the memory of the writing
                # program.
                text = bytes(fields[name].item()).split(b"\0")[0]
                yield name, text.decode("utf-8", "replace")
        size = int(fields["sizeof_hdr"])
        n_more = min(int(fields["vox_offset"]), _MOST_EXTENSION) - len(head)
        more = head[size + 4 :] + (stream.head(n_more) if n_more > 0 else b"")
        if head[size : size + 1] == b"\1":
            for run in _RUN.findall(more):
                yield "an extension of the header", run.decode("utf-8", "replace")


def _nrrd_texts(path: Path) -> Iterator[tuple[str, str]]:
    with open_stream(path) as stream:
        head = stream.head(_MOST_NRRD).partition(b"\n\n")[0].replace(b"\r", b"")
    for line in head.decode("utf-8", "replace").split("\n"):
        key, is_pair, value = line.partition(":=")
        if line.startswith("#"):
            yield "a comment of the header", line[1:]
        elif is_pair:
            yield f"{key.strip()[:40]} of the header", value
        elif line.lower().startswith("content:"):
            yield "content of the header", line[8:]


def _metaimage_texts(path: Path) -> Iterator[tuple[str, str]]:
    with open_stream(path, is_gzip=False) as stream:
        head = stream.head(_MOST_NRRD)
    for line in head.decode("utf-8", "replace").split("\n"):
        key, equals, value = line.partition("=")
        name = key.strip().lower()
        if equals and not _META_SILENT.fullmatch(name):
            yield f"{key.strip()[:40]} of the header", value.strip()
        if name == "elementdatafile":
            return


def _in_texts(texts: Iterable[tuple[str, str]]) -> Iterator[Identifier]:
    """Yield the identifiers in a free text: the text, and names, dates and numbers in it."""
    for element, text in texts:
        yield from find_personal(element, text)
        if text.strip():
            yield Identifier(element, text.strip(), "text", certain=False)

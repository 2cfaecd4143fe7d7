"""Damage that knows the format: the same seed gives the same bytes."""

import gzip
import io
import json
import re
import struct
import zipfile
from random import Random

HOSTILE_NUMBERS = (
    "0",
    "-1",
    "1",
    "255",
    "256",
    "65535",
    "65536",
    "2147483647",
    "-2147483648",
    "4294967295",
    "9223372036854775807",
    "-9223372036854775809",
    "18446744073709551616",
    "9" * 400,
    "-" + "8" * 5000,
    "1e999",
    "-1e999",
    "1e-400",
    "NaN",
    "Infinity",
    "-Infinity",
    "0.1",
    "1e308",
    "00",
    "0x10",
    "٣",
    "１",
)
HOSTILE_TEXTS = (
    "",
    " ",
    "\x00",
    "a" * 70000,
    "\\",
    "1\\2\\3",
    "=1+1",
    "\ud800",
    "\ufeff",
    "\u202e",
    "é" * 300,
    "../../etc/passwd",
    "/etc/passwd",
    "C:\\x",
    "\r\n",
    "\t",
    '"',
    "'",
    "<a>",
    "&amp;",
    "None",
    "nan",
    "%s%n",
    "{0}",
    "1.2.840.10008.1.2.1.99",
    "A" * 63 + "\n",
)
_HOSTILE_BYTES = tuple(
    struct.pack(form, value)
    for form, value in (
        ("<B", 255),
        ("<H", 0),
        ("<H", 65535),
        ("<h", -1),
        ("<h", 32767),
        ("<I", 0),
        ("<I", 2**32 - 1),
        ("<i", -1),
        ("<i", 2**31 - 1),
        ("<i", -(2**31)),
        (">I", 2**31),
        (">i", 348),
        ("<q", -1),
        ("<q", 2**62),
        ("<f", float("nan")),
        ("<f", float("inf")),
        ("<f", 0.0),
        ("<f", -1.0),
        ("<d", float("nan")),
        ("<d", 1e308),
        ("<d", 0.0),
    )
)


def mutated(data: bytes, kind: str, rng: Random) -> bytes:
    """Return `data` damaged once to three times, as files of `kind` come damaged."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        change = rng.choice(_OF_KIND.get(kind, (any_bytes,)))
        data = change(data, rng)
    return data


def any_bytes(data: bytes, rng: Random) -> bytes:
    return rng.choice(_ON_BYTES)(bytearray(data) or bytearray(b"\0"), rng)


def _flip_bits(data: bytearray, rng: Random) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def _flip_early(data: bytearray, rng: Random) -> bytes:
    data[rng.randrange(min(len(data), 600))] ^= 1 << rng.randrange(8)
    return bytes(data)


def _cut(data: bytearray, rng: Random) -> bytes:
    return bytes(data[: rng.choice((0, 1, len(data) - 1, rng.randrange(len(data))))])


def _number(data: bytearray, rng: Random) -> bytes:
    value = rng.choice(_HOSTILE_BYTES)
    at = rng.randrange(min(len(data), rng.choice((64, 600, len(data)))))
    data[at : at + len(value)] = value
    return bytes(data)


def _span(data: bytearray, rng: Random) -> tuple[int, int]:
    at = rng.randrange(len(data))
    return at, min(len(data), at + rng.choice((1, 4, 16, 132, 1024)))


def _remove(data: bytearray, rng: Random) -> bytes:
    a, b = _span(data, rng)
    return bytes(data[:a] + data[b:])


def _double(data: bytearray, rng: Random) -> bytes:
    a, b = _span(data, rng)
    return bytes(data[:b] + data[a:b] * rng.choice((1, 2, 50)) + data[b:])


def _insert(data: bytearray, rng: Random) -> bytes:
    at = rng.randrange(len(data))
    return bytes(data[:at] + rng.randbytes(rng.choice((1, 3, 64))) + data[at:])


def _blank(data: bytearray, rng: Random) -> bytes:
    a, b = _span(data, rng)
    data[a:b] = bytes([rng.choice((0, 255, 32, 10))]) * (b - a)
    return bytes(data)


def _move(data: bytearray, rng: Random) -> bytes:
    a, b = _span(data, rng)
    at = rng.randrange(len(data))
    return bytes(data[:a] + data[b:])[:at] + bytes(data[a:b]) + bytes(data[:a] + data[b:])[at:]


def _append(data: bytearray, rng: Random) -> bytes:
    return bytes(data) + rng.choice((b"\0" * 512, bytes(data), b"\n", rng.randbytes(20)))


_ON_BYTES = (
    _flip_bits,
    _flip_bits,
    _flip_early,
    _cut,
    _number,
    _number,
    _remove,
    _double,
    _insert,
    _blank,
    _move,
    _append,
)


def text_words(data: bytes, rng: Random) -> bytes:
    """Put a hostile word in the place of a word or number."""
    text = data.decode("latin-1")
    found = list(re.finditer(r"[\w.+-]+", text))
    if not found:
        return any_bytes(data, rng)
    match = rng.choice(found)
    word = rng.choice((*HOSTILE_NUMBERS, *HOSTILE_TEXTS))
    put = word.encode("utf-8", "surrogatepass").decode("latin-1")
    return (text[: match.start()] + put + text[match.end() :]).encode("latin-1")


def csv_cells(data: bytes, rng: Random) -> bytes:
    """Change, remove, double or add cells, rows and columns."""
    lines = data.decode("latin-1").split("\n")
    row = rng.randrange(len(lines))
    cells = lines[row].split(",")
    at = rng.randrange(len(cells))
    word = rng.choice((*HOSTILE_NUMBERS, *HOSTILE_TEXTS)).encode("utf-8", "surrogatepass")
    change = rng.randrange(6)
    if change < 3:
        cells[at] = word.decode("latin-1")
    elif change == 3:
        del cells[at]
    elif change == 4:
        cells += cells * rng.choice((1, 300))
    else:
        lines.insert(row, lines[row])
    lines[row] = ",".join(cells)
    return "\n".join(lines).encode("latin-1")


def json_tree(data: bytes, rng: Random) -> bytes:
    """Change one value, key or level of a JSON text."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return text_words(data, rng)
    places = list(_places(tree))
    if not places:
        return text_words(data, rng)
    parent, key = rng.choice(places)
    change = rng.randrange(8)
    if change < 5:
        parent[key] = _Raw(rng.choice(_JSON_VALUES))
    elif change == 5:
        del parent[key]
    elif change == 6 and isinstance(parent, dict):
        parent[rng.choice(HOSTILE_TEXTS)] = parent.pop(key)
    else:
        parent[key] = [parent[key]] if rng.randrange(2) else {"a": parent[key]}
    return _json_text(tree)


class _Raw(str):
    """Text that stands in the JSON as it is."""

    __slots__ = ()


_JSON_VALUES = (
    *(n for n in HOSTILE_NUMBERS if n[0] not in "0٣１" or n in ("0", "0.1")),
    *(json.dumps(text) for text in HOSTILE_TEXTS),
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "[[]]",
    '[{"a": 1}]',
    "[1, 2, 3]",
    '["a", null, 1e999]',
    "[" * 5000 + "]" * 5000,
    '{"a":' * 5000 + "1" + "}" * 5000,
    "[" * 90 + "]" * 90,
    "[" + ",".join("1" * 3000) + "]",
    '[NaN, -1, "x"]',
    "[0, 0, 0, 0, 0, 0]",
    '"[1, 2, 1e999]"',
)


def _places(tree):
    waiting = [tree]
    while waiting:
        value = waiting.pop()
        keys = (
            value.keys()
            if isinstance(value, dict)
            else range(len(value))
            if isinstance(value, list)
            else ()
        )
        for key in list(keys):
            yield value, key
            waiting.append(value[key])


def _json_text(tree) -> bytes:
    kept: list[str] = []

    def plain(value):
        if isinstance(value, _Raw):
            kept.append(str(value))
            return f"\x01{len(kept) - 1}\x01"
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, list) else value

    text = json.dumps(plain(tree))
    text = re.sub(r'"\\u0001(\d+)\\u0001"', lambda m: kept[int(m[1])], text)
    return text.encode("utf-8", "surrogatepass")


def xml_parts(data: bytes, rng: Random) -> bytes:
    """Change a value, element or the nesting of an XML text."""
    text = data.decode("latin-1")
    change = rng.randrange(8)
    if change == 0:
        bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(
            f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9)
        )
        return (
            re.sub(r"(<\?xml[^>]*>)?", lambda m: m[0] + bomb + "]>", text, count=1)
            .replace(">", ">&j;", 6)
            .encode("latin-1")
        )
    if change == 1:
        found = list(re.finditer(r"<(\w+)[^>]*>", text))
        if found:
            match = rng.choice(found)
            nest = f"<{match[1]}>" * 5000
            return (text[: match.end()] + nest + text[match.end() :]).encode("latin-1")
    pattern = rng.choice((r'(?<==")[^"]*(?=")', r"(?<=>)[^<]+(?=<)", r"<[^>]+>"))
    found = list(re.finditer(pattern, text))
    if not found:
        return text_words(data, rng)
    match = rng.choice(found)
    words = (
        "",
        match[0] * 2,
        "r",
        "XFD1048576",
        "A9999999999",
        *HOSTILE_NUMBERS,
        *HOSTILE_TEXTS[3:12],
    )
    put = rng.choice(words).encode("utf-8", "surrogatepass").decode("latin-1")
    return (text[: match.start()] + put + text[match.end() :]).encode("latin-1")


def zip_members(data: bytes, rng: Random) -> bytes:
    """Damage what lies in a zip, by its own kind, and pack it again."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info, archive.read(info)) for info in archive.infolist()]
    except Exception:
        return any_bytes(data, rng)
    if not members:
        return any_bytes(data, rng)
    index = rng.randrange(len(members))
    info, content = members[index]
    change = rng.randrange(10)
    if change < 6:
        members[index] = (info, mutated(content, kind_of(info.filename), rng))
    elif change == 6:
        del members[index]
    elif change == 7:
        members.append(
            (
                _renamed(
                    info,
                    rng.choice(
                        ("../x", "/x", "a\\b", "", "x" * 300, info.filename.upper(), info.filename)
                    ),
                ),
                content,
            )
        )
    elif change == 8:
        members[index] = (info, rng.choice((b"", b"\0" * (24 << 20), content * 3)))
    else:
        linked = _renamed(info, info.filename)
        linked.external_attr = rng.choice((0o120777, 0o010644, 0o060644)) << 16
        members[index] = (linked, b"/etc/passwd")
    return _packed(members)


def zip_directory(data: bytes, rng: Random) -> bytes:
    """Make the headers and the directory of a zip lie: sizes, checksums, methods, flags."""
    marks = [
        m.start() for m in re.finditer(rb"PK(\x01\x02|\x03\x04|\x05\x06|\x06\x06|\x06\x07)", data)
    ]
    if not marks:
        return any_bytes(data, rng)
    at = rng.choice(marks) + rng.randrange(4, 46)
    value = rng.choice((*_HOSTILE_BYTES, b"\x01\x00", b"\x0c\x00", b"\x63\x00"))
    return data[:at] + value + data[at + len(value) :]


def _renamed(info: zipfile.ZipInfo, name: str) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.compress_type = info.compress_type
    return made


def _packed(members) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for info, content in members:
            archive.writestr(info, content, info.compress_type)
    return out.getvalue()


def gzip_inside(data: bytes, rng: Random) -> bytes:
    """Damage what a gzip file holds; its own checksum fits again."""
    try:
        inner = gzip.decompress(data)
    except Exception:
        return any_bytes(data, rng)
    return gzip.compress(any_bytes(inner, rng), 1)


def dicom_elements(data: bytes, rng: Random) -> bytes:
    """Change an element of an explicit little-endian DICOM file: value, length, kind, place."""
    found = list(_dicom_walk(data))
    if not found:
        return any_bytes(data, rng)
    at, value_at, length, tag, vr = rng.choice(found)
    end = value_at + length
    change = rng.randrange(9)
    if change < 4:
        word = rng.choice((*HOSTILE_NUMBERS, *HOSTILE_TEXTS)).encode("utf-8", "surrogatepass")[
            :60000
        ]
        if change == 0 and length:
            word = data[value_at:end].rstrip(b"\0 ") + b"\\" + data[value_at:end]
        return data[:at] + _element(tag, vr, word + b" " * (len(word) % 2)) + data[end:]
    if change == 4:
        kinds = (b"ZZ", b"SQ", b"UN", b"OB", b"DS", b"US", b"FD", b"\0\0", b"PN", b"AT")
        return data[: at + 4] + rng.choice(kinds) + data[at + 6 :]
    if change == 5:
        lengths = (0, 1, length + 1, max(0, length - 1), 65535, 255)
        return data[: at + 6] + struct.pack("<H", rng.choice(lengths) & 65535) + data[at + 8 :]
    if change == 6:
        return data[:at] + data[end:]
    if change == 7:
        return data[:end] + data[at:end] * rng.choice((1, 5)) + data[end:]
    return (
        data[:at] + nested_sequences(rng.choice((3, 5000)), tag, rng.randrange(2) == 0) + data[at:]
    )


def nested_sequences(depth: int, tag: bytes = b"\x08\x00\x40\x11", is_open: bool = False) -> bytes:
    """Return `depth` sequences, each in an item of the other, of undefined length."""
    start = tag + b"SQ\0\0\xff\xff\xff\xff" + b"\xfe\xff\x00\xe0\xff\xff\xff\xff"
    end = b"\xfe\xff\x0d\xe0\0\0\0\0" + b"\xfe\xff\xdd\xe0\0\0\0\0"
    return start * depth + (b"" if is_open else end * depth)


_LONG_VRS = {
    b"OB",
    b"OD",
    b"OF",
    b"OL",
    b"OV",
    b"OW",
    b"SQ",
    b"SV",
    b"UC",
    b"UN",
    b"UR",
    b"UT",
    b"UV",
}


def _element(tag: bytes, vr: bytes, value: bytes) -> bytes:
    if vr in _LONG_VRS:
        return tag + vr + b"\0\0" + struct.pack("<I", len(value)) + value
    return tag + vr + struct.pack("<H", len(value) & 65535) + value


def _dicom_walk(data: bytes):
    at = 132
    while at + 8 <= len(data):
        tag, vr = data[at : at + 4], data[at + 4 : at + 6]
        if not vr.isalpha():
            return
        value_at = at + (12 if vr in _LONG_VRS else 8)
        form, where = ("<I", at + 8) if vr in _LONG_VRS else ("<H", at + 6)
        if where + struct.calcsize(form) > len(data):
            return
        (length,) = struct.unpack_from(form, data, where)
        if length == 2**32 - 1:
            yield at, value_at, 0, tag, vr
            return
        if value_at + length > len(data):
            return
        yield at, value_at, length, tag, vr
        at = value_at + length


def checked_lines(data: bytes, rng: Random) -> bytes:
    """Change the entry of a checked or chained line so that its checksum fits; or whole lines."""
    lines = data.split(b"\n")[:-1]
    if not lines:
        return any_bytes(data, rng)
    at = rng.randrange(len(lines))
    change = rng.randrange(6)
    if change == 4:
        del lines[at]
    elif change == 5:
        lines.insert(at, rng.choice(lines))
    else:
        start = lines[at].find(b'"entry":') + 8
        entry = json_tree(lines[at][start:-1], rng)
        if b"\n" not in entry:
            lines[at] = _with_entry(lines[at], start, entry)
            if rng.random() < 0.7:
                _chain_again(lines, at)
    return b"\n".join([*lines, b""])


def _with_entry(line: bytes, start: int, entry: bytes) -> bytes:
    import hashlib

    if not line.startswith(b'{"hash":"'):
        check = hashlib.blake2b(entry, digest_size=8).hexdigest().encode()
        return b'{"check":"' + check + b'","entry":' + entry + b"}"
    body = line[_BODY:start] + entry + b"}"
    return b'{"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'",' + body


def _chain_again(lines: list[bytes], at: int) -> None:
    """Let the lines behind `at` follow it, as one who wants to fool us would."""
    import hashlib

    for behind in range(at + 1, len(lines)):
        before, line = lines[behind - 1], lines[behind]
        if not (before.startswith(b'{"hash":"') and line.startswith(b'{"hash":"')):
            return
        body = b'"prev":"' + before[9:73] + line[_BODY + 72 :]
        lines[behind] = b'{"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'",' + body


_BODY = len('{"hash":"') + 64 + len('",')
"""Where what is hashed begins in a chained line."""


def kind_of(name: str) -> str:
    """Return the kind of mutations that fit a file by its name."""
    lower = name.lower()
    for suffix, kind in _SUFFIXES:
        if lower.endswith(suffix):
            return kind
    return "bytes"


_SUFFIXES = (
    (".nii.gz", "gzip"),
    (".json", "json"),
    (".csv", "csv"),
    (".xlsx", "zip"),
    (".ods", "zip"),
    (".zip", "zip"),
    (".pt2", "zip"),
    (".pt", "zip"),
    (".pth", "zip"),
    (".xml", "xml"),
    (".rels", "xml"),
    (".dcm", "dicom"),
    (".journal", "lines"),
    (".jsonl", "lines"),
    (".yaml", "text"),
    (".py", "text"),
    (".nrrd", "head"),
    (".safetensors", "head"),
)


def head_words(data: bytes, rng: Random) -> bytes:
    """Change a word of a text header in front of bytes."""
    head = text_words(data[:600], rng)
    return head + data[600:]


_OF_KIND = {
    "bytes": (any_bytes,),
    "json": (json_tree, json_tree, json_tree, text_words, any_bytes),
    "text": (text_words, any_bytes),
    "head": (head_words, head_words, any_bytes),
    "csv": (csv_cells, csv_cells, any_bytes),
    "xml": (xml_parts, xml_parts, text_words, any_bytes),
    "zip": (zip_members, zip_members, zip_members, zip_directory, any_bytes),
    "gzip": (gzip_inside, gzip_inside, any_bytes),
    "dicom": (dicom_elements, dicom_elements, dicom_elements, any_bytes),
    "lines": (checked_lines, checked_lines, any_bytes),
}

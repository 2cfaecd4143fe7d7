"""Read the description of an ONNX file from its bytes, without building the network.

Only the few necessary fields are read; tensors are skipped. Source: the message numbers in
onnx.proto (ONNX 1.19, IR version 11) and the wire format of Protocol Buffers (types 0 varint, 1
eight bytes, 2 length and bytes, 5 four bytes).
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.io.files.foreign import open_plain, reads

Shape = tuple[int | None, ...]
"""Size of an input or output along each axis; None if variable."""

_BUILT_IN: Final = frozenset(("", "ai.onnx", "ai.onnx.ml", "com.microsoft"))
"""Domains of the operators that ONNX Runtime includes. Source: onnxruntime,
docs/ContribOperators.md
"""

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_DEEPEST: Final = 16
_COPY: Final = "export the network again, or copy the file again"

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class OnnxFacts:
    """Inputs, outputs, custom operators and external files of an ONNX model.

    Inputs and outputs are (name, shape). The other fields are the domains of custom operators and
    the files that contain tensors.
    """

    inputs: tuple[tuple[str, Shape], ...]
    outputs: tuple[tuple[str, Shape], ...]
    domains: tuple[str, ...]
    external: tuple[str, ...]


@reads("a complete ONNX file", "copy the file again from its source", ModelError)
def read_onnx(path: Path) -> OnnxFacts:
    """Return the description of the network in an ONNX file.

    Raises
    ------
    ModelError
        If the file is not an ONNX model, or is truncated.
    """
    try:
        with open_plain(path) as stream:
            return _Reader(stream).facts()
    except (OSError, ValueError, IndexError) as error:
        raise ModelError(
            f"expected {path} to be a complete ONNX model, but it cannot be read ({error}); {_COPY}"
        ) from error


class _Reader:
    """Reader of the messages in a file, which is loaded into memory and not mapped."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._domains: set[str] = set()
        self._own: set[str] = set()
        self._external: set[str] = set()

    def facts(self) -> OnnxFacts:
        inputs: list[tuple[str, Shape]] = []
        outputs: list[tuple[str, Shape]] = []
        weights: set[str] = set()
        graphs = 0
        for field, span in self._list_fields((0, self._stream.seek(0, os.SEEK_END))):
            if field == 7:  # ModelProto.graph
                graphs += 1
                self._read_graph(span, inputs, outputs, weights, 0)
            elif field == 25:  # ModelProto.functions
                self._read_function(span)
        if graphs != 1 or not outputs:
            raise ValueError("the file contains no graph")
        return OnnxFacts(
            tuple(item for item in inputs if item[0] not in weights),
            tuple(outputs),
            tuple(sorted(self._domains - self._own - _BUILT_IN)),
            tuple(sorted(self._external)),
        )

    def _read_graph(
        self,
        span: Span,
        inputs: list[tuple[str, Shape]],
        outputs: list[tuple[str, Shape]],
        weights: set[str],
        depth: int,
    ) -> None:
        for field, part in self._list_fields(span):
            if field == 1:
                self._read_node(part, depth)
            elif field == 5:
                weights.add(self._read_tensor(part))
            elif field == 11:
                inputs.append(self._read_value(part))
            elif field == 12:
                outputs.append(self._read_value(part))
            elif field == 15:  # sparse_initializer: values, indices
                for _, tensor in self._list_fields(part):
                    self._read_tensor(tensor)

    def _read_node(self, span: Span, depth: int) -> None:
        domain = ""
        for field, part in self._list_fields(span):
            if field == 7:
                domain = self._read_text(part)
            elif field == 5:
                self._read_attribute(part, depth + 1)
        self._domains.add(domain)

    def _read_attribute(self, span: Span, depth: int) -> None:
        """Read an attribute: a tensor, or the body of a loop or branch."""
        if depth > _DEEPEST:
            raise ValueError("the graphs are nested too deeply")
        for field, part in self._list_fields(span):
            if field in (6, 11):  # g, graphs
                self._read_graph(part, [], [], set(), depth)
            elif field in (5, 10):  # t, tensors
                self._read_tensor(part)

    def _read_function(self, span: Span) -> None:
        for field, part in self._list_fields(span):
            if field == 10:
                self._own.add(self._read_text(part))
            elif field == 7:
                self._read_node(part, 0)

    def _read_tensor(self, span: Span) -> str:
        """Return the name of a tensor, and record the file that contains its values."""
        name = ""
        for field, part in self._list_fields(span):
            if field == 8:
                name = self._read_text(part)
            elif field == 13:  # external_data: key 1, value 2
                pair = {key: self._read_text(value) for key, value in self._list_fields(part)}
                if pair.get(1) == "location":
                    self._external.add(pair.get(2, ""))
        return name

    def _read_value(self, span: Span) -> tuple[str, Shape]:
        """Return the name and shape in a ValueInfoProto: type.tensor_type.shape.dim.dim_value."""
        name, shape = "", []
        for field, part in self._list_fields(span):
            if field == 1:
                name = self._read_text(part)
            elif field == 2:
                for dim in self._find_below(part, 1, 2, 1):
                    fields = [value for key, value in self._list_fields(dim) if key == 1]
                    extent = fields[0][0] if fields else 0
                    shape.append(extent if extent > 0 else None)
        return name, tuple(shape)

    def _find_below(self, span: Span, *fields: int) -> Iterator[Span]:
        """Yield the messages that are reached through a chain of field numbers."""
        for field, part in self._list_fields(span):
            if field == fields[0]:
                if len(fields) == 1:
                    yield part
                else:
                    yield from self._find_below(part, *fields[1:])

    def _list_fields(self, span: Span) -> Iterator[tuple[int, Span]]:
        """Yield the number and byte span of each field; an integer is yielded as (value, 0)."""
        at, stop = span
        while at < stop:
            key, at = self._read_number(at)
            kind = key & 7
            if kind == _VARINT:
                value, at = self._read_number(at)
                yield key >> 3, (value, 0)
                continue
            if kind == _BYTES:
                length, at = self._read_number(at)
            elif kind in (_EIGHT, _FOUR):
                length = 8 if kind == _EIGHT else 4
            else:
                raise ValueError(f"the field at byte {at} has the unknown type {kind}")
            if at + length > stop:
                raise ValueError(f"the file ends at byte {stop}, within a field of {length} bytes")
            yield key >> 3, (at, at + length)
            at += length

    def _read_number(self, at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            byte = self._read_bytes(at, at + 1)[0]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value, at
            if shift > 63:
                raise ValueError(f"the number at byte {at} is too long")

    def _read_text(self, span: Span) -> str:
        return self._read_bytes(*span).decode("utf-8", errors="replace")

    def _read_bytes(self, start: int, stop: int) -> bytes:
        self._stream.seek(start)
        return self._stream.read(stop - start)

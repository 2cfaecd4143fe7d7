"""The outputs of an nnU-Net model, which are labels or overlapping regions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import ModelError


@dataclass(frozen=True, slots=True)
class Labels:
    """The label table of a model.

    `names` lists (name, values) in the order of dataset.json, without background and ignore. If the
    model has regions, each output is a region, and `region_order` has the value that each region
    writes; later regions overwrite earlier regions. Otherwise `region_order` is empty, and output k
    is label k.
    """

    names: tuple[tuple[str, tuple[int, ...]], ...]
    region_order: tuple[int, ...] = ()

    @property
    def has_regions(self) -> bool:
        """Whether the outputs are regions, which are independent of each other."""
        return bool(self.region_order)

    @property
    def foreground(self) -> tuple[int, ...]:
        """All label values except background, in ascending order."""
        return tuple(sorted({value for _, values in self.names for value in values if value}))

    @property
    def heads(self) -> int:
        """Number of outputs of the network."""
        return len(self.region_order) if self.has_regions else len(self.foreground) + 1

    @property
    def dtype(self) -> type[np.uint8] | type[np.uint16]:
        """Data type of a label map: uint8, or uint16 for 255 labels or more."""
        return np.uint8 if len(self.foreground) < 255 else np.uint16

    def one_hot(self, labels: NDArray[Any]) -> NDArray[np.float32]:
        """Return a float32 channel for each foreground value, for a cascade's second stage."""
        return np.stack([(labels == value).astype(np.float32) for value in self.foreground])


def read_labels(dataset: Mapping[str, Any], where: str) -> Labels:
    """Return the labels defined in a dataset.json.

    Raises
    ------
    ModelError
        If background is not 0, or the order of the regions is missing.
    """
    table = dataset.get("labels")
    if not isinstance(table, dict) or table.get("background") != 0:
        raise ModelError(
            f'expected {where} to have "labels" with background 0, but it has {table!r}; restore '
            "the dataset.json that came with the model"
        )
    try:
        names = tuple(
            (name, _read_values(value))
            for name, value in table.items()
            if name != "ignore" and any(_read_values(value))
        )
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"{where}: expected labels to be whole numbers or lists of them, but they are "
            f"{table!r}; restore the dataset.json that came with the model"
        ) from error
    if not any(isinstance(value, list) and len(value) > 1 for value in table.values()):
        return _check_labels(Labels(names), where)
    order = tuple(int(value) for value in dataset.get("regions_class_order") or ())
    if len(order) != len(names):
        raise ModelError(
            f"expected regions_class_order in {where} to have {len(names)} entries, one for each "
            f"region, but it has {len(order)}; restore the dataset.json that came with the model"
        )
    return Labels(names, order)


def _read_values(value: Any) -> tuple[int, ...]:
    return tuple(int(item) for item in value) if isinstance(value, list) else (int(value),)


def _check_labels(labels: Labels, where: str) -> Labels:
    if labels.foreground != tuple(range(1, len(labels.foreground) + 1)):
        raise ModelError(
            f"{where}: expected the labels to be 1, 2, 3 and so on without gaps, but they are "
            f"{labels.foreground}; restore the dataset.json that came with the model"
        )
    return labels

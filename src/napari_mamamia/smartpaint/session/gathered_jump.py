"""A jump between states of the history: its steps are gathered first and then applied at once."""

from collections.abc import Callable
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.blank import blank_array
from napari_mamamia.core.box import Box
from napari_mamamia.core.difference import BitChange
from napari_mamamia.core.edits import Jump
from napari_mamamia.smartpaint.session.history import History, State


class GatheredJump:
    """All changes between the current state and `position`, as flipped bits.

    Exclusive-or does not depend on order, so the steps are gathered in separate arrays without
    changing the mask; `EditingSession.go` then applies all steps at once. The arrays use memory
    only where a step changed voxels.

    Parameters
    ----------
    history, position
        The history, and the number of steps that are applied after the jump.
    shape
        The shape ``(z, y, x)`` of the mask.
    state
        Function that returns the current state, from which a long jump can be computed without all
        its steps.

    Raises
    ------
    CaseError
        If the history has no such position.
    """

    def __init__(
        self,
        history: History,
        position: int,
        shape: tuple[int, int, int],
        state: Callable[[], State],
    ) -> None:
        self.jump = Jump(history.position, position)
        self.revision = history.revision
        self.labels = blank_array(shape, np.uint8)
        self.membership: dict[int, NDArray[np.float32]] = {}
        self.box = Box.empty()
        self.membership_box: dict[int, Box] = {}
        self.words: dict[int, NDArray[np.uint16]] = {}
        self.words_box: dict[int, Box] = {}
        self._left = history.differences_to(position, state)

    def gather(self) -> bool:
        """Gather one more step; return False when all steps are gathered.

        Raises
        ------
        CaseError, FormatError, SaveError
            If a step is no longer available; the mask is then unchanged.
        """
        difference = next(self._left, None)
        if difference is None:
            return False
        label, shape = difference.label, self.labels.shape
        soft = words = None
        if difference.membership:
            if label not in self.membership:
                self.membership[label] = blank_array(shape, np.float32)
            soft = self.membership[label]
            _join_boxes(self.membership_box, label, difference.membership)
        if difference.evidence:
            if label not in self.words:
                self.words[label] = blank_array(shape, np.uint16)
            words = self.words[label]
            _join_boxes(self.words_box, label, difference.evidence)
        difference.flip(self.labels, soft, words)
        self.box = self.box.union(difference.box)
        return True


def _join_boxes(boxes: dict[int, Box], label: int, changes: tuple[BitChange, ...]) -> None:
    around = (change.box for change in changes)
    boxes[label] = reduce(Box.union, around, boxes.get(label, Box.empty()))

"""Images shown instead of the phases or above them: differences, projections and maps.

Each image is a layer with its own role. A subtraction or a projection replaces the phases, and an
agreement map replaces the masks. A kinetic map or an uncertainty map is drawn above the image.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.widgets.base.layers import (
    MASK_ROLES,
    LayerTag,
    LayerTuple,
    Role,
    agreement_layer,
    array_of,
    subtraction_layer,
    tag_of,
    uncertainty_layer,
)
from napari_mamamia.widgets.viewer.layer_stack import LayerStack

_SHINES_THROUGH = 0.6


class Overlays:
    """Component that shows and hides images computed from the open case.

    Parameters
    ----------
    stack
        Our layers in the viewer.
    """

    def __init__(self, stack: LayerStack) -> None:
        self._stack = stack
        self._below_agreement: list[Any] = []

    # --------------------------------------------------- in place of the phases

    def show_subtraction(
        self, tag: LayerTag, array: NDArray[Any], limits: tuple[float, float]
    ) -> None:
        """Show a difference instead of the phases; the user's contrast limits are kept."""
        with self._stack.changing():
            before = self._stack.layer(Role.SUBTRACTION)
            shown_limits = limits if before is None else tuple(before.contrast_limits)
            self._stack.take_away(Role.PROJECTION)
            self._stack.put(subtraction_layer(tag, array, shown_limits), Role.SUBTRACTION)
            self._stack.set_visible(Role.PHASE, False)

    def hide_subtraction(self) -> None:
        """Show the phases again."""
        self._show_phases_without(Role.SUBTRACTION)

    def show_projection(
        self, tag: LayerTag, array: NDArray[Any], limits: tuple[float, float]
    ) -> None:
        """Show a projection instead of the phases; contrast limits for the same type are kept."""
        with self._stack.changing():
            before = self._stack.layer(Role.PROJECTION)
            old = None if before is None else tag_of(before)
            same = before is not None and old is not None and old.note == tag.note
            shown_limits = tuple(before.contrast_limits) if before is not None and same else limits
            self._stack.take_away(Role.SUBTRACTION)
            self._stack.put(subtraction_layer(tag, array, shown_limits), Role.PROJECTION)
            self._stack.set_visible(Role.PHASE, False)

    def hide_projection(self) -> None:
        """Show the phases again."""
        self._show_phases_without(Role.PROJECTION)

    def _show_phases_without(self, role: Role) -> None:
        with self._stack.changing():
            self._stack.take_away(role)
            self._stack.set_visible(Role.PHASE, True)

    # ------------------------------------------------------------ kinetic map

    def show_map(self, made: LayerTuple, *, covers: bool) -> None:
        """Show a kinetic map above the image, replacing the previous map."""
        with self._stack.changing():
            before = self._stack.layer(Role.MAP)
            # A map of classes is a labels layer, a map of numbers an image layer: they cannot
            # exchange data.
            if before is not None:
                self._stack.remove([before])
            layer = self._stack.put(made, Role.MAP)
            if made[2] == "labels":
                layer.editable = False
        self.style_map(covers)

    def style_map(self, covers: bool) -> None:
        """Make the kinetic map opaque or translucent."""
        layer = self._stack.layer(Role.MAP)
        if layer is not None:
            layer.opacity = 1.0 if covers else _SHINES_THROUGH

    def hide_map(self) -> None:
        """Remove the kinetic map."""
        self._stack.take_away(Role.MAP)

    def redraw_map(self) -> None:
        """Redraw the kinetic map after its array was filled in place."""
        layer = self._stack.layer(Role.MAP)
        if layer is not None:
            layer.refresh(thumbnail=False, extent=False, highlight=False)
            self._stack.report_change(Role.MAP)

    # ------------------------------------------------------------------ doubt

    def show_uncertainty(self, tag: LayerTag, array: NDArray[Any], said: str, most: float) -> None:
        """Show a model's uncertainty above the image; see `uncertainty_layer`."""
        with self._stack.changing():
            self._stack.put(uncertainty_layer(tag, array, said, most), Role.DOUBT).visible = True

    def hide_uncertainty(self) -> None:
        """Remove the uncertainty map."""
        self._stack.take_away(Role.DOUBT)

    # ------------------------------------------------------------- agreement

    def show_agreement(self, tag: LayerTag, array: NDArray[np.uint8]) -> None:
        """Show an agreement map and hide the mask outlines, which would cover the differences."""
        layer = self._stack.layer(Role.AGREEMENT)
        if layer is not None and array_of(layer).shape == array.shape:
            np.copyto(array_of(layer), array)
            layer.refresh(extent=False, highlight=False)
            self._stack.report_change(Role.AGREEMENT)
            return
        with self._stack.changing():
            self._stack.put(agreement_layer(tag, array), Role.AGREEMENT).editable = False
            self._below_agreement = [mask for mask in self._stack.find(*MASK_ROLES) if mask.visible]
            for mask in self._below_agreement:
                mask.visible = False

    def keep_below_agreement(self, mask: Any) -> None:
        """Hide a mask that is added while an agreement map is shown, until the map is hidden."""
        if self._stack.layer(Role.AGREEMENT) is not None:
            mask.visible = False
            self._below_agreement.append(mask)

    def hide_agreement(self) -> None:
        """Remove the agreement map, and show the hidden masks again."""
        with self._stack.changing():
            self._stack.take_away(Role.AGREEMENT)
            for mask in self._below_agreement:
                mask.visible = True
            self._below_agreement = []

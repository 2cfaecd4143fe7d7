"""Controller of the View panel, whose settings are kept between sessions."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from qtpy.QtCore import QTimer

from napari_mamamia.core.errors import SaveError
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.viewer.cine import PACES, Cine
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.contrasting import Contrasting
from napari_mamamia.widgets.viewer.pane_sides import Sides
from napari_mamamia.widgets.viewer.planes import Layout, Planes
from napari_mamamia.widgets.viewer.projecting import Projecting
from napari_mamamia.widgets.viewer.subtracting import Subtracting
from napari_mamamia.widgets.viewer.view_panel import ViewPanel

_log = logging.getLogger(__name__)

_MOST_MM: Final = 60.0


class ViewFlow(WindowPart):
    """A controller that connects the View panel to the views, the images and the preferences."""

    def __init__(
        self,
        context: WindowContext,
        panel: ViewPanel,
        planes: Planes,
        subtracting: Subtracting,
        projecting: Projecting,
        contrasting: Contrasting,
    ) -> None:
        super().__init__(context)
        self._panel = panel
        self._planes = planes
        self._subtracting = subtracting
        self._projecting = projecting
        self._contrasting = contrasting
        self.cine = Cine(self._scene)
        self.cine.setParent(self)
        self._pace = 2
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.timeout.connect(self._show_image)
        self._connect_panel()
        self._recall_settings()

    def actions(self) -> dict[str, Callable[..., object]]:
        """Return the actions of the view shortcuts by action name."""
        return {
            "previous_phase": lambda: self._scene.step_phase(-1),
            "next_phase": lambda: self._scene.step_phase(1),
            "hide_masks": self._scene.set_masks_hidden,
            "outline": self._scene.toggle_outline,
            "subtraction": self.toggle_subtraction,
            "planes": self._planes.toggle_planes,
            "two_phases": self._planes.toggle_phases,
            "projection": self.toggle_projection,
            "cine": self.cine.toggle,
            "contrast": self._contrasting.next,
            "sides": self.toggle_sides,
        }

    def toggle_subtraction(self) -> None:
        """Show the subtraction, or the phases again."""
        self.choose_image("phase" if self._subtracting.is_on else "subtraction")

    def toggle_sides(self) -> None:
        """Move the patient's right to the other side of the screen."""
        neurological = not self._planes.sides.neurological
        self._panel.set_neurological(neurological)
        self._set_sides(neurological)
        side = tr("right") if neurological else tr("left")
        self._notifier.hint(tr("R, the patient's right, is on the {side}", side=side))

    def toggle_projection(self) -> None:
        """Show the projection, or the phases again."""
        self.choose_image("phase" if self._projecting.is_on else "projection")

    # -------------------------------------------------------------------- inner

    def _connect_panel(self) -> None:
        panel, planes = self._panel, self._planes
        panel.layout_wanted.connect(planes.set_layout)
        panel.beside_wanted.connect(planes.set_second_phase)
        panel.image_wanted.connect(self.choose_image)
        panel.minus_wanted.connect(self._set_minus)
        panel.slab_wanted.connect(self._set_slab)
        panel.contrast_wanted.connect(self._contrasting.choose)
        panel.cine_wanted.connect(self.cine.toggle)
        panel.pace_wanted.connect(self._set_pace)
        panel.neurological_wanted.connect(self._set_sides)
        planes.layout_changed.connect(self._on_layout)
        self.cine.changed.connect(panel.set_playing)
        self._contrasting.chosen.connect(panel.set_contrasts)
        self._session.case_changed.connect(self._on_case)
        layers = self._scene.viewer.layers.events
        layers.inserted.connect(self._show_later)
        layers.removed.connect(self._show_later)

    def choose_image(self, image: str) -> None:
        """Show the "phase", the "subtraction" or the "projection"."""
        if image != "projection" and self._projecting.is_on:
            self._projecting.hide()
        if image != "subtraction" and self._subtracting.is_on:
            self._subtracting.hide()
        if image == "subtraction" and not self._subtracting.is_on:
            self._subtracting.toggle()
        if image == "projection" and not self._projecting.is_on:
            self._projecting.toggle()
        self._show_later()

    def _set_minus(self, phase: int) -> None:
        self._subtracting.set_minus(phase)
        self._projecting.again()

    def _set_slab(self, slab_mm: float) -> None:
        self._projecting.set_slab(slab_mm)
        self._remember_settings(slab_mm=f"{slab_mm:g}")

    def _set_pace(self, pace: int) -> None:
        self.cine.set_pace(pace)
        self._remember_settings(pace=str(pace))

    def _set_sides(self, neurological: bool) -> None:
        self._planes.set_sides(Sides(neurological))
        self._remember_settings(sides="neurological" if neurological else "radiological")

    def _on_layout(self, layout: Layout) -> None:
        self._panel.set_layout_shown(layout)
        if layout is Layout.HUNG:
            return
        # A case without this layout falls back to one view; that is not the user's choice and is
        # not saved.
        if layout is self._planes.wanted:
            self._remember_settings(layout=str(layout))

    def _on_case(self) -> None:
        case = self._session.case
        if case is None:
            self.cine.stop()
        count = 0 if case is None else len(case.phases)
        n_before = 1 if case is None else case.n_before
        chosen = (self._subtracting.minus, self._planes.second_phase)
        self._panel.set_phases(count, *chosen, n_before)
        self._show_later()

    def _show_later(self, _event: object = None) -> None:
        self._later.start(0)

    def _show_image(self) -> None:
        image = "phase"
        if self._scene.layer(Role.PROJECTION) is not None or self._projecting.is_on:
            image = "projection"
        elif self._subtracting.is_on:
            image = "subtraction"
        self._panel.set_image(image)
        self._panel.set_contrasts(self._contrasting.names, self._contrasting.name)

    # ------------------------------------------------------------- preferences

    def _recall_settings(self) -> None:
        settings = dict(self._services.load_preferences().view)
        layout = settings.get("layout", "")
        if layout in set(Layout) - {Layout.HUNG}:
            self._planes.wanted = Layout(layout)
        neurological = settings.get("sides") == "neurological"
        self._planes.sides = Sides(neurological)
        slab, pace = _parse_number(settings.get("slab_mm")), _parse_number(settings.get("pace"))
        self._projecting.slab_mm = min(slab or 0.0, _MOST_MM)
        self._pace = int(pace) if pace in PACES else self._pace
        self.cine.set_pace(self._pace)
        self._panel.set_neurological(neurological)
        self._panel.set_slab(self._projecting.slab_mm)
        self._panel.set_pace(self._pace)
        self._panel.set_phases(0, 0, 0)
        self._show_image()

    def _remember_settings(self, **settings: Any) -> None:
        preferences = self._services.load_preferences()
        view = tuple((dict(preferences.view) | settings).items())
        if view == preferences.view:
            return
        try:
            self._services.save_preferences(replace(preferences, view=view))
        except SaveError as error:
            _log.warning("the view settings were not saved: %s", error)


def _parse_number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if number >= 0 else None

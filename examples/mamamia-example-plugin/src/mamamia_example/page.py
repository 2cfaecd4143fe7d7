"""The page Volumes: a widget, and what makes it work."""

import numpy as np
from qtpy.QtWidgets import QLabel, QVBoxLayout, QWidget

from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.dock.parts import DockParts


class VolumesPage(QWidget):
    """Shows lines of text."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("volumes")
        self.lines = QLabel("Open a case with a mask.")
        layout = QVBoxLayout(self)
        layout.addWidget(self.lines)
        layout.addStretch(1)


class VolumesFlow:
    """Writes the volume of each mask of the open case on the page."""

    def __init__(self, panel: DockParts, page: VolumesPage) -> None:
        self.page = page
        self._session = panel.session
        panel.session.masks_changed.connect(self.show)
        self.show()

    def show(self) -> None:
        """Show the volumes as they are now."""
        lines = []
        for role in Role:
            mask, case = self._session.mask(role), self._session.case
            if mask is not None and case is not None:
                ml = np.count_nonzero(mask.buffer) * case.grid.voxel_volume_mm3 / 1000
                lines.append(f"{role.value}: {ml:.2f} ml")
        self.page.lines.setText("\n".join(lines) or "Open a case with a mask.")

"""Everything that the mouse can hold on the image, joined to the one hand that holds it."""

from collections.abc import Callable, Iterable
from typing import Any

from qtpy.QtCore import QObject

from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.notify import Notifier
from napari_mamamia.widgets.base.session import Session
from napari_mamamia.widgets.dock.page_tabs import PAGES
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.refine.napari_paint import NapariPaint
from napari_mamamia.widgets.refine.painting import Painting
from napari_mamamia.widgets.refine.tool_signs import ToolSign, ToolSigns, paint_sign
from napari_mamamia.widgets.viewer.aim import Aim
from napari_mamamia.widgets.viewer.hand import Hand
from napari_mamamia.widgets.viewer.marks import Marks
from napari_mamamia.widgets.viewer.prompts import PromptTool
from napari_mamamia.widgets.viewer.scene import Scene


class MouseTools(QObject):
    """Makes the hand and its tools; a case that goes takes the tool out of the hand.

    Parameters
    ----------
    views
        The views of the case at the moment, the main one first.

    Attributes
    ----------
    hand, aim, signs
        What is held; whether a press hits what is seen; what is written of it.
    painting, prompts, grow_box, ftv_box
        The tools of page Refine; the prompts of Predict; the boxes of Refine and of Kinetics.
    """

    def __init__(
        self,
        session: Session,
        scene: Scene,
        editing: Editing,
        marks: Marks,
        views: Callable[[], Iterable[Any]],
        jobs: JobRunner,
        notifier: Notifier,
    ) -> None:
        super().__init__()
        self._session = session
        self._known: object = None
        self.hand = Hand(PAGES[0])
        self.aim = Aim(scene, jobs)
        self.painting = Painting(scene, editing, marks, self.hand, self.aim, notifier)
        self._napari = NapariPaint(scene, self.hand, self.aim, notifier)
        pair = (scene, self.hand, self.aim)
        self.prompts = PromptTool(*pair, "prompts", "Predict", "Predict")
        self.grow_box = PromptTool(*pair, "grow box", "Refine", "Grow")
        self.ftv_box = PromptTool(*pair, "FTV box", "Kinetics", "FTV")
        signs = {"painting": self._paint_sign, "napari": self._napari.sign}
        self.signs = ToolSigns(self.hand, self.aim, views, signs)
        self.painting.sign_changed.connect(self.signs.write)
        self._napari.sign_changed.connect(self.signs.write)
        session.case_changed.connect(self._on_case)
        parts = (self.hand, self.aim, self.painting, self._napari, self.signs)
        for part in (*parts, self.prompts, self.grow_box, self.ftv_box):
            part.setParent(self)

    def attach(self, viewer: Any) -> None:
        """Let the mouse do in another view of the case what it does in the main one."""
        self.painting.attach(viewer)
        self.aim.attach(viewer)
        self.signs.write()

    def _paint_sign(self, view: Any) -> ToolSign:
        painting = self.painting
        problem = painting.problem_in(view)
        return paint_sign(painting.pressed, paused=painting.is_paused, problem=problem)

    def _on_case(self) -> None:
        """Put the tool down with its case; the same case, read further, keeps it."""
        case = self._session.case
        signal = None if case is None else case.signal
        if signal is not self._known:
            self._known = signal
            self.hand.put_down()

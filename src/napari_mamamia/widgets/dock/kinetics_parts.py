"""What works behind the page Kinetics and the tab Curves, made in one place."""

from napari_mamamia.widgets.base.bottom import BottomDock
from napari_mamamia.widgets.dock.results_panel import ResultsPanel
from napari_mamamia.widgets.kinetics.case import KineticCase
from napari_mamamia.widgets.kinetics.curves_flow import CurvesFlow
from napari_mamamia.widgets.kinetics.flow import KineticsFlow, MotionFlow
from napari_mamamia.widgets.kinetics.ftv_live import FtvLive
from napari_mamamia.widgets.kinetics.map import KineticMapControl
from napari_mamamia.widgets.kinetics.page import KineticsPage
from napari_mamamia.widgets.refine.mouse_tools import MouseTools
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart


class KineticsParts(WindowPart):
    """Makes them and holds them; all end with it.

    Attributes
    ----------
    case, map, ftv_box, ftv_live, curves, flow, motion
        The case's times; the map; the box of FTV and its numbers; the curve under the mouse; the
        page at work; its section Motion.
    """

    def __init__(
        self,
        context: WindowContext,
        page: KineticsPage,
        results: ResultsPanel,
        bottom: BottomDock,
        tools: MouseTools,
    ) -> None:
        super().__init__(context)
        self._results = results
        self._bottom = bottom
        self._is_hung = False
        self.case = KineticCase(context)
        self.map = KineticMapControl(context, self.case)
        self.ftv_box = tools.ftv_box
        self.ftv_live = FtvLive(context, self.case, self.ftv_box)
        self.curves = CurvesFlow(context, results.curves, bottom, self.case, tools.aim)
        self.flow = KineticsFlow(
            context, page, self.case, self.map, self.ftv_live, self.curves, self.show_curves
        )
        self.motion = MotionFlow(context, page.motion, self.case)

    def show_curves(self) -> None:
        """Show the tab Curves, with the curve of the place that is pointed at."""
        self._results.show_curves()
        self.curves.show()

    def hang_curves(self, shown: bool) -> None:
        """Show the curve while a step of the hanging wants it; what was there before stays."""
        if shown and not self._bottom.is_shown:
            self._is_hung = True
            self.show_curves()
        elif not shown and self._is_hung:
            self._is_hung = False
            self._bottom.fold()

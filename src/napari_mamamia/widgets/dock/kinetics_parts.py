"""What works behind the page Kinetics and the tab Curves, made in one place."""

from qtpy.QtCore import QObject

from napari_mamamia.widgets.base.bottom import BottomDock
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.kinetic_services import KineticServices
from napari_mamamia.widgets.base.notify import Notifier
from napari_mamamia.widgets.base.session import Session
from napari_mamamia.widgets.dock.mouse_tools import MouseTools
from napari_mamamia.widgets.dock.results_panel import ResultsPanel
from napari_mamamia.widgets.kinetics.case import KineticCase
from napari_mamamia.widgets.kinetics.curves_flow import CurvesFlow
from napari_mamamia.widgets.kinetics.flow import KineticsFlow
from napari_mamamia.widgets.kinetics.ftv_live import FtvLive
from napari_mamamia.widgets.kinetics.map import KineticMapControl
from napari_mamamia.widgets.kinetics.page import KineticsPage
from napari_mamamia.widgets.kinetics.registering import MotionFlow
from napari_mamamia.widgets.viewer.scene import Scene


class KineticsParts(QObject):
    """Makes them and holds them; all end with it.

    Attributes
    ----------
    case, map, ftv_box, ftv_live, curves, flow, motion
        The case's times; the map; the box of FTV and its numbers; the curve under the mouse; the
        page at work; its section Motion.
    """

    def __init__(
        self,
        page: KineticsPage,
        results: ResultsPanel,
        bottom: BottomDock,
        session: Session,
        scene: Scene,
        tools: MouseTools,
        jobs: JobRunner,
        services: KineticServices,
        notifier: Notifier,
    ) -> None:
        super().__init__()
        self._results = results
        common = (jobs, services)
        self.case = KineticCase(session, scene, *common, notifier)
        self.map = KineticMapControl(self.case, scene, *common, notifier)
        self.ftv_box = tools.ftv_box
        self.ftv_live = FtvLive(self.case, self.ftv_box, *common)
        seen = (self.case, scene, tools.aim)
        self.curves = CurvesFlow(results.curves, bottom, *seen, *common, notifier)
        self.flow = KineticsFlow(
            page,
            session,
            self.case,
            self.map,
            self.ftv_live,
            self.curves,
            *common,
            notifier,
            self.show_curves,
        )
        self.motion = MotionFlow(page.motion, session, scene, self.case, *common)
        for part in (self.case, self.map, self.ftv_live):
            part.setParent(self)
        for flow in (self.curves, self.flow, self.motion):
            flow.setParent(self)

    def show_curves(self) -> None:
        """Show the tab Curves, with the curve of the place that is pointed at."""
        self._results.show_curves()
        self.curves.show()

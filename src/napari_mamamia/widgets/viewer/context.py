"""`WindowContext`: what every part of one window works with; `WindowPart`: such a part."""

from dataclasses import dataclass

from qtpy.QtCore import QObject

from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.notify import Notifier
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.base.session import Session
from napari_mamamia.widgets.viewer.scene import Scene


@dataclass(frozen=True, slots=True)
class WindowContext:
    """The same for all parts of one window.

    `session` is what is open, `scene` how napari shows it; `jobs` run work in threads, `services`
    are what they run, `notifier` says what the user should know. Parts end with `owner`.
    """

    session: Session
    scene: Scene
    jobs: JobRunner
    services: Services
    notifier: Notifier
    owner: QObject | None = None


class WindowPart(QObject):
    """Something at work in a window: it joins a page, the session and jobs. Pages are no parts.

    A part takes the context and then what is its alone: its page, other parts.
    """

    def __init__(self, context: WindowContext) -> None:
        super().__init__(context.owner)
        self._session = context.session
        self._scene = context.scene
        self._jobs = context.jobs
        self._services = context.services
        self._notifier = context.notifier

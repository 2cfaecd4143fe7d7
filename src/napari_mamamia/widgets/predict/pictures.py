"""The pictures of the chosen model's inputs at work: asked for in a thread, newest answer only."""

from collections.abc import Callable, Sequence

from qtpy.QtCore import QObject

from napari_mamamia.core.case import Case
from napari_mamamia.services.predict.input_pictures import InputChannel, InputPictures
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.notify import Failed, Finished, Notifier, Outcome
from napari_mamamia.widgets.base.predict_services import PredictServices
from napari_mamamia.widgets.predict.inputs import InputStrip

__all__ = ["PredictPictures"]

_LANE = "inputs"


class PredictPictures(QObject):
    """Fills the strip for the open case and the chosen model; each pair is asked for once.

    `slice_shown` gives the array axis across the slice on screen and its index, None without one.
    """

    def __init__(
        self,
        strip: InputStrip,
        jobs: JobRunner,
        services: PredictServices,
        notifier: Notifier,
        slice_shown: Callable[[], tuple[int, int] | None],
    ) -> None:
        super().__init__()
        self._strip = strip
        self._jobs = jobs
        self._services = services
        self._notifier = notifier
        self._slice_shown = slice_shown
        self._asked: object = None
        self._case: object = None

    def show(self, case: Case, channels: Sequence[InputChannel], *, whole_numbers: bool) -> None:
        """Show what goes where in the case, and make the pictures if they are not there yet."""
        self._strip.show_channels(channels)
        if self._case is not case.signal:
            self._case = case.signal
            self._strip.forget_pictures()
        wanted = (id(case.signal), tuple(channels), whole_numbers)
        if not channels or not case.is_loaded or wanted == self._asked:
            return
        self._asked = wanted
        index = self._slice_of(case)

        def done(outcome: Outcome[InputPictures]) -> None:
            if isinstance(outcome, Finished):
                self._strip.show_pictures(outcome.result)
            elif isinstance(outcome, Failed):
                self._notifier.fail("Making pictures of the model's inputs", outcome.error)

        self._jobs.start(
            _LANE,
            "Pictures of the inputs",
            lambda: self._services.input_pictures(
                case, channels, whole_numbers=whole_numbers, slice_index=index
            ),
            done,
            shown=False,
        )

    def hide(self) -> None:
        """Show nothing, such as where the model does not fit the case."""
        self._asked = None
        self._jobs.cancel(_LANE)
        self._strip.show_channels(())

    def _slice_of(self, case: Case) -> int | None:
        """Return the slice on screen if it lies in the acquisition plane, else None."""
        shown = self._slice_shown()
        across = case.grid.display_frame().order[0]
        return shown[1] if shown is not None and shown[0] == across else None

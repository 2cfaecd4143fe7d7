"""Functional tumour volume that is updated while the user changes thresholds.

The region is prepared once, and its voxels are then counted in a thread.
"""

from pathlib import Path

from qtpy.QtCore import QTimer, Signal

from napari_mamamia.core.box import Box
from napari_mamamia.core.texts import tr
from napari_mamamia.kinetics.tumour_volume import FtvImages, FtvSettings
from napari_mamamia.segmentation.model.segmenter import BoxPrompt, Prompt
from napari_mamamia.services.kinetics.ftv_from import FtvUnderSeg
from napari_mamamia.widgets.base.notify import plain_text
from napari_mamamia.widgets.controls.wrapped import breakable
from napari_mamamia.widgets.kinetics.case import KineticCase
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.prompts import PromptTool

_PREPARE = "ftv_prepare"
_COUNT = "ftv_count"
_SEG = "ftv_seg"


class FtvLive(WindowPart):
    """A component that computes FTV while the thresholds change.

    The signal `answered` carries an `FtvAnswer`, and `unknown` the reason if there is no volume.
    `region_changed` carries a description of the region, and `drawing_changed` the drawing mode
    ("", "box" or "omit"). `compared` carries an `FtvUnderSeg`, or None if no SEG is in use, and
    `seg_failed` the reason why a SEG was rejected.
    """

    answered = Signal(object)
    unknown = Signal(str)
    region_changed = Signal(str)
    drawing_changed = Signal(str)
    compared = Signal(object)
    seg_failed = Signal(str)

    def __init__(self, context: WindowContext, state: KineticCase, prompts: PromptTool) -> None:
        super().__init__(context)
        self._state = state
        self._prompts = prompts
        self.settings = FtvSettings()
        self._images: FtvImages | None = None
        self._drawn: list[Box] = []
        self._omitted: list[Box] = []
        self._seg = ""
        self._drawing = ""
        self._is_wanted = False
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.timeout.connect(self._settle_drawing)
        prompts.given.connect(self._take_box)
        prompts.mode_changed.connect(self._follow_mode)
        state.opened.connect(self._forget_regions)
        state.changed.connect(self.prepare)

    def want(self, wanted: bool) -> None:
        """Set whether FTV is visible; nothing is computed while it is hidden."""
        was, self._is_wanted = self._is_wanted, wanted
        if wanted and not was:
            self.prepare()

    def set_settings(self, settings: FtvSettings) -> None:
        """Count again with new thresholds, and discard a count that is still running."""
        self.settings = settings
        self._count_ftv()

    def draw(self, what: str) -> None:
        """Let the user draw the "box" for FTV or a box to "omit" in the image; "" stops drawing."""
        self._drawing = what
        self._prompts.set_mode(what)
        self.drawing_changed.emit(what)

    def around_mask(self) -> None:
        """Use the region of the visible mask again, without drawn boxes."""
        self._drawn, self._omitted, self._seg = [], [], ""
        self.prepare()

    def take_seg(self, path: Path) -> None:
        """Compute FTV with a UCSF SEG, show both volumes, and keep using the regions of the SEG."""
        case = self._state.own_case
        if case is None:
            self.seg_failed.emit(tr("Open a case first, and wait until it has loaded."))
            return

        def take(seg: FtvUnderSeg) -> None:
            self._drawn, self._omitted = list(seg.boxes), list(seg.omitted)
            self._seg = path.name
            self.compared.emit(seg)
            self.prepare()

        self._jobs.start(
            _SEG,
            tr("FTV with the settings of {name}", name=path.name),
            lambda: self._services.kinetics.ftv_under_seg(case, path),
            take,
            failed=lambda error: self.seg_failed.emit(plain_text(error)),
        )

    def prepare(self) -> None:
        """Prepare the region if FTV is visible."""
        if not self._is_wanted:
            return
        self._images = None
        case = self._state.case
        if case is None:
            self.unknown.emit(tr("open a case first"))
            return
        mask = self._state.shown_mask()
        buffer = None if mask is None else mask.buffer
        drawn, omitted, rule = list(self._drawn), list(self._omitted), self._state.rule

        def work() -> FtvImages:
            boxes = drawn or [self._services.kinetics.ftv_box(case, buffer)]
            boxes = [box for box in boxes if not box.is_empty]
            return self._services.kinetics.prepare_ftv(case, boxes, omitted, rule)

        def take(images: FtvImages) -> None:
            self._images = images
            self._count_ftv()

        self.region_changed.emit(self._describe_region(None if mask is None else str(mask.role)))
        self._jobs.start(
            _PREPARE,
            tr("Preparing FTV"),
            work,
            take,
            failed=self._show_unknown,
            still=lambda: self._state.case is case,
            shown=False,
        )

    # -------------------------------------------------------------------- inner

    def _count_ftv(self) -> None:
        case, images, settings = self._state.case, self._images, self.settings
        if case is None or images is None:
            return

        count = self._services.kinetics.live_ftv
        self._jobs.start(
            _COUNT,
            "FTV",
            lambda: count(case, images, settings),
            self.answered.emit,
            failed=self._show_unknown,
            still=lambda: self._images is images,
            shown=False,
        )

    def _show_unknown(self, error: Exception) -> None:
        self.unknown.emit(plain_text(error))

    def _take_box(self, prompt: Prompt) -> None:
        if not isinstance(prompt, BoxPrompt) or not self._drawing:
            return
        if self._drawing == "omit":
            self._omitted.append(prompt.box)
        else:
            self._drawn, self._seg = [prompt.box], ""
        self.draw("")
        self.prepare()

    def _follow_mode(self, mode: str) -> None:
        if not mode and self._drawing:
            self._later.start()

    def _settle_drawing(self) -> None:
        if self._drawing and not self._prompts.is_waiting:
            self._drawing = ""
            self.drawing_changed.emit("")

    def _describe_region(self, mask: str | None) -> str:
        if self._seg:
            where = tr("the VOI of {seg}", seg=breakable(self._seg))
        elif self._drawn:
            where = tr("the drawn box")
        elif mask is not None:
            where = tr("the {mask} mask's bounding box + 10 mm", mask=mask)
        else:
            where = tr("no box: show a mask or draw a box")
        count = len(self._omitted)
        return tr("In {where}", where=where) + (
            tr(", omitted boxes: {number}", number=count) if count else ""
        )

    def _forget_regions(self) -> None:
        self._drawn, self._omitted, self._images, self._seg = [], [], None, ""
        self._jobs.cancel(_SEG)
        self.compared.emit(None)
        if self._drawing:
            self.draw("")

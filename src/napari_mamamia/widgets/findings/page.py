"""The Findings page: the form, clicks on landmarks, and missing or contradictory answers."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QButtonGroup, QComboBox, QLabel, QPushButton, QWidget

from napari_mamamia.core.answers import (
    WHOLE_CASE,
    CaseFacts,
    Landmark,
    Landmarks,
    LesionFacts,
    Place,
    Side,
)
from napari_mamamia.core.form import FieldScope
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.controls.controls import (
    button,
    call_by,
    label,
    line,
    row,
    set_level,
    tool_button,
)
from napari_mamamia.widgets.controls.fields import combo_box
from napari_mamamia.widgets.controls.page import Page
from napari_mamamia.widgets.findings.form_view import FormView
from napari_mamamia.widgets.findings.gap_views import GapList
from napari_mamamia.widgets.findings.gaps import Gap
from napari_mamamia.widgets.measure.overlay import ShownMark

_TARGET: Final = 24
"""Minimum size of a click target in pixels (WCAG 2.2, 2.5.8)."""
_NO_LESION: Final = tr("no lesion")
_LANDMARKS: Final = {Landmark.NIPPLE: tr("Nipple"), Landmark.CHEST_WALL: tr("Chest wall")}
_SIDES: Final = (Side.RIGHT, Side.LEFT)
MARK_KEYS: Final = {
    (landmark, side): f"mark {landmark.name} {side.name}"
    for landmark in Landmark
    for side in _SIDES
}
_TIPS: Final = {
    Landmark.NIPPLE: tr(
        "Click on the {} nipple. Clock position, quadrant and distance are derived from it."
    ),
    Landmark.CHEST_WALL: tr(
        "Click on the chest wall behind the {} nipple. Depth is derived from it."
    ),
}


class FindingsPage(Page):
    """The Findings page; `place_chosen` carries the `Place` of the displayed questions.

    The signal `mark_wanted` carries landmark, side and whether to wait for a click. `forget_wanted`
    requests the removal of all landmarks, `lesion_wanted` a new lesion, and `show_wanted` the
    display of the selected lesion.
    """

    place_chosen = Signal(object)
    mark_wanted = Signal(object, object, bool)
    forget_wanted = Signal()
    lesion_wanted = Signal()
    show_wanted = Signal()

    def __init__(self) -> None:
        super().__init__("findings")
        self.place = WHOLE_CASE
        self._sides: tuple[Side, ...] = _SIDES
        self._marked: tuple[Side, ...] = ()
        self.form = FormView("findings", WHOLE_CASE)
        self.body.addWidget(self._make_places())
        self.body.addWidget(self._make_lesions())
        self.body.addWidget(self.form)
        self.body.addWidget(line())
        self.marks: dict[tuple[Landmark, Side], QPushButton] = {}
        rows = {landmark: self._make_marks(landmark) for landmark in Landmark}
        for landmark in Landmark:
            self.body.addWidget(rows[landmark])
        self._chest_wall = rows[Landmark.CHEST_WALL]
        self.forget = button(
            "findings_forget_marks",
            tr("Remove landmarks"),
            tr("Removes the nipple and chest-wall landmarks. The file keeps their history."),
            self.forget_wanted.emit,
        )
        self.body.addWidget(row(self.forget, 1))
        self.whose = label("findings_whose", tip=tr("Mask that contains these lesions"))
        set_level(self.whose, "hint")
        self.remarks = label("findings_remarks", tip=tr("Why a position in the breast is unknown"))
        self.gaps = GapList("findings_gaps")
        self.gaps.gap_wanted.connect(self.show_gap)
        self.problem = label("findings_problem", tip=tr("Problems in the findings record"))
        set_level(self.problem, "error")
        for text in (self.remarks, self.gaps, self.whose, self.problem):
            self.body.addWidget(text)
        self.body.addStretch()
        self.show_lesions(CaseFacts(), ())
        self.show_marks(Landmarks())
        self.show_texts(whose="", remarks=(), gaps=(), problem="")

    # ------------------------------------------------------------- for the flow

    def show_lesions(self, facts: CaseFacts, more: Sequence[str]) -> None:
        """List the lesions in the mask, then the described lesions that have no mask."""
        self._lesions.blockSignals(True)
        self._lesions.clear()
        for lesion in facts.lesions or ():
            self._lesions.addItem(_describe_lesion(lesion), lesion.name)
        for name in more:
            self._lesions.addItem(tr("{name}: no mask", name=name), name)
        is_none = self._lesions.count() == 0
        if is_none:
            self._lesions.addItem(_NO_LESION, "")
        index = self._lesions.findData(self.place.name)
        if self.place.scope is FieldScope.LESION and index >= 0:
            self._lesions.setCurrentIndex(index)
        self._lesions.blockSignals(False)
        for control in (self._lesions, self._lesion, self._show):
            control.setEnabled(not is_none)
        self._sides = facts.sides
        self._show_sides()
        by_breast = self.place.scope is FieldScope.BREAST
        is_out_of_view = by_breast and self.place.name not in self._sides
        if is_out_of_view or (self.place.scope is FieldScope.LESION and index < 0):
            self.choose(WHOLE_CASE)

    @property
    def lesions(self) -> tuple[str, ...]:
        """Return the numbers of the listed lesions."""
        names = (str(self._lesions.itemData(index) or "") for index in range(self._lesions.count()))
        return tuple(filter(None, names))

    def choose(self, place: Place) -> None:
        """Show the questions about a place."""
        self.place = place
        by_breast = place.scope is FieldScope.BREAST
        name = place.name if by_breast else place.scope.value
        self._places[name].setChecked(True)
        self._lesions.blockSignals(True)
        if place.scope is FieldScope.LESION:
            self._lesions.setCurrentIndex(self._lesions.findData(place.name))
        self._lesions.blockSignals(False)
        self.form.show_place(place)
        self.place_chosen.emit(place)

    def show_marks(self, landmarks: Landmarks, armed: tuple[Landmark, Side] | None = None) -> None:
        """Show the landmarks, and highlight the landmark that waits for a click."""
        for (landmark, side), control in self.marks.items():
            is_marked = landmarks.find(landmark, side) is not None
            control.setText(f"{tr(side.title())} ✓" if is_marked else tr(side.title()))
            call_by(control, f"{_LANDMARKS[landmark]} {side}{' marked' if is_marked else ''}")
            control.setChecked(armed == (landmark, side))
        self._marked = tuple(point.side for point in landmarks.points)
        self._show_sides()
        self.forget.setVisible(bool(landmarks.points))
        # Depth needs nipple and chest wall.
        self._chest_wall.setVisible(bool(landmarks.points))

    def show_texts(
        self,
        *,
        whose: str,
        remarks: Sequence[str],
        gaps: Sequence[Gap],
        problem: str,
    ) -> None:
        """Show remarks and missing or contradictory answers, hiding texts that are empty."""
        shown: Mapping[QLabel, str] = {
            self.whose: whose,
            self.remarks: "\n".join(remarks),
            self.problem: problem,
        }
        for control, text in shown.items():
            control.setText(text)
            control.setVisible(bool(text))
        self.gaps.show_gaps(gaps)

    def show_gap(self, gap: Gap) -> None:
        """Show the place of a gap, and give its question the keyboard focus."""
        place = gap.place
        if place is None or (place.scope is FieldScope.LESION and place.name not in self.lesions):
            return
        is_other = place != self.place
        self.choose(place)
        self.form.show_gap(gap)
        if is_other and place.scope is FieldScope.LESION:
            self.show_wanted.emit()

    # -------------------------------------------------------------------- inner

    def _make_places(self) -> QWidget:
        self._places: dict[str, QPushButton] = {}
        group = QButtonGroup(self)
        places = {
            "case": (
                tr("Case"),
                WHOLE_CASE,
                tr("Shows questions about the whole case: tissue and background."),
            ),
            **{
                side.value: (
                    tr(side.title()),
                    Place(FieldScope.BREAST, side.value),
                    with_key(
                        tr("Shows questions about the {side} breast: assessment.", side=side),
                        "assess_4",
                    ),
                )
                for side in _SIDES
            },
        }
        for name, (text, place, tip) in places.items():
            self._places[name] = button(
                f"findings_place_{name}", text, tip, partial(self.choose, place)
            )
        self._lesion = button(
            "findings_place_lesion",
            tr("Lesion"),
            tr("Shows questions about the lesion below."),
            self._choose_lesion,
        )
        self._places[FieldScope.LESION.value] = self._lesion
        for control in self._places.values():
            control.setCheckable(True)
            group.addButton(control)
        self._places["case"].setChecked(True)
        return row(*self._places.values(), 1)

    def _make_lesions(self) -> QWidget:
        self._lesions = combo_box(
            "findings_lesion", tr("Lesions in the mask, and lesions without a mask.")
        )
        call_by(self._lesions, tr("Lesion"))
        self._lesions.setMinimumContentsLength(14)
        self._lesions.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self._lesions.activated.connect(lambda _at: self._choose_lesion())
        self._show = tool_button(
            "findings_show_lesion",
            "◎",
            tr("Goes to this lesion in the image."),
            self.show_wanted.emit,
        )
        add = tool_button(
            "findings_add_lesion",
            "+",
            tr("Adds a lesion that is not in the mask, such as a focus."),
            self.lesion_wanted.emit,
        )
        for sign in (self._show, add):
            sign.setMinimumSize(_TARGET, _TARGET)
        lesions = row(self._lesions, self._show, add)
        lesions.layout().setStretch(0, 1)
        return lesions

    def _choose_lesion(self) -> None:
        name = self._lesions.currentData()
        if name:
            self.choose(Place(FieldScope.LESION, name))
            self.show_wanted.emit()

    def _make_marks(self, landmark: Landmark) -> QWidget:
        title = QLabel(_LANDMARKS[landmark])
        for side in _SIDES:
            control = button(
                f"findings_mark_{landmark.name.lower()}_{side}",
                tr(side.title()),
                _TIPS[landmark].format(side),
                partial(self._ask_mark, landmark, side),
            )
            control.setCheckable(True)
            self.marks[landmark, side] = control
        marks = row(title, *(self.marks[landmark, side] for side in _SIDES))
        marks.layout().setStretch(0, 1)
        return marks

    def _show_sides(self) -> None:
        for side in _SIDES:
            is_there = side in self._sides or side in self._marked
            self._places[side.value].setVisible(side in self._sides)
            for landmark in Landmark:
                self.marks[landmark, side].setVisible(is_there)

    def _ask_mark(self, landmark: Landmark, side: Side) -> None:
        self.mark_wanted.emit(landmark, side, self.marks[landmark, side].isChecked())


def list_marks(landmarks: Landmarks) -> tuple[ShownMark, ...]:
    """Return the landmarks for display on the image, named by `MARK_KEYS`."""
    return tuple(
        ShownMark(
            MARK_KEYS[point.landmark, point.side],
            point.point_mm,
            f"{_LANDMARKS[point.landmark]} {tr(point.side.value)}",
        )
        for point in landmarks.points
        if point.point_mm is not None
    )


def describe_mask_owner(role: Role, name: str, *, with_numbers: bool) -> str:
    """Return a text stating whose mask the lesions belong to, or that nothing is filled in."""
    if not with_numbers:
        return tr("Nothing is filled in, because measurements are hidden in this reading.")
    whose = (
        tr("your mask")
        if role is Role.REFINED
        else tr("the {role} {name}", role=role, name=name).strip()
    )
    return tr("Lesions in {name}.", name=whose)


def _describe_lesion(lesion: LesionFacts) -> str:
    clock = tr("{clock} o'clock", clock=lesion.clock) if lesion.clock else ""
    size = (
        "" if lesion.volume_mm3 is None else tr("{volume:.2f} ml", volume=lesion.volume_mm3 / 1000)
    )
    words = " ".join(filter(None, ("" if lesion.side is None else lesion.side.value, clock, size)))
    return f"{lesion.name}: {words}" if words else lesion.name

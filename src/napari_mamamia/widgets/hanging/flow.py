"""Controller of the hanging protocol: step with PgDn and PgUp, restore the view at the end."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from napari.components import ViewerModel
from qtpy.QtCore import QTimer

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import SaveError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.texts import tr
from napari_mamamia.kinetics.map_kinds import MapKind
from napari_mamamia.services.case.context import CaseContext
from napari_mamamia.services.case.hanging import (
    HangingPlan,
    HangingSettings,
    HangingStep,
    PriorChoice,
    find_roles,
    read_hanging_settings,
    wish_grey,
    wish_share,
    wish_step,
    write_hanging_settings,
)
from napari_mamamia.services.case.prior import (
    PriorExam,
    PriorLink,
    carry_place,
    is_inside,
    link_by_frame,
    link_places,
    match_phase,
)
from napari_mamamia.widgets.base.layers import Role, tag_for
from napari_mamamia.widgets.hanging.bar import HangingBar
from napari_mamamia.widgets.hanging.own_view import OwnView
from napari_mamamia.widgets.kinetics.map import KineticMapControl
from napari_mamamia.widgets.viewer.canvas import CanvasText
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.contrasting import Contrasting, WindowLevelDrag
from napari_mamamia.widgets.viewer.opening import Opening
from napari_mamamia.widgets.viewer.pane import Pane, PaneKind
from napari_mamamia.widgets.viewer.pane_sides import Sides, turned_camera
from napari_mamamia.widgets.viewer.planes import Arrangement, Layout, Planes, arrange
from napari_mamamia.widgets.viewer.projecting import Projecting
from napari_mamamia.widgets.viewer.scene import Scene
from napari_mamamia.widgets.viewer.slice_view import Voxel
from napari_mamamia.widgets.viewer.subtracting import Subtracting
from napari_mamamia.widgets.viewer.view_flow import ViewFlow

_AXES: Final = 3
_STILL_PIXELS: Final = 3.0


class NoCopies:
    """A null object in place of `LayerCopies`, for a view without layers of the open case."""

    def copy_next(self) -> None:
        """Copy nothing."""

    def fill(self) -> None:
        """Copy no layers."""

    def close(self) -> None:
        """Do nothing, because no layer is followed."""

    def set_own(self, _role: Any, _data: Any) -> None:
        """Ignore the data of a role."""

    def redraw(self, _role: Any, _part: Any) -> None:
        """Redraw nothing."""


class PriorPane(Pane):
    """A view that shows the phases and the masks of `prior`, read-only.

    Parameters
    ----------
    main
        The open case in the main view.
    kind
        The kind of pane.
    case
        The open case.
    prior
        The prior exam.
    link
        The shift between the exams; None to compute the shift from their frames of reference.
    name
        The text in the corner of the view.
    pick
        Function that moves the cross-hair of the open case to a voxel.

    Attributes
    ----------
    link, is_linked
        The shift between the exams, and whether the exams scroll together. They do so if both exams
        have the same frame of reference, or after a reader has set the shift.
    placed
        Function called after the position was moved in this view alone.
    """

    def __init__(
        self,
        main: Scene,
        kind: PaneKind,
        case: Case,
        prior: PriorExam,
        link: PriorLink | None,
        name: str,
        pick: Callable[[Voxel], None],
    ) -> None:
        self.kind = kind
        self._scene = main
        self._prior, self._exam, self._name, self._case = prior.case, prior, name, case
        self._own_scene = Scene(ViewerModel())
        self.model = self._own_scene.viewer
        self.copies: Any = NoCopies()
        self.text = CanvasText(self._own_scene, self.model)
        self.text.is_held = True
        self.text.name_side = self._name_side
        self.window_level = WindowLevelDrag(self._own_scene)
        self.whole_zoom = 1.0
        self.link = link_by_frame(case, prior.case) if link is None else link
        self.is_linked = self.link.is_known
        self._is_placed = False
        self._is_outside = False
        self._is_closed = False
        self._pick = pick
        self.placed: Callable[[], None] = lambda: None
        self._shown: tuple[int, int, int] = (0, 0, 0)
        self.model.mouse_drag_callbacks.append(self._follow_click)

    def fill(self) -> None:
        """Show the prior exam."""
        if self._own_scene.grid is None:
            masks = [
                (tag_for(self._prior, Role(mask.role), mask.provenance), mask.buffer)
                for mask in self._exam.masks.masks
            ]
            self._own_scene.show_case(self._prior, self._exam.limits, masks)
            self._scene.companions.append(self._own_scene)
        self.text.is_held = False
        self.text.update()

    def park(self) -> None:
        """Stop updating the texts; nothing else changes while the view is hidden."""
        self.text.is_held = True

    def resume(self, kind: PaneKind, sides: Sides, place: Sequence[int], phase: int | None) -> None:
        """Show the prior exam again, at a position of the open case."""
        self.turn(sides)
        self.show(place, phase)

    def close(self) -> None:
        """Disconnect from the main view."""
        self._is_closed = True
        if self._own_scene in self._scene.companions:
            self._scene.companions.remove(self._own_scene)
        self.text.close()

    def turn(self, sides: Sides) -> None:
        """Show the plane of the main view in the same orientation."""
        self.fill()
        grid, open_grid, dims = self._prior.grid, self._scene.grid, self.model.dims
        if open_grid is None or dims.ndim < _AXES:
            return
        plane = open_grid.display_frame().plane
        turn, against = grid.display_frame(plane).within(grid.display_frame())
        lead = dims.ndim - _AXES
        order = (*range(lead), *(lead + axis for axis in turn))
        if tuple(dims.order) != order:
            dims.order = order
        self.model.scene.camera.orientation2d = turned_camera(grid, turn, against, sides)

    def show(self, shown: Sequence[int], phase: int | None) -> None:
        """Show the case's position in mm, and the phase with the same role.

        If the exams are not linked, the position is unchanged; initially both exams show the same
        scanner coordinates.
        """
        grid, case = self._scene.grid, self._case
        self._shown = (shown[0], shown[1], shown[2])
        if grid is None or self._own_scene.grid is None:
            return
        there = find_roles(self._prior)
        count = len(self._prior.phases)
        other = None if phase is None else match_phase(find_roles(case), phase, there, count)
        position = self._own_place
        if self.is_linked or not self._is_placed:
            self._is_placed = True
            voxel = grid.display_frame().point_from_display(shown, grid.shape)
            carried = carry_place(grid, voxel, self._prior.grid, self.link.offset_mm)
            self._is_outside = not is_inside(self._prior.grid, carried)
            z, y, x = (
                min(max(round(i), 0), n - 1)
                for i, n in zip(carried, self._prior.grid.shape, strict=True)
            )
            position = (z, y, x)
        self._own_scene.view.go_to(position, centre=False, phase=other)
        self.text.update()

    def read_place(self, shown: Sequence[int]) -> tuple[int, int, int] | None:
        """Return the open case's position after a step in this view, or None if not linked."""
        grid = self._scene.grid
        if not self.is_linked or self._is_closed or grid is None:
            return None
        back = [-mm for mm in self.link.offset_mm]
        voxel = carry_place(self._prior.grid, self._own_place, grid, back)
        places = grid.display_frame().point_to_display(voxel, grid.shape)
        counts = grid.display_frame().per_axis(grid.shape)
        across = {axis - (self._scene.viewer.dims.ndim - _AXES) for axis in self._find_hidden()}
        # Only the axis through the slices: rounding must not move the others.
        s, r, c = (
            min(max(round(step), 0), int(n) - 1) if axis in across else here
            for axis, (step, n, here) in enumerate(zip(places, counts, shown, strict=True))
        )
        return s, r, c

    def set_linked(self, linked: bool) -> None:
        """Unlink the exams, or link the exams at their displayed positions."""
        grid = self._scene.grid
        if linked and not self.is_linked and grid is not None:
            voxel = grid.display_frame().point_from_display(self._shown, grid.shape)
            self.link = link_places(grid, voxel, self._prior.grid, self._own_place)
        self.is_linked = linked
        self._is_outside = self._is_outside and linked
        self._is_placed = True
        self.text.update()

    def turn_centre(self, centre: Sequence[float], half: str) -> tuple[float, ...]:
        """Return the centre of this view that corresponds to the centre of the main view."""
        grid = self._scene.grid
        if grid is None or self._own_scene.grid is None:
            return tuple(centre)
        voxel = self._find_middle(grid, centre)
        carried = carry_place(grid, voxel, self._prior.grid, self.link.offset_mm)
        frame = self._prior.grid.display_frame()
        there = frame.point_to_display(carried, self._prior.grid.shape)
        spacing = frame.per_axis(self._prior.grid.spacing_mm)
        dims = self.model.dims
        lead = dims.ndim - _AXES
        return tuple(there[axis - lead] * spacing[axis - lead] for axis in dims.displayed)

    def centre(self, voxel: Any) -> None:
        """Do nothing, because this view only follows the centre of the main view."""

    def find_world(self, world: tuple[float, ...] | None) -> tuple[float, ...] | None:
        """Return the cross-hair position in this exam: the same position in mm, or the click."""
        if world is None or self._own_scene.grid is None or self._is_outside:
            return None
        frame = self._prior.grid.display_frame()
        position = frame.point_to_display(self._own_place, self._prior.grid.shape)
        spacing = frame.per_axis(self._prior.grid.spacing_mm)
        return tuple(i * mm for i, mm in zip(position, spacing, strict=True))

    # ------------------------------------------------------------------- inner

    def _find_middle(self, grid: Grid, centre: Sequence[float]) -> tuple[float, float, float]:
        frame = grid.display_frame()
        spacing = frame.per_axis(grid.spacing_mm)
        dims = self._scene.viewer.dims
        lead = dims.ndim - _AXES
        places = [float(coordinate) for coordinate in self._shown]
        for axis, mm in zip(dims.displayed, centre[-len(dims.displayed) :], strict=True):
            places[axis - lead] = mm / spacing[axis - lead]
        return frame.point_from_display(places, grid.shape)

    def _follow_click(self, _viewer: Any, event: Any) -> Iterator[None]:
        start, position = tuple(event.pos), tuple(event.position)
        if event.button != 1 or event.modifiers:
            return
        yield
        while event.type == "mouse_move":
            yield
        moved = max(abs(a - b) for a, b in zip(event.pos, start, strict=True))
        voxel, grid = self._own_scene.view.voxel_at(position), self._scene.grid
        if moved > _STILL_PIXELS or voxel is None or grid is None:
            return
        if self.is_linked:
            back = [-mm for mm in self.link.offset_mm]
            z, y, x = carry_place(self._prior.grid, voxel, grid, back)
            self._pick((round(z), round(y), round(x)))
        else:
            self._own_scene.view.go_to(voxel, centre=False)
            self.placed()

    def _find_hidden(self) -> list[int]:
        dims = self._scene.viewer.dims
        return [axis for axis in dims.not_displayed if axis >= dims.ndim - _AXES]

    @property
    def _own_place(self) -> tuple[int, int, int]:
        dims, grid = self.model.dims, self._prior.grid
        steps = dims.current_step[dims.ndim - _AXES :]
        z, y, x = grid.display_frame().point_from_display([float(s) for s in steps], grid.shape)
        return round(z), round(y), round(x)

    def _name_side(self) -> str:
        note = tr("outside this exam") if self._is_outside else ""
        free = "" if self.is_linked else tr("not linked")
        return ", ".join(text for text in (self._name, note, free) if text)


_log = logging.getLogger(__name__)

_IN_STUDY: Final = tr(
    "A review study shows only its own cases, so no prior exam can be shown next to them."
)
_SETTING: Final = "hanging "


class Hanging(WindowPart):
    """A controller that steps through the hanging protocol of a case.

    The reader's own view precedes the first step. `bar` shows the current step, and can be anywhere
    in the window.
    """

    def __init__(
        self,
        context: WindowContext,
        bar: HangingBar,
        own_view: OwnView,
        opening: Opening,
        planes: Planes,
        view_flow: ViewFlow,
        subtracting: Subtracting,
        projecting: Projecting,
        contrasting: Contrasting,
        kinetic_map: KineticMapControl,
        show_curves: Callable[[bool], None],
    ) -> None:
        super().__init__(context)
        self.bar = bar
        self._planes = planes
        self._view_flow = view_flow
        self._subtracting = subtracting
        self._projecting = projecting
        self._contrasting = contrasting
        self._map = kinetic_map
        self._show_curves = show_curves
        self._own = own_view
        self.step: HangingStep | None = None
        self._is_due = self._has_looked = False
        self._signal: Any = None
        self._hanging_settings = HangingSettings()
        self.prior: PriorChoice | None = None
        self._pane: PriorPane | None = None
        self._link: PriorLink | None = None
        planes.layout_changed.connect(self._on_layout)
        planes.built.connect(self._on_built)
        contrasting.chosen.connect(self._on_grey)
        self._grey = QTimer(self)
        self._grey.setSingleShot(True)
        self._grey.timeout.connect(self._put_grey)
        self._scene.viewer.layers.events.inserted.connect(self._grey_later)
        self._session.case_changed.connect(self._on_case)
        self._session.reader_changed.connect(self._recall_hanging)
        opening.case_shown.connect(self._on_shown)
        bar.step_wanted.connect(self.walk)
        bar.shown_wanted.connect(self.show)
        bar.chosen.connect(self._choose_step)
        bar.prior_wanted.connect(self.load_prior)
        bar.others_wanted.connect(self._ask_prior)
        bar.link_wanted.connect(self._turn_link)
        self._recall_hanging()

    def actions(self) -> dict[str, Callable[..., object]]:
        """Return the actions of the hanging shortcuts by action name."""
        return {
            "hanging_next": lambda: self.walk(1),
            "hanging_back": lambda: self.walk(-1),
            "prior": self.show_prior,
        }

    # ------------------------------------------------------------------- walking

    def plan(self) -> HangingPlan | None:
        """Return the steps for the open case, or None if no case is open."""
        case = self._session.case
        if case is None:
            return None
        has_prior = self.prior is not None or bool(self.list_priors())
        return self._services.plan_hanging(case, has_prior, self._hanging_settings.unwanted)

    def walk(self, by: int) -> None:
        """Move by `by` steps; the reader's own view precedes the first step."""
        plan = self.plan()
        if plan is None:
            self._notifier.hint(tr("No hanging protocol: open a case first"))
            return
        index = plan.steps.index(self.step) if self.step in plan.steps else -1
        to = index + by
        if not plan.steps:
            self._notifier.hint(
                tr(
                    "No step of the hanging protocol can be shown: {join_reasons}",
                    join_reasons=_join_reasons(plan),
                )
            )
        elif to >= len(plan.steps):
            self._notifier.hint(tr("This is the last step of the hanging protocol"))
        elif to >= 0:
            self.show(plan.steps[to])
        elif self.step is not None:
            self.leave()

    def show(self, step: HangingStep) -> None:
        """Show a step of the hanging protocol."""
        plan = self.plan()
        if plan is None or step not in plan.steps:
            return
        if self.step is None:
            self._own.take()
            if plan.left_out:
                self._notifier.hint(
                    tr("Steps left out: {join_reasons}", join_reasons=_join_reasons(plan))
                )
        if step is HangingStep.PRIOR and self.prior is None:
            self.load_prior(self.list_priors()[0].case_id)
            return
        before, self.step = self.step, step
        self._keep_share(before)
        self._find_breasts()
        if before is HangingStep.LATE and step is not HangingStep.LATE:
            self._map.hide()
            self._show_curves(False)
        self._hang_views(step, plan)
        self._is_due = True
        self._show_image()
        self._show_bar()

    def _find_breasts(self) -> None:
        """Find the breasts once for each case, because a view of one breast is fitted to it."""
        case = self._session.case
        is_asked = self.step in (HangingStep.BOTH, HangingStep.SIDES)
        if case is None or not is_asked or not case.phases[0].loaded or self._has_looked:
            return
        self._has_looked = True
        find_breast_box = self._services.find_breast_box

        def fit(breast: Box | None) -> None:
            self._scene.view.breast = breast
            self._planes.links.fit_later_()

        self._jobs.start(
            "breasts",
            tr("Finding the breasts"),
            lambda: find_breast_box(case),
            fit,
            failed=lambda error: _log.warning("the breasts could not be found: %s", error),
            still=lambda: self._session.shows(case),
            shown=False,
        )

    def leave(self) -> None:
        """Restore the reader's own view."""
        self._end_hanging(None)

    # --------------------------------------------------------------------- prior

    def list_priors(self) -> tuple[PriorChoice, ...]:
        """Return the patient's earlier exams from the clinical table."""
        context = self._session.context
        if context is None or context.opened.cohort is None or self._session.study:
            return ()
        here = {case.case_id for case in context.opened.data_set.cases}
        choices = self._services.find_priors(context.opened.cohort.records, context.case_id)
        return tuple(choice for choice in choices if choice.case_id in here)

    def show_prior(self) -> None:
        """Show the prior exam next to the case, or ask for an exam if no prior is known."""
        plan = self.plan()
        if plan is None:
            self._notifier.hint(tr("No prior: open a case first"))
        elif HangingStep.PRIOR in plan.steps:
            self.show(HangingStep.PRIOR)
        else:
            self._ask_prior()

    def load_prior(self, case_id: str) -> None:
        """Read another exam, and show it next to the case if that exam can be a prior."""
        context, case = self._session.context, self._session.case
        if self._session.study:
            self._notifier.hint(_IN_STUDY)
            return
        if context is None or case is None:
            self._notifier.hint(tr("No prior, because this case is not in a data set"))
            return
        there = CaseContext(context.opened, case_id, context.reader)
        why = next((prior.why for prior in self.list_priors() if prior.case_id == case_id), "")
        choice = PriorChoice(case_id, why or tr("chosen by hand"))
        read_prior = self._services.read_prior

        def show(exam: PriorExam) -> None:
            if exam.problem:
                self._notifier.warn(
                    tr(
                        "{case_id} is not a prior of {case_id_2}: {problem}",
                        case_id=case_id,
                        case_id_2=case.case_id,
                        problem=exam.problem,
                    )
                )
                return
            for problem in exam.masks.problems:
                self._notifier.warn(f"{case_id}: {problem}")
            self.prior, self._link = choice, None
            self._planes.set_prior(partial(self._make_prior, case, exam, choice))
            self.show(HangingStep.PRIOR)

        self._jobs.start(
            "prior",
            tr("Reading the prior {case_id}", case_id=case_id),
            lambda: read_prior(case, context, there),
            show,
            still=lambda: self._session.shows(case),
        )

    def _ask_prior(self) -> None:
        context = self._session.context
        if context is None or self._session.study:
            self._notifier.hint(
                _IN_STUDY if context is not None else tr("No prior: open a case first")
            )
            return
        names = [case.case_id for case in context.opened.data_set.cases]
        others = [name for name in names if name != context.case_id]
        if not others:
            self._notifier.hint(tr("No prior, because this data set has no other exam"))
            return
        self.bar.ask_other(others)

    def _make_prior(
        self,
        case: Case,
        exam: PriorExam,
        choice: PriorChoice,
        kind: PaneKind,
    ) -> Pane:
        name = tr("prior {case_id}\n{why}", case_id=choice.case_id, why=choice.why)
        pick = self._planes.links.go_to
        pane = PriorPane(self._scene, kind, case, exam, self._link, name, pick)
        self._link = pane.link
        pane.placed = self._planes.links.spread
        self._pane = pane
        return pane

    def _turn_link(self) -> None:
        pane = self._pane
        if pane is None or self.step is not HangingStep.PRIOR:
            return
        pane.set_linked(not pane.is_linked)
        self._link = pane.link
        self._planes.links.spread()
        self._name_prior()

    def _on_built(self) -> None:
        if self.step is HangingStep.BOTH:
            self._planes.links.leave_midline()
        self._name_prior()

    def _name_prior(self) -> None:
        if self.prior is None or self._pane is None or self.step is not HangingStep.PRIOR:
            return
        self.bar.show_prior(self._pane.link, self._pane.is_linked)

    # --------------------------------------------------------------------- inner

    def _hang_views(self, step: HangingStep, plan: HangingPlan) -> None:
        grid = self._scene.grid
        if grid is None:
            return
        seen = grid.display_frame().plane, self._hanging_settings.shares.get(step)
        neurological = self._planes.sides.neurological
        self._planes.hang(arrange(step, plan.roles, *seen, neurological=neurological))
        if step is HangingStep.MIP:
            kinds = arrange(HangingStep.SIDES, plan.roles, *seen, neurological=neurological).kinds
            self._planes.prepare(kinds)

    def _show_image(self) -> None:
        case, plan, step = self._session.case, self.plan(), self.step
        if not self._is_due or case is None or plan is None or step is None:
            return
        is_computed = step in (HangingStep.MIP, HangingStep.BOTH, HangingStep.LATE)
        if is_computed and not case.is_loaded:
            return
        self._is_due = False
        roles, first = plan.roles, plan.roles.first or 0
        image = {HangingStep.MIP: "projection", HangingStep.BOTH: "subtraction"}.get(step, "phase")
        phases = {HangingStep.SIDES: roles.pre, HangingStep.LATE: roles.late}
        phase = phases.get(step, first)
        if image == "phase":
            self._view_flow.choose_image(image)
        self._projecting.slab_mm = 0.0
        self._scene.go_to_phase(first if phase is None else phase)
        self._subtracting.set_minus(roles.pre)
        if image != "phase":
            self._view_flow.choose_image(image)
            self._projecting.again()
        if step is HangingStep.LATE:
            self._map.show(MapKind.TYPE)
            self._show_curves(True)
        self._grey_later()

    def _on_case(self) -> None:
        case = self._session.case
        signal = None if case is None else case.signal
        if signal is not self._signal:
            self._signal = signal
            self.prior, self._pane = None, None
            self._scene.view.breast, self._has_looked = None, False
            self._jobs.cancel("prior")
            self.bar.set_priors(self.list_priors())
            if self.step is HangingStep.PRIOR and case is not None:
                self._planes.hang(Arrangement(""))  # another patient's exam is removed at once
            self._planes.set_prior(None)
        self._find_breasts()
        self._show_image()
        self._show_bar()

    def _on_shown(self) -> None:
        """Restart at the first step if the hanging protocol was active for the previous case."""
        plan = self.plan()
        if self.step is None or plan is None:
            return
        self._own.follow_case()
        if plan.steps and plan.steps[0] is not HangingStep.PRIOR:
            self.show(plan.steps[0])
        else:
            self._notifier.hint(
                tr(
                    "No step of the hanging protocol can be shown: {join_reasons}",
                    join_reasons=_join_reasons(plan),
                )
            )
            self.leave()

    def _on_layout(self, _layout: Layout) -> None:
        if self.step is not None and self._planes.wanted is not Layout.HUNG:
            self._end_hanging(self._planes.wanted)

    def _end_hanging(self, layout: Layout | None) -> None:
        before, self.step = self.step, None
        if before is None:
            return
        self._keep_share(before)
        self._is_due = False
        if before is HangingStep.LATE:
            self._show_curves(False)
        self._own.give_back(layout)
        self._show_bar()

    def _show_bar(self) -> None:
        self.bar.show_step(self.plan(), self.step, self._hanging_settings.unwanted)

    # --------------------------------------------------------------------- wishes

    def _choose_step(self, step: HangingStep, wanted: bool) -> None:
        self._remember_hanging(wish_step(self._hanging_settings, step, wanted))
        if step is self.step and not wanted:
            self.leave()
        self._show_bar()

    def _keep_share(self, step: HangingStep | None) -> None:
        share = self._planes.share
        if step is None or share is None or self._planes.layout is not Layout.HUNG:
            return
        if self._planes.arrangement.name == step:
            self._remember_hanging(wish_share(self._hanging_settings, step, share))

    def _on_grey(self, _names: object, name: str) -> None:
        if (
            self.step is not None
            and self._hanging_settings.grey.get(self.step) != name
            and not self._is_due
        ):
            self._remember_hanging(wish_grey(self._hanging_settings, self.step, name))

    def _grey_later(self, _event: object = None) -> None:
        if self.step is not None:
            self._grey.start(0)

    def _put_grey(self) -> None:
        step = self.step
        name = None if step is None else self._hanging_settings.grey.get(step)
        layer = self._scene.image_on_screen()
        if name is None or name not in self._contrasting.names or layer is None:
            return
        is_image = layer is not self._scene.layer(Role.PHASE)
        is_computed = step in (HangingStep.MIP, HangingStep.BOTH)
        if is_image == is_computed and self._contrasting.name != name:
            self._contrasting.choose(name)

    def _recall_hanging(self) -> None:
        settings = dict(self._services.load_preferences().view)
        self._hanging_settings = read_hanging_settings(settings.get(self._setting_name, ""))
        self._show_bar()

    def _remember_hanging(self, settings: HangingSettings) -> None:
        self._hanging_settings = settings
        preferences = self._services.load_preferences()
        view = dict(preferences.view) | {self._setting_name: write_hanging_settings(settings)}
        try:
            self._services.save_preferences(replace(preferences, view=tuple(view.items())))
        except SaveError as error:
            _log.warning("the chosen steps were not saved: %s", error)

    @property
    def _setting_name(self) -> str:
        return f"{_SETTING}{self._session.reader or ''}"


def _join_reasons(plan: HangingPlan) -> str:
    return "; ".join(f"{tr(step.words)} ({why})" for step, why in plan.left_out)

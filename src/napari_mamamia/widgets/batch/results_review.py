"""Review of scored cases: opening a row shows the case with its errors in colour."""

from collections.abc import Mapping
from types import MappingProxyType

from qtpy.QtCore import Signal

from napari_mamamia.core.texts import tr
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.case.show_case import Counting
from napari_mamamia.widgets.batch.results_cases import CasesTab
from napari_mamamia.widgets.batch.run import ModelAnswer
from napari_mamamia.widgets.batch.scored_masks import ScoredMasks
from napari_mamamia.widgets.cases.flow import CasesFlow
from napari_mamamia.widgets.score.agreement import Reviewing
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.opening import Opening


class ResultsReview(WindowPart):
    """The link between the case table, the open case and the agreement colours.

    A review starts when a row is opened and lasts while the agreement colours are on. During a
    review, every opened case shows its two scored masks, and the actions Next and Previous follow
    the table as sorted and filtered. The signal `case_wanted` requests to open a case;
    `picture_wanted` reports that the case of the row is already open.
    """

    case_wanted = Signal()
    picture_wanted = Signal()

    def __init__(
        self,
        context: WindowContext,
        table: CasesTab,
        cases: CasesFlow,
        opening: Opening,
        reviewing: Reviewing,
        scored_masks: ScoredMasks,
    ) -> None:
        super().__init__(context)
        self._table = table
        self._cases = cases
        self._scored_masks = scored_masks
        self._model: ModelAnswer | None = None
        self._opened: OpenDataSet | None = None
        self._own_ids: Mapping[str, str] = MappingProxyType({})
        self._files: Mapping[str, str] = MappingProxyType({})
        self._is_review = False
        table.case_chosen.connect(self.open_case)
        table.reordered.connect(self._set_queue)
        opening.case_shown.connect(self._follow_case)
        reviewing.switched.connect(self._on_switched)
        self._session.data_set_changed.connect(self._forget_ids)
        self._session.case_changed.connect(lambda: table.set_current(self._scored_id()))

    def show_model(self, model: ModelAnswer, opened: OpenDataSet | None) -> None:
        """Set the model whose cases the table shows, and their data set."""
        self._model, self._opened, self._own_ids = model, opened, {}
        self._files = {}
        if self._is_review:
            self._follow_case()

    def open_case(self, case_id: str) -> None:
        """Open a case of the table at its largest error, with errors in colour."""
        if self._opened is not None and not self._session.lists(self._opened):
            name = self._opened.data_set.name
            self._notifier.warn(
                tr(
                    "{case_id} was scored in the data set {name}: open that data set first.",
                    case_id=case_id,
                    name=name,
                )
            )
            return
        own_id = self._list_own_ids().get(case_key(case_id))
        if own_id is None:
            self._notifier.warn(
                tr(
                    "{case_id} is not in the open data set: open the folder of the case first.",
                    case_id=case_id,
                )
            )
            return
        self.case_wanted.emit()
        self._is_review = True
        self._set_queue()
        if own_id == self._session.listed_id:
            self._follow_case()
            self.picture_wanted.emit()
        else:
            self._cases.open_case(own_id)

    def leave(self) -> None:
        """End the review, so that cases opened later show their own masks again."""
        self._is_review = False

    # -------------------------------------------------------------------- inner

    def _scored_id(self) -> str:
        context, scored = self._session.context, self._opened
        if scored is not None and (context is None or context.opened.place != scored.place):
            return ""
        return self._session.case_id

    def _forget_ids(self) -> None:
        self._own_ids, self._is_review = {}, False

    def _list_own_ids(self) -> Mapping[str, str]:
        opened = self._session.opened
        if not self._own_ids and opened is not None:
            cases = opened.data_set.cases
            self._own_ids = {case_key(case.case_id): case.case_id for case in cases}
        return self._own_ids

    def _set_queue(self) -> None:
        if self._is_review:
            own_ids = self._list_own_ids()
            keys = self._table.rows.case_keys()
            queue = [own_ids[key] for key in keys if key in own_ids]
            self._session.set_queue(queue, is_list=False)

    def _on_switched(self, on: bool) -> None:
        self._is_review = self._is_review and on

    def _follow_case(self) -> None:
        case, model = self._session.case, self._model
        if not self._is_review or case is None or model is None or not self._scored_id():
            return
        if not self._files:
            self._files = dict(
                zip(model.cases.keys, (row.case_id for row in model.cases.rows), strict=True)
            )
        scored_id = self._files.get(case_key(case.case_id))
        if scored_id is None:
            return
        reference, prediction = model.pairs[scored_id]
        counting = Counting(model.settings.profile, model.settings.label_value)

        self._scored_masks.read(reference, prediction, model.name, counting)

"""Controller of the models on the Predict page: list, addition, selection and settings."""

from pathlib import Path

from qtpy.QtCore import Signal

from napari_mamamia.core.case import Case
from napari_mamamia.core.choices import FusionRule
from napari_mamamia.core.errors import MamamiaError, SaveConflictError
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.segmentation.model.segmenter import Segmenter
from napari_mamamia.segmentation.run.planned import PlannedSegmenter
from napari_mamamia.segmentation.run.registry import ModelEntry
from napari_mamamia.services.predict.input_pictures import InputChannel
from napari_mamamia.services.predict.model_choice import RunChoices
from napari_mamamia.widgets.predict.model_cards import ModelLine
from napari_mamamia.widgets.predict.page import PredictPage
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

Member = ModelEntry | Segmenter


class PredictModels(WindowPart):
    """A component that stores the selected models and their settings.

    The signal `changed` is emitted when the models or the settings change. `name_taken` carries the
    path of a model whose name is taken, and a free name.
    """

    changed = Signal()
    name_taken = Signal(object, str)

    def __init__(self, context: WindowContext, page: PredictPage) -> None:
        super().__init__(context)
        self._page = page
        self.own = self._services.segmenters()[0]
        self._entries: dict[str, ModelEntry] = {}
        self._chosen: tuple[str, ...] = (self.own.name,)
        self._added = ""
        self._host = self._services.new_host()
        self._made: tuple[object, Segmenter] | None = None
        page.models.chosen.connect(self.choose)
        page.models.fusing_changed.connect(self.changed.emit)
        page.models.forget_wanted.connect(self.forget)
        page.model_added.connect(self.add)
        page.options.changed.connect(self.changed.emit)
        self._show_entries(())
        self.reload()

    # ------------------------------------------------------------------ the choice

    @property
    def is_trained(self) -> bool:
        """Whether a selected model has trained weights."""
        return any(name in self._entries for name in self._chosen)

    @property
    def is_several(self) -> bool:
        """Whether several models are selected."""
        return len(self._chosen) > 1

    @property
    def entry(self) -> ModelEntry | None:
        """The selected model if the user added it; None for the built-in or several models."""
        return None if self.is_several else self._entries.get(self._chosen[0])

    @property
    def entries(self) -> tuple[ModelEntry, ...]:
        """The selected models that were added by the user."""
        return tuple(self._entries[name] for name in self._chosen if name in self._entries)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the selected models."""
        return self._chosen

    def segmenter(self) -> Segmenter:
        """Return the segmenter with the settings on the page.

        Raises
        ------
        ModelError
            If recipe, folds and model do not fit together, or the models cannot be fused.
        """
        members = tuple(self._entries.get(name, self.own) for name in self._chosen)
        asked = (members, self._page.options.choices(), self._page.models.fusing_rule)
        if self._made is None or self._made[0] != asked:
            self._made = (asked, self._make_segmenter(*asked))
        return self._made[1]

    def planned(self) -> tuple[PlannedSegmenter, ...]:
        """Return the selected trained models, or an empty tuple if one of them has a problem."""
        if self.problem():
            return ()
        segmenter = self.segmenter()
        members = getattr(segmenter, "members", (segmenter,))
        return tuple(member for member in members if isinstance(member, PlannedSegmenter))

    def problem(self) -> str:
        """Return why the selected models cannot run at all, or "" if they can run."""
        for entry in self.entries:
            if entry.problem:
                return entry.problem
        try:
            segmenter = self.segmenter()
        except MamamiaError as error:
            return str(error)
        return self._services.why_not_here(segmenter) if self.is_trained else ""

    def choose(self, names: tuple[str, ...]) -> None:
        """Select models in the list by name."""
        self._chosen = names
        self._show_recipe()
        self.changed.emit()

    @property
    def phases_needed(self) -> int:
        """Minimum number of phases that the selected models need."""
        needed = [self._services.phases_of(one) for one in self.planned()]
        return max((*needed, 2) if self._has_own or not needed else needed)

    def channels(self, case: Case) -> tuple[InputChannel, ...]:
        """Return the distinct inputs of the selected models for a case."""
        calls = self._services.predict
        per_model = [calls.model_channels(one, case.n_before) for one in self.planned()]
        if self._has_own:
            per_model.append(calls.kinetic_channels(case, self._services.choose_image_phases(case)))
        return (
            per_model[0] if len(per_model) == 1 else calls.shared_channels(per_model, case.n_before)
        )

    # ------------------------------------------------------------------- the list

    def reload(self) -> None:
        """List the models again; their folders are inspected in a thread."""
        look = self._services.listed_models
        self._jobs.start("models", tr("Listing the models"), look, self._show_entries, shown=False)

    def add(self, path: Path, name: str = "") -> None:
        """Add the model at a path and select it; an empty `name` stands for its own name."""
        doing, named = tr("Adding {name}", name=path.name), (name,) if name else ()

        def take(entry: ModelEntry) -> None:
            self._added = entry.name
            self._notifier.hint(tr("Model {added} was added.", added=self._added))
            self.reload()

        def refuse(error: Exception) -> None:
            self._notifier.fail(doing, error)
            if isinstance(error, SaveConflictError):
                self.name_taken.emit(path, self._free_name(path))

        add = self._services.add_model
        self._jobs.start("model", doing, lambda: add(path, *named), take, failed=refuse)

    def forget(self, name: str) -> None:
        """Remove a model from the list."""
        if name in self._entries:
            self._services.forget_model(name)
            self.reload()

    def replace(self, entry: ModelEntry) -> None:
        """Replace an entry with its new state, for example after its recipe was edited."""
        self._entries[entry.name] = entry
        self._show_recipe(choose=True)
        self.changed.emit()

    def close(self) -> None:
        """End the worker process of the models when the window closes."""
        self._host.close()

    # --------------------------------------------------------------------- inner

    @property
    def _has_own(self) -> bool:
        return self.own.name in self._chosen

    def _free_name(self, path: Path) -> str:
        name = "".join(c if c.isalnum() or c in "-_." else "_" for c in path.stem) or "model"
        taken = {one.casefold() for one in (*self._entries, self.own.name)}
        tries = (name, *(f"{name}_{number}" for number in range(2, len(taken) + 3)))
        return next(one for one in tries if one.casefold() not in taken)

    def _make_segmenter(
        self, members: tuple[Member, ...], choices: RunChoices, rule: FusionRule
    ) -> Segmenter:
        if len(members) > 1:
            return self._services.predict.fused(members, rule, choices, self._host)
        (member,) = members
        if not isinstance(member, ModelEntry):
            return member
        return self._services.planned(member, choices, self._host)

    def _show_entries(self, entries: tuple[ModelEntry, ...]) -> None:
        self._made = None
        self._entries = {entry.name: entry for entry in entries}
        if self._added in self._entries:
            self._chosen, self._added = (self._added,), ""
        names = (n for n in self._chosen if n in self._entries or n == self.own.name)
        self._chosen = tuple(names) or (self.own.name,)
        lines = [ModelLine(self.own.name, self.own.title, tr("needs no weights"))]
        lines += [_line_of(entry) for entry in entries]
        self._page.models.show_models(lines, self._chosen)
        self._show_recipe()
        self.changed.emit()

    def _show_recipe(self, *, choose: bool = False) -> None:
        entry = self.entry
        edited = entry is not None and entry.recipe is not None
        # The caller emits the change, once.
        self._page.options.blockSignals(True)
        self._page.options.show_own_recipe(edited=edited, choose=choose)
        self._page.options.set_several(self.is_several)
        self._page.options.blockSignals(False)


def _line_of(entry: ModelEntry) -> ModelLine:
    card = entry.card
    count = len(card.channels)
    text = tr_n("{value}, {n} channel", "{value}, {n} channels", count, value=card.kind)
    if card.folds:
        text += tr_n(
            ", fold {names}", ", folds {names}", len(card.folds), names=", ".join(card.folds)
        )
    licence = "" if card.licence.strip() else tr(", licence unknown")
    return ModelLine(entry.name, entry.name, text + licence, entry.problem)

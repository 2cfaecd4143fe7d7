"""Page Batch, under the clinical table: what it knows, and columns to confirm."""

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_mamamia.io.clinical.columns import BY_NAME, ColumnChoice
from napari_mamamia.services.score.clinical_look import ClinicalLook
from napari_mamamia.widgets.controls.controls import button, label, row, set_level

__all__ = ["BatchClinical"]


class BatchClinical(QWidget):
    """`confirmed` says that the user took the proposed columns, which are in `columns` then."""

    confirmed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.columns: ColumnChoice = BY_NAME
        self._answer: ColumnChoice | None = None
        self.coverage = label("batch_coverage", tip="Of how many cases the table knows what")
        self.question = label("batch_columns", tip="Columns that may be meant, and why")
        set_level(self.question, "warning")
        self.confirm = button(
            "batch_confirm_columns",
            "Use these columns",
            "Takes the columns above for this table; nothing of them is used before",
            self._confirm,
        )
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        for part in (self.coverage, self.question, row(self.confirm, 1)):
            layout.addWidget(part)
        self.forget()

    def forget(self) -> None:
        """Show nothing, and take columns by their names: another table was chosen."""
        self.columns = BY_NAME
        self.show_look(ClinicalLook(""))

    def show_look(self, look: ClinicalLook) -> None:
        """Show what a table holds, and the question with its button where there is one."""
        self._answer = look.answer
        self.coverage.setText(look.text)
        self.coverage.setVisible(bool(look.text))
        self.question.setText(look.question)
        self.question.setVisible(bool(look.question))
        self.confirm.setText(look.action)
        self.confirm.setVisible(look.answer is not None)

    # -------------------------------------------------------------------- inner

    def _confirm(self) -> None:
        if self._answer is not None:
            self.columns = self._answer
            self.confirmed.emit()

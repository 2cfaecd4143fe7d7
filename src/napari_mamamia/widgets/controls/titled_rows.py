"""`TitledRows`: base class of simple table models with titled columns."""

from typing import Any, ClassVar

from qtpy.QtCore import QAbstractTableModel, QModelIndex, Qt


class TitledRows(QAbstractTableModel):
    """A table model whose columns have a title and a tooltip; subclasses implement `data`.

    Attributes
    ----------
    titles
        The (title, tooltip) pair of each column.
    rows
        The data of each row.
    """

    titles: ClassVar[tuple[tuple[str, str], ...]] = ()

    def __init__(self) -> None:
        super().__init__()
        self.rows: tuple[Any, ...] = ()

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of rows."""
        return 0 if parent is not None and parent.isValid() else len(self.rows)

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of columns."""
        return 0 if parent is not None and parent.isValid() else len(self.titles)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's title or tooltip."""
        if orientation is not Qt.Orientation.Horizontal:
            return None
        title, tip = self.titles[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return title
        return tip if role == Qt.ItemDataRole.ToolTipRole else None

"""What of our widgets is cut or cannot be reached: run inside the started program, by the spy.

`faults(roots)` walks the visible widgets below some objectNames. A text that is wider or higher
than its place is cut; a control that cannot be scrolled to, or whose middle is another widget's,
cannot be reached; one with a side under 24 pixels is hard to hit (WCAG 2.2, 2.5.8).

`unseen_next_steps(roots)` names what a page asks for next and does not show unscrolled.

`tab_stops(root)` presses Tab until the keyboard leaves a root.
"""

from qtpy.QtCore import QEvent, QPoint, QRect, QSize, Qt
from qtpy.QtGui import QKeyEvent, QTextDocument, QTextLayout
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QCheckBox,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPushButton,
    QRadioButton,
    QScrollArea,
    QScrollBar,
    QStyle,
    QStyleOptionButton,
    QStyleOptionComboBox,
    QTabBar,
    QTableView,
    QToolButton,
    QWidget,
)

SLACK = 1
LEAST_TARGET = 24
CONTROLS = (
    QAbstractButton,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QAbstractItemView,
    QTabBar,
)


def faults(roots):
    """Return one line for each cut text and each control out of reach."""
    found = []
    for root in QApplication.allWidgets():
        if root.objectName() in roots and root.isVisible():
            found += window_faults(root)
            for widget in [root, *root.findChildren(QWidget)]:
                if widget.isVisible() and not isinstance(widget, QScrollBar | QHeaderView):
                    found += faults_of(widget)
            scroll_back(root)
    return found


def unseen_next_steps(roots):
    """Return one line for each primary button that is not whole on the screen before scrolling."""
    found = []
    for root in QApplication.allWidgets():
        if root.objectName() in roots and root.isVisible():
            scroll_back(root)
            for control in root.findChildren(QAbstractButton):
                seen = control.visibleRegion().boundingRect().size()
                if control.property("primary") and control.isVisible() and seen != control.size():
                    found.append(f"{control.objectName()}: {size(seen)} of {size(control.size())}")
    return found


def window_faults(root):
    window = root.window()
    screen = window.screen().availableGeometry()
    inside = screen.contains(window.frameGeometry())
    return [] if inside else [f"window {window.frameGeometry().getRect()} beyond the screen"]


def faults_of(widget):
    name = widget.objectName() or f"{type(widget).__name__} in {owner(widget)}"
    of_widget = (*text_faults(widget), *reach_faults(widget), *room_faults(widget))
    return [f"{name}: {what}" for what in of_widget]


def owner(widget):
    while widget is not None and not widget.objectName():
        widget = widget.parentWidget()
    return "" if widget is None else widget.objectName()


def room_faults(area):
    """Return that an area scrolls beside room that nothing has."""
    layout = area.parentWidget() and area.parentWidget().layout()
    if not isinstance(area, QScrollArea) or layout is None:
        return []
    items = [layout.itemAt(at) for at in range(layout.count())]
    spare = sum(item.geometry().height() for item in items if item.spacerItem())
    hidden = area.verticalScrollBar().maximum()
    return [f"scrolls by {hidden} with {spare} to spare"] if 0 < hidden <= spare else []


def scroll_back(root):
    for area in root.findChildren(QScrollArea):
        for bar in (area.horizontalScrollBar(), area.verticalScrollBar()):
            bar.setValue(0)


# ------------------------------------------------------------------------ text


def text_faults(widget):
    if isinstance(widget, QLabel):
        return label_faults(widget)
    if isinstance(widget, QAbstractButton):
        return button_faults(widget)
    if isinstance(widget, QComboBox):
        return combo_faults(widget)
    if isinstance(widget, QLineEdit):
        return line_faults(widget)
    if isinstance(widget, QTableView):
        return table_faults(widget)
    return []


def label_faults(label):
    text = QLabel.text(label)  # with the breaks that long words have
    if not text or not label.pixmap().isNull():
        return []
    if label.property("elided") and text in label.toolTip():
        return []  # shortened in its middle, and its tooltip has all
    room = label.contentsRect().size() - QSize(2 * label.margin(), 2 * label.margin())
    needed = needed_size(label, text, room.width())
    if needed.width() > room.width() + SLACK or needed.height() > room.height() + SLACK:
        return [f"text {text!r} needs {size(needed)}, has {size(room)}"]
    return []


def needed_size(label, text, width):
    rich = label.textFormat() == Qt.TextFormat.RichText or (
        label.textFormat() == Qt.TextFormat.AutoText and Qt.mightBeRichText(text)
    )
    if rich:
        document = QTextDocument()
        document.setDefaultFont(label.font())
        document.setDocumentMargin(0)
        document.setHtml(text)
        if label.wordWrap():
            document.setTextWidth(width)
        return QSize(int(document.idealWidth()), int(document.size().height()))
    if not label.wordWrap():
        return label.fontMetrics().size(0, text)
    wide = high = 0
    for paragraph in text.split("\n"):
        layout = QTextLayout(paragraph, label.font())
        layout.beginLayout()
        while (line := layout.createLine()).isValid():
            line.setLineWidth(width)
            wide = max(wide, int(line.naturalTextWidth()))
            high += label.fontMetrics().lineSpacing()
        layout.endLayout()
    return QSize(wide, high)


def size(of):
    return f"{of.width()} x {of.height()}"


def button_faults(button):
    text = button.text().replace("&", "")
    if not text or (isinstance(button, QToolButton) and text in button.toolTip()):
        return []  # Qt shortens a tool button's text by dots, and its tooltip has all
    needed = button.fontMetrics().size(0, text)
    room = button_room(button)
    icon = 0 if button.icon().isNull() else button.iconSize().width() + 2
    if (
        needed.width() + icon > room.width() + 2 * SLACK
        or needed.height() > room.height() + 2 * SLACK
    ):
        return [f"button {text!r} needs {size(needed)} and icon {icon}, has {size(room)}"]
    return []


def button_room(button):
    kinds = {
        QPushButton: QStyle.SubElement.SE_PushButtonContents,
        QCheckBox: QStyle.SubElement.SE_CheckBoxContents,
        QRadioButton: QStyle.SubElement.SE_RadioButtonContents,
    }
    for kind, part in kinds.items():
        if isinstance(button, kind):
            option = QStyleOptionButton()
            button.initStyleOption(option)
            room = button.style().subElementRect(part, option, button)
            return QSize(room.width(), button.height())
    return button.contentsRect().size()


def combo_faults(combo):
    if combo.isEditable():
        return []
    option = QStyleOptionComboBox()
    combo.initStyleOption(option)
    room = combo.style().subControlRect(
        QStyle.ComplexControl.CC_ComboBox, option, QStyle.SubControl.SC_ComboBoxEditField, combo
    )
    needed = combo.fontMetrics().horizontalAdvance(combo.currentText())
    if needed > room.width() + SLACK:
        return [f"choice {combo.currentText()!r} needs {needed}, has {room.width()}"]
    return []


def line_faults(line):
    is_number = isinstance(line.parent(), QAbstractSpinBox)
    text = line.text()
    if is_number:
        needed = line.fontMetrics().horizontalAdvance(text)
        room = line.contentsRect().width() - 4
        if needed > room + SLACK:
            return [f"number {text!r} needs {needed}, has {room}"]
    return []


def table_faults(table):
    model, found = table.model(), []
    if model is None:
        return found
    if not table.horizontalHeader().isHidden():
        found += header_faults(table, model)
    for row in range(min(model.rowCount(), 12)):
        for column in range(model.columnCount()):
            index = model.index(row, column)
            text = str(index.data() or "")
            if table.isColumnHidden(column) or not any(c.isdigit() for c in text):
                continue
            needed = table.sizeHintForIndex(index).width()
            if needed > table.columnWidth(column) + SLACK:
                found.append(f"cell {text!r} needs {needed}, has {table.columnWidth(column)}")
    return found


def header_faults(table, model):
    found = []
    header = table.horizontalHeader()
    for column in range(model.columnCount()):
        text = str(model.headerData(column, Qt.Orientation.Horizontal) or "")
        needed = header.fontMetrics().horizontalAdvance(text)
        if not table.isColumnHidden(column) and needed > header.sectionSize(column) + SLACK:
            found.append(f"title {text!r} needs {needed}, has {header.sectionSize(column)}")
    return found


# ----------------------------------------------------------------------- reach


def reach_faults(widget):
    if not isinstance(widget, (*CONTROLS, QLabel)) or widget.width() <= 1:
        return []
    if isinstance(widget.parentWidget(), QAbstractSpinBox | QComboBox | QTabBar):
        return []
    areas = scroll_to(widget)
    seen = widget.visibleRegion().boundingRect()
    if seen.isEmpty():
        return ["out of reach: nothing of it can be seen"]
    room = widget.rect()
    for area in areas:
        room = room.intersected(QRect(QPoint(0, 0), area.viewport().size()))
    if seen.width() < room.width() - SLACK or seen.height() < room.height() - SLACK:
        return [f"seen {size(seen.size())} of {size(widget.size())}"]
    if isinstance(widget, QTabBar):
        return tab_faults(widget)
    if not isinstance(widget, CONTROLS):
        return []
    small = min(widget.width(), widget.height()) < LEAST_TARGET
    return [f"only {size(widget.size())}"] * small + hit_faults(widget, seen.center())


def scroll_to(widget):
    areas, parent = [], widget.parentWidget()
    while parent is not None:
        if isinstance(parent, QScrollArea) and parent.widget() is not None:
            if parent.widget().isAncestorOf(widget):
                for corner in (widget.rect().bottomRight(), widget.rect().topLeft()):
                    place = widget.mapTo(parent.widget(), corner)
                    parent.ensureVisible(place.x(), place.y(), 0, 0)
            areas.append(parent)
        elif isinstance(parent, QAbstractScrollArea):
            areas.append(parent)
        parent = parent.parentWidget()
    return areas


def hit_faults(widget, place):
    hit = QApplication.widgetAt(widget.mapToGlobal(place))
    if hit is not None and (hit is widget or widget.isAncestorOf(hit)):
        return []
    other = "nothing" if hit is None else hit.objectName() or type(hit).__name__
    return [f"a click on its middle goes to {other}"]


def tab_faults(tabs):
    arrows = [b for b in tabs.findChildren(QAbstractButton) if b.isVisible()]
    found = []
    for at in filter(tabs.isTabVisible, range(tabs.count())):
        whole = tabs.rect().contains(tabs.tabRect(at).center())
        if not whole and not arrows:
            found.append(f"tab {tabs.tabText(at)!r} is out of reach")
        if tabs.fontMetrics().horizontalAdvance(tabs.tabText(at)) > tabs.tabRect(at).width():
            found.append(f"tab {tabs.tabText(at)!r} is cut")
    return found


# ------------------------------------------------------------------------ keyboard


def tab_stops(root_name):
    """Return name, place and area of what Tab stops at in a root, from its first stop to its last.

    Shift+Tab finds the first one. Raises `AssertionError` where Tab leaves a control out or goes
    round for ever.
    """
    root = next(
        w for w in QApplication.allWidgets() if w.objectName() == root_name and w.isVisible()
    )
    inside = [w for w in root.findChildren(QWidget) if is_stop(w)]
    first = min(inside, key=lambda w: (place_in(root, w)[1] // LEAST_TARGET, place_in(root, w)[0]))
    first.setFocus(Qt.FocusReason.TabFocusReason)
    while press_tab(Qt.Key.Key_Backtab) and root.isAncestorOf(QApplication.focusWidget()):
        first = QApplication.focusWidget()
    first.setFocus(Qt.FocusReason.TabFocusReason)
    stops = []
    while root.isAncestorOf(QApplication.focusWidget()):
        now = QApplication.focusWidget()
        stops.append(now)
        assert len(stops) <= len(inside), f"Tab goes round: {[owner(w) for w in stops]}"
        press_tab(Qt.Key.Key_Tab)
        if QApplication.focusWidget() is now:
            break
    missing = [owner(w) for w in inside if w not in stops and is_stop(w)]
    assert not missing, f"Tab leaves out {missing}"
    scroll_back(root)  # pages scroll on the way
    return [[owner(stop), place_in(root, stop), place_of_area(root, stop)] for stop in stops]


def is_stop(widget):
    policy = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
    tabbed = policy == Qt.FocusPolicy.TabFocus and widget.focusProxy() is None
    return tabbed and widget.isVisible() and widget.isEnabled()


def place_in(root, widget):
    corner = widget.mapTo(root, QPoint(0, 0))
    return [corner.x(), corner.y(), widget.width(), widget.height()]


def place_of_area(root, widget):
    """Return where the area stands that a widget is scrolled in, or its own place without one."""
    parent = widget.parentWidget()
    while parent is not root and not isinstance(parent, QScrollArea):
        parent = parent.parentWidget()
    return place_in(root, widget if parent is root else parent)


def press_tab(key):
    before = QApplication.focusWidget()
    for kind in (QEvent.Type.KeyPress, QEvent.Type.KeyRelease):
        event = QKeyEvent(kind, key, Qt.KeyboardModifier.NoModifier)
        QApplication.sendEvent(before, event)
    return QApplication.focusWidget() is not before

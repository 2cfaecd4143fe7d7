"""What comes out on a page is scrolled to, also where its height is known only turns later."""

from qtpy.QtWidgets import QLabel, QScrollArea, QVBoxLayout, QWidget

from napari_mamamia.widgets.controls.revealing import reveal


def _make_page(qtbot) -> tuple[QScrollArea, QWidget, QLabel]:
    area, page, answer = QScrollArea(), QWidget(), QLabel("the answer")
    area.setWidgetResizable(True)
    layout = QVBoxLayout(page)
    for number in range(30):
        layout.addWidget(QLabel(f"line {number}"))
    layout.addWidget(answer)
    area.setWidget(page)
    area.resize(200, 150)
    qtbot.addWidget(area)
    area.show()
    qtbot.waitExposed(area)
    return area, page, answer


def test_what_grows_turns_later_is_in_sight(qtbot):
    area, page, answer = _make_page(qtbot)
    answer.hide()
    reveal(answer)  # as a page does that shows and fills it later
    qtbot.wait(50)
    assert area.verticalScrollBar().value() == 0
    answer.show()
    answer.setText("\n".join("one more line" for _ in range(4)))
    qtbot.waitUntil(lambda: answer.visibleRegion().boundingRect().height() == answer.height())
    page.layout().insertWidget(0, QLabel("\n".join("above" for _ in range(20))))
    qtbot.waitUntil(lambda: answer.visibleRegion().boundingRect().height() == answer.height())


def test_a_control_that_goes_meanwhile_is_no_trouble(qtbot):
    _area, page, answer = _make_page(qtbot)
    reveal(answer)
    answer.setParent(None)
    answer.deleteLater()
    page.layout().insertWidget(0, QLabel("\n".join("above" for _ in range(20))))
    qtbot.wait(100)


def test_what_lies_in_nothing_that_scrolls_stays(qtbot):
    alone = QLabel("alone")
    qtbot.addWidget(alone)
    reveal(alone)
    assert alone.children() == []

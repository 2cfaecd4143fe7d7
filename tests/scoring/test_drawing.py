"""Figures of a report are drawn once."""

from matplotlib.figure import Figure

from napari_mamamia.scoring.report.drawing import Drawing, Drawn, draw_each_once, draw_now


def make_figure(width: float) -> Figure:
    return Figure(figsize=(width, 1.0))


def test_an_equal_figure_is_drawn_once_and_another_one_anew():
    asked = []

    def draw(drawing: Drawing) -> Drawn:
        asked.append((drawing.arguments, drawing.has_svg))
        return Drawn(str(len(asked)).encode())

    draw_once = draw_each_once(draw)
    first = draw_once(Drawing(make_figure, (2.0,)))
    assert draw_once(Drawing(make_figure, (2.0,))) is first
    assert draw_once(Drawing(make_figure, (3.0,))).png == b"2"
    assert draw_once(Drawing(make_figure, (2.0,), has_svg=False)).png == b"3"
    assert asked == [((2.0,), True), ((3.0,), True), ((2.0,), False)]


def test_a_figure_for_a_page_is_no_png():
    figure = draw_now(Drawing(make_figure, (2.0,), has_png=False))
    assert figure.png == b""
    assert figure.svg.startswith("<svg")

import pytest

from napari_mamamia.widgets.controls.colours import ERROR_COLOURS, MASK_COLOURS, WARNING_COLOURS


def luminance(hexadecimal):
    """Relative luminance as WCAG 2.1 defines it."""
    channels = [int(hexadecimal[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_black_on_white_has_the_known_contrast():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("colours", [WARNING_COLOURS, ERROR_COLOURS])
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_messages_can_be_read_on_naparis_backgrounds(colours, theme):
    from napari.utils.theme import get_theme

    background = get_theme(theme).background.as_hex("long")
    assert contrast(colours[theme], background) >= 4.5


def test_masks_have_the_okabe_ito_colours():
    assert MASK_COLOURS == {
        "reference": "#56B4E9",
        "prediction": "#E69F00",
        "reading A": "#56B4E9",
        "reading B": "#E69F00",
        "refined": "#009E73",
    }

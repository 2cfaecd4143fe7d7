"""Every setting explains itself, is checked, and reaches the provenance."""

import math

import pytest

from napari_mamamia.segmentation.kinetic.kinetic_settings import (
    BreastSettings,
    KineticSettings,
    described,
    values_of,
)


def test_every_setting_has_meaning_source_and_a_default_within_its_range():
    for info in described(KineticSettings()):
        assert info.about, info.name
        assert info.source, info.name
        assert info.low <= info.default <= info.high, info.name
        assert info.low < info.high, info.name


def test_settings_of_the_breast_mask_are_listed_under_their_own_names():
    names = [info.name for info in described(KineticSettings())]
    assert "skin_mm" in names
    assert "enhancement_percent" in names
    assert len(names) == len(set(names))


def test_values_are_those_set_and_not_the_defaults():
    chosen = KineticSettings(enhancement_percent=65.0, breast=BreastSettings(skin_mm=2.0))
    values = dict(values_of(chosen))
    assert values["enhancement_percent"] == 65.0
    assert values["skin_mm"] == 2.0


@pytest.mark.parametrize("name", [info.name for info in described(KineticSettings())])
def test_every_setting_out_of_range_is_refused_by_name(name):
    (info,) = (info for info in described(KineticSettings()) if info.name == name)
    kind = BreastSettings if name in BreastSettings.__dataclass_fields__ else KineticSettings
    for wrong in (info.high * 1.01 + 1, math.nan):
        with pytest.raises(ValueError, match=name):
            kind(**{name: wrong})


def test_settings_cannot_be_changed():
    with pytest.raises(AttributeError):
        KineticSettings().enhancement_percent = 1.0

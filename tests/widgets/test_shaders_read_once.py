"""The variables of a program's shaders are what vispy finds in them, looked for once."""

import re

import pytest
from vispy.gloo import program as vispy_program

from napari_mamamia.widgets.adapter.drawing import read_shaders_once

VERTEX = "attribute vec2 a_place; // uniform int u_no;\nvarying vec3 v_tint;\nvoid main() {}"
FRAGMENT = "uniform sampler2D u_picture;\nuniform float u_rows[2];\nvoid main() {}"
OTHER = "uniform vec4 u_tint;\nvoid main() {}"


@pytest.fixture
def looks(monkeypatch):
    """Return the list of texts that vispy looks through; programs are vispy's own at first."""
    real = vispy_program.Program._parse_variables_from_code
    monkeypatch.setattr(vispy_program.Program, "_parse_variables_from_code", real)
    read_shaders_once.__wrapped__.cache_clear()
    texts = []
    find = re.finditer

    def note(pattern, text, *flags):
        texts.append(text)
        return find(pattern, text, *flags)

    monkeypatch.setattr(vispy_program.re, "finditer", note)
    yield texts
    read_shaders_once.__wrapped__.cache_clear()


def test_equal_shaders_are_read_once_and_each_program_has_its_own_variables(looks):
    read_shaders_once()
    first, second = (vispy_program.Program(VERTEX, FRAGMENT) for _ in range(2))
    n_looks = len(looks)
    other = vispy_program.Program(VERTEX, OTHER)
    assert n_looks == len(vispy_program.REGEX_VAR) == len(looks) - n_looks
    assert sorted(first.variables) == sorted(second.variables) == [
        ("attribute", "vec2", "a_place"),
        ("uniform", "float", "u_rows[0]"),
        ("uniform", "float", "u_rows[1]"),
        ("uniform", "sampler2D", "u_picture"),
        ("uniform_array", "float", "u_rows"),
        ("varying", "vec3", "v_tint"),
    ]  # fmt: skip
    assert ("uniform", "vec4", "u_tint") in other.variables
    second._code_variables.clear()
    assert len(first.variables) == len(vispy_program.Program(VERTEX, FRAGMENT).variables) == 6


def test_a_value_that_was_given_before_the_shaders_is_taken_with_them(looks):
    read_shaders_once()
    for _ in range(2):
        program = vispy_program.Program()
        program["u_tint"] = 1.0, 0.0, 0.0, 1.0
        program.set_shaders(VERTEX, OTHER)
        assert list(program["u_tint"]) == [1.0, 0.0, 0.0, 1.0]

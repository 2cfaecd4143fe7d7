"""The compiled steps of the cut: numpy's bits, and numpy where numba is absent or broken."""

import importlib
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from napari_mamamia.core.edits import Action, Brush, Tool
from napari_mamamia.phantom import PhantomSpec, make_phantom
from napari_mamamia.smartpaint import grow
from napari_mamamia.smartpaint.brush.features import measure_features
from napari_mamamia.smartpaint.evidence.stroke import prepare_stroke, preview_stroke, settle_stroke
from napari_mamamia.smartpaint.grow import compiled, cut

NUMBA = find_spec("numba") is not None
needs_numba = pytest.mark.skipif(not NUMBA, reason="numba is not installed (extra: fast)")


@pytest.fixture(autouse=True)
def begun_anew(monkeypatch, tmp_path):
    """No test finds what another compiled, or leaves it to the next ones."""
    monkeypatch.setenv("MAMAMIA_CACHE_DIR", str(tmp_path / "cache"))
    forget_steps(monkeypatch)
    yield
    compiled._begin_once.cache_clear()


def forget_steps(monkeypatch):
    compiled._begin_once.cache_clear()
    monkeypatch.delitem(sys.modules, f"{grow.__name__}.cut_steps", raising=False)
    monkeypatch.delattr(grow, "cut_steps", raising=False)


@pytest.fixture(scope="module")
def kept_code(tmp_path_factory):
    """Machine code of all tests: it is compiled once."""
    return tmp_path_factory.mktemp("code")


@pytest.fixture
def with_numba(monkeypatch, kept_code):
    monkeypatch.setenv("MAMAMIA_CACHE_DIR", str(kept_code))
    assert compiled.wait_for_steps()


def random_energy(rng, shape):
    """Costs from none to high, many voxels without freedom, whole rows and planes of them."""
    weights = tuple(
        (
            rng.random(tuple(n - (a == axis) for a, n in enumerate(shape)))
            * rng.choice([0.1, 1, 10])
        ).astype(np.float32)
        for axis in range(3)
    )
    evidence = (4 * rng.normal(size=shape)).astype(np.float32)
    inside, outside = (rng.random(shape) < share for share in rng.random(2))
    axis = int(rng.integers(3))
    outside.swapaxes(0, axis)[: int(rng.integers(shape[axis] + 1))] = True
    lowest = inside.astype(np.float32)
    highest = np.maximum(lowest, (~outside).astype(np.float32))
    return cut.Energy(evidence, weights, lowest, highest), rng.random(shape).astype(np.float32)


def random_shape(rng, longest):
    shape = rng.integers(1, longest + 1, 3)
    shape[rng.random(3) < 0.15] = 1
    return tuple(shape.tolist())


def relaxed_by_numpy(energy, start, n_steps):
    compiled._begin_once.cache_clear()
    return cut.relax(energy, start, n_steps)


def is_taken():
    return compiled.find_steps() is not None


# ------------------------------------------------------------------ the same bits


@pytest.fixture
def as_python(monkeypatch):
    """The steps as Python runs them: what they compute, wherever numba is not installed."""

    class Type:
        def __getitem__(self, _):
            return self

    numba = ModuleType("numba")
    numba.config = SimpleNamespace(CACHE_DIR="")
    numba.float32 = numba.uint64 = Type()
    numba.void = lambda *_: None
    numba.types = SimpleNamespace(UniTuple=lambda *_: None)
    numba.njit = lambda *_, **__: lambda function: function
    numba.__spec__ = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "numba", numba)
    assert compiled.wait_for_steps()


def test_the_steps_are_numpys_where_python_runs_them(as_python):
    rng, cases = np.random.default_rng(1), []
    for _ in range(40):
        energy, start = random_energy(rng, random_shape(rng, 6))
        n_steps = int(rng.integers(5))
        assert is_taken()
        cases.append((energy, start, n_steps, cut.relax(energy, start, n_steps)))
    for energy, start, n_steps, found in cases:
        np.testing.assert_array_equal(found, relaxed_by_numpy(energy, start, n_steps))


def test_steps_of_free_voxels_alone_are_those_of_all(monkeypatch):
    """Few free voxels or many, at borders and alone, in any layout."""
    rng = np.random.default_rng(4)
    for number in range(300):
        energy, start = random_energy(rng, random_shape(rng, 14))
        if number % 3 == 0:
            energy = cut.Energy(
                np.asfortranarray(energy.evidence),
                tuple(np.asfortranarray(weight) for weight in energy.weights),
                np.asfortranarray(energy.lowest),
                np.asfortranarray(energy.highest),
            )
        n_steps = int(rng.integers(15))
        monkeypatch.setattr(cut, "_FEW", 0)
        alone = cut.relax(energy, start, n_steps)
        monkeypatch.setattr(cut, "_FEW", 10**9)
        np.testing.assert_array_equal(alone, cut.relax(energy, start, n_steps))


@needs_numba
def test_compiled_steps_give_numpys_bits_on_random_boxes(with_numba):
    rng, cases = np.random.default_rng(2), []
    for number in range(300):
        energy, start = random_energy(rng, random_shape(rng, 70 if number % 10 == 0 else 20))
        n_steps = int(rng.integers(15))
        assert is_taken()
        cases.append((energy, start, n_steps, cut.relax(energy, start, n_steps)))
    for energy, start, n_steps, found in cases:
        np.testing.assert_array_equal(found, relaxed_by_numpy(energy, start, n_steps))


@needs_numba
def test_compiled_steps_take_arrays_in_any_order_and_leave_the_start(with_numba):
    rng = np.random.default_rng(3)
    energy, start = random_energy(rng, (9, 14, 11))
    turned = cut.Energy(
        np.asfortranarray(energy.evidence),
        tuple(np.asfortranarray(weight) for weight in energy.weights),
        np.asfortranarray(energy.lowest),
        np.asfortranarray(energy.highest),
    )
    before = start.copy()
    found = cut.relax(turned, np.asfortranarray(start), 12)
    np.testing.assert_array_equal(start, before)
    np.testing.assert_array_equal(found, relaxed_by_numpy(energy, start, 12))


@needs_numba
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("part", ["evidence", "weight"])
def test_what_is_no_number_is_left_to_numpy(with_numba, bad, part):
    energy, start = random_energy(np.random.default_rng(4), (6, 7, 8))
    (energy.evidence if part == "evidence" else energy.weights[1])[2, 3, 4] = bad
    with np.errstate(invalid="ignore"):
        found = cut.relax(energy, start, 6)
        np.testing.assert_array_equal(found, relaxed_by_numpy(energy, start, 6))


@needs_numba
def test_compiled_steps_give_equal_bits_in_four_threads(with_numba):
    rng = np.random.default_rng(5)
    cases = [random_energy(rng, (20, 30, 25)) for _ in range(12)]
    with ThreadPoolExecutor(4) as pool:
        abreast = list(pool.map(lambda case: cut.relax(*case, 12), cases))
    assert is_taken()
    for case, found in zip(cases, abreast, strict=True):
        np.testing.assert_array_equal(found, relaxed_by_numpy(*case, 12))


def strokes_of(seed):
    """Three strokes with all that they leave, and their previews, on a phantom's tumour."""
    made = make_phantom(PhantomSpec(seed=seed))
    images, tumour = measure_features(made.case), made.reference.array
    labels, words = np.zeros(tumour.shape, np.uint8), np.zeros(tumour.shape, np.uint16)
    middle = np.argwhere(tumour).mean(axis=0)
    results = []
    for action, radius, whole, off in (
        (Action.ADD, 12.0, False, 0.0),
        (Action.ADD, 6.0, True, 5.0),
        (Action.ERASE, 8.0, False, -9.0),
    ):
        brush = Brush(tool=Tool.EVIDENCE, action=action, radius_mm=radius, whole=whole)
        path = (tuple((middle + np.array([0, 0, off])).tolist()),)
        work = prepare_stroke(images, labels, words, brush, path)
        settled, shown = settle_stroke(work), preview_stroke(work)
        results += [settled.labels, settled.words, shown.mask, np.array(settled.apart)]
        labels[settled.box.slices], words[settled.box.slices] = settled.labels, settled.words
    return results


@needs_numba
@pytest.mark.parametrize("seed", [1, 2])
def test_strokes_and_previews_are_the_same_with_and_without(with_numba, seed):
    found = strokes_of(seed)
    assert is_taken()
    compiled._begin_once.cache_clear()
    for with_it, without in zip(found, strokes_of(seed), strict=True):
        np.testing.assert_array_equal(with_it, without)


# --------------------------------------------------- when they are taken, and when not


def test_nothing_is_compiled_that_nobody_asked_for(monkeypatch):
    monkeypatch.setattr(compiled, "_compile_steps", lambda _: pytest.fail("compiled"))
    energy, start = random_energy(np.random.default_rng(6), (4, 5, 6))
    cut.relax(energy, start, 3)
    assert compiled.find_steps() is None


def test_without_numba_nothing_is_begun_and_nothing_said(monkeypatch, caplog):
    monkeypatch.setattr(compiled, "find_spec", lambda _: None)
    monkeypatch.setattr(compiled, "_compile_steps", lambda _: pytest.fail("compiled"))
    assert not compiled.wait_for_steps()
    assert caplog.text == ""


def test_a_stroke_does_not_wait_for_the_compiler(monkeypatch, as_python):
    compiled._begin_once.cache_clear()
    begun = []

    def compile_slowly(future):
        begun.append(True)
        time.sleep(0.5)
        future.set_result(None)

    monkeypatch.setattr(compiled, "_compile_steps", compile_slowly)
    compiled.prepare_steps()
    compiled.prepare_steps()
    energy, start = random_energy(np.random.default_rng(7), (4, 5, 6))
    before = time.perf_counter()
    cut.relax(energy, start, 3)
    assert time.perf_counter() - before < 0.3
    assert not compiled.wait_for_steps()
    assert begun == [True]


# --------------------------------------------------------------- numba that is broken


def assert_numpy_goes_on(caplog, told):
    assert not compiled.wait_for_steps()
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert told in record.getMessage()
    assert "so strokes are slower" in record.getMessage()
    energy, start = random_energy(np.random.default_rng(8), (5, 6, 7))
    np.testing.assert_array_equal(cut.relax(energy, start, 6), relaxed_by_numpy(energy, start, 6))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("raise ImportError('libLLVM.so: cannot open shared object file')", "libLLVM.so"),
        ("", "ImportError"),  # another package of that name, or half a removal
    ],
)
def test_numba_that_cannot_be_imported_is_said_and_numpy_goes_on(
    monkeypatch, caplog, tmp_path, text, told
):
    package = tmp_path / "site" / "numba"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(text)
    monkeypatch.syspath_prepend(package.parent)
    for name in [name for name in sys.modules if name.split(".")[0] == "numba"]:
        monkeypatch.delitem(sys.modules, name)
    importlib.invalidate_caches()
    assert_numpy_goes_on(caplog, told)


def test_a_compiler_that_fails_is_said_and_numpy_goes_on(monkeypatch, caplog, as_python):
    compiled._begin_once.cache_clear()

    def fail(*_, **__):
        raise RuntimeError("LLVM ERROR: out of memory")

    monkeypatch.setattr(sys.modules[f"{grow.__name__}.cut_steps"], "njit", fail)
    assert_numpy_goes_on(caplog, "LLVM ERROR")


@needs_numba
def test_machine_code_is_kept_in_the_users_cache_and_read_again(monkeypatch, tmp_path):
    before = sys.modules["numba"].config.CACHE_DIR if "numba" in sys.modules else ""
    assert compiled.wait_for_steps()
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.nb?")}
    assert {path.suffix for path in kept} == {".nbi", ".nbc"}
    assert before == sys.modules["numba"].config.CACHE_DIR
    forget_steps(monkeypatch)
    assert compiled.wait_for_steps()
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "cache").rglob("*.nb?")} == kept


@needs_numba
def test_damaged_machine_code_is_compiled_anew(monkeypatch, tmp_path, caplog):
    assert compiled.wait_for_steps()
    for path in (tmp_path / "cache").rglob("*.nb?"):
        path.write_bytes(path.read_bytes()[:40] + os.urandom(64))
    forget_steps(monkeypatch)
    assert compiled.wait_for_steps()
    assert caplog.text == ""
    energy, start = random_energy(np.random.default_rng(9), (8, 9, 10))
    found = cut.relax(energy, start, 12)
    np.testing.assert_array_equal(found, relaxed_by_numpy(energy, start, 12))


@needs_numba
def test_a_cache_that_cannot_be_written_costs_the_time_to_compile_alone(
    monkeypatch, tmp_path, caplog
):
    beside = Path(compiled.__file__).parent / "__pycache__"
    # Neither the user's cache nor any other place that numba would take; root writes everywhere.
    monkeypatch.setattr("numba.core.caching._CacheLocator.ensure_cache_path", refuse)
    assert compiled.wait_for_steps()
    assert is_taken()
    assert caplog.text == ""
    assert not list(beside.glob("cut_steps*.nb?"))


def refuse(_):
    raise PermissionError("read-only")

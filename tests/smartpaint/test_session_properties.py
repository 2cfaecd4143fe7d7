"""Whatever a reader does and whatever a solver answers: promises hold, every row comes back."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.edits import Action, Brush, Tool
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.brush.features import measure_features
from napari_mamamia.smartpaint.evidence.stroke import SettledStroke, settle_stroke
from napari_mamamia.smartpaint.session import history
from napari_mamamia.smartpaint.session.session import EditingSession

SHAPE = (6, 30, 30)
SPACING = (2.0, 1.0, 1.0)
GRID = Grid(SHAPE, np.diag([-1.0, 1.0, 2.0, 1.0]))
LABELS = (1, 2)
LOCKED = 3
CHECKS = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(5)
    signal = rng.normal(100, 8, (2, *SHAPE))
    signal[1, 1:5, 8:20, 8:20] += 90
    phases = tuple(Phase(k, time_s) for k, time_s in enumerate((0.0, 150.0)))
    return measure_features(Case("A", GRID, signal.astype(np.int16), phases))


@pytest.fixture
def many_keyframes(monkeypatch):
    """Whole states after every second step, so that short sessions go through them too."""
    monkeypatch.setattr(history, "_KEYFRAME_EVERY", 2)
    monkeypatch.setattr(history, "_MOST_KEYFRAMES", 3)
    monkeypatch.setattr(history, "_WORTH_STEPS", 0)


def state(session):
    """All bytes that a step may change."""
    arrays = [f(n) for n in LABELS for f in (session.state.words, session.state.membership)]
    return session.labels.tobytes(), *(array.tobytes() for array in arrays)


def draw(session, rng):
    brush = Brush(
        tool=Tool.EVIDENCE,
        action=Action.ADD if rng.random() < 0.6 else Action.ERASE,
        radius_mm=float(rng.uniform(0.5, 4)),
        label=int(rng.choice(LABELS)),
        whole=bool(rng.random() < 0.2),
    )
    session.press(tuple(rng.uniform(0, 1, 3) * SHAPE), brush)
    for _ in range(rng.integers(3)):
        session.drag(tuple(rng.uniform(0, 1, 3) * SHAPE))


def lie(work, rng):
    """Any result at all, of the right form."""
    labels, words = work.labels.copy(), work.words.copy()
    where = rng.random(work.box.shape) < rng.random()
    labels[where] = rng.integers(0, 5, np.count_nonzero(where))
    words[where] = rng.integers(0, 1 << 12, np.count_nonzero(where))
    return SettledStroke(work.box, labels, words, float(rng.random()))


def farthest_mm(changed, path):
    """Distance of the farthest changed voxel to a path, from many places on it: the slow way."""
    points = np.argwhere(changed) * SPACING
    corners = np.array(path) * SPACING
    pieces = zip(corners, [*corners[1:], corners[-1]], strict=True)
    places = np.concatenate([np.linspace(a, b, 400) for a, b in pieces])
    return max(
        (np.sqrt(((places - point) ** 2).sum(axis=1)).min() for point in points), default=0.0
    )


def require_promises(work, before, after):
    """What a stroke never does, by its label, its locks and its window."""
    changed, label = before != after, work.brush.label
    assert not changed[before == LOCKED].any()
    if work.brush.action is Action.ADD:
        assert (after[changed] == label).all()
    else:
        assert (before[changed] == label).all()
        assert (after[changed] == 0).all()
    if not work.brush.whole:
        assert farthest_mm(changed, work.path) <= 1.6 * work.brush.radius_mm + 4.0 + 0.05


def settle(session, rng, result):
    draw(session, rng)
    work = session.lift()
    if work is not None:
        before = session.labels.copy()
        session.settle(work, result(work))
        require_promises(work, before, session.labels)


def random_box(rng):
    z, y, x = (int(rng.integers(n - 3)) for n in SHAPE)
    return Box((z, y, x), (z + 3, y + 3, x + 3))


def lift_only(session, rng):
    """A stroke that whatever comes next has to settle."""
    draw(session, rng)
    session.lift()


def use_brush(session, rng):
    tool = Tool.SPHERE if rng.random() < 0.5 else Tool.SMOOTH
    brush = Brush(tool=tool, radius_mm=3.0, label=int(rng.choice(LABELS)))
    session.press(tuple(rng.uniform(0, 1, 3) * SHAPE), brush)
    session.release()


def paint_outside(session, rng):
    session.labels[random_box(rng).slices] = rng.integers(3)
    session.notice_external()


def apply_mask(session, rng):
    box = random_box(rng)
    session.apply("x", box, rng.random(box.shape) < 0.5, holds=bool(rng.random() < 0.5))


def jump(session, rng):
    session.record_pending()
    session.go_to(int(rng.integers(len(session.steps) + 1)))


ACTS = {
    "evidence": lambda session, rng: settle(session, rng, settle_stroke),
    "lie": lambda session, rng: settle(session, rng, lambda work: lie(work, rng)),
    "late": lift_only,
    "brush": use_brush,
    "outside": paint_outside,
    "apply": apply_mask,
    "forget": lambda session, rng: session.forget_marks(int(rng.choice(LABELS))),
    "jump": jump,
    "undo": lambda session, rng: session.undo(),
    "redo": lambda session, rng: session.redo(),
}


@pytest.mark.usefixtures("many_keyframes")
@settings(max_examples=40, deadline=None, suppress_health_check=CHECKS)
@given(
    kinds=st.lists(st.sampled_from(sorted(ACTS)), min_size=1, max_size=12),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_session_comes_back_to_each_of_its_states_to_the_byte(images, kinds, seed):
    rng = np.random.default_rng(seed)
    labels = np.zeros(SHAPE, np.uint8)
    labels[2:4, 10:20, 10:14], labels[:, :4] = 1, LOCKED
    session = EditingSession("A", GRID, labels, images, locked=frozenset({LOCKED}))
    states = {0: state(session)}

    def remember(_=None):
        states[session.position] = state(session)

    session.on_record = remember
    for kind in kinds:
        ACTS[kind](session, rng)
        session.record_pending()
        assert states[session.position] == state(session)
    n_steps = len(session.steps)
    for position in (*range(n_steps + 1), 0, n_steps, *rng.integers(0, n_steps + 1, 6)):
        session.go_to(int(position))
        assert state(session) == states[position]


@pytest.mark.parametrize("n", [100, pytest.param(10_000, marks=pytest.mark.night)])
def test_no_stroke_breaks_a_promise_and_none_repeats_otherwise(images, n):
    """Locality, sign, locks, exact repetition: 0 of 10,000 strokes (100 for each commit)."""
    rng = np.random.default_rng(n)
    session = EditingSession("A", GRID, np.zeros(SHAPE, np.uint8), images)
    erased = {label: np.zeros(SHAPE, bool) for label in LABELS}
    n_strokes = n_held_back = 0
    while n_strokes < n:
        if n_strokes % 25 == 0:
            session.apply_labels("empty", session.start_labels)
            for label in LABELS:
                session.forget_marks(label)
                erased[label][...] = False
        draw(session, rng)
        work = session.lift()
        if work is None:
            continue
        before = session.labels.copy()
        settled, again = settle_stroke(work), settle_stroke(work)
        assert settled.labels.tobytes() == again.labels.tobytes()
        assert settled.words.tobytes() == again.words.tobytes()
        step = session.settle(work, settled)
        n_held_back += step is not None and "voxels held back" in dict(step.edit.parameters)
        require_promises(work, before, session.labels)
        require_erased_stays(session.labels, before, erased[work.brush.label], work)
        n_strokes += 1
    assert n_held_back == 0  # the solver keeps them by itself


def require_erased_stays(after, before, erased, work):
    """What an erasing stroke took inside its circle comes back in an adding circle alone."""
    label, near = work.brush.label, circle_of(work)
    if work.brush.action is Action.ERASE:
        erased |= (before == label) & (after != label) & near
    else:
        assert not ((after == label) & (before != label) & erased & ~near).any()
        erased &= ~near


def circle_of(work):
    """Return the voxels within a stroke's radius of its path, from its pieces: the slow way."""
    z, y, x = np.meshgrid(*(np.arange(n) for n in SHAPE), indexing="ij")
    points = np.stack([z, y, x], axis=-1) * SPACING
    near = np.zeros(SHAPE, bool)
    corners = np.array(work.path) * SPACING
    for a, b in zip(corners, [*corners[1:], corners[-1]], strict=True):
        length = max(float((b - a) @ (b - a)), 1e-12)
        share = np.clip((points - a) @ (b - a) / length, 0, 1)[..., None]
        near |= ((points - a - share * (b - a)) ** 2).sum(axis=-1) <= (
            work.brush.radius_mm + 1e-4
        ) ** 2
    return near


def test_a_long_way_is_the_same_with_and_without_kept_states(images, monkeypatch):
    rng = np.random.default_rng(3)
    session = EditingSession("A", GRID, np.zeros(SHAPE, np.uint8), images)
    sphere = Brush(tool=Tool.SPHERE, radius_mm=2.0)
    states = [state(session)]
    for number in range(150):
        brush = sphere if number % 3 else sphere.inverted()
        session.press(tuple(rng.uniform(0, 1, 3) * SHAPE), replace(brush, label=1 + number % 2))
        if session.release() is not None:
            states.append(state(session))
    reads = []
    read = session.history._read_difference
    monkeypatch.setattr(
        session.history, "_read_difference", lambda entry: reads.append(entry) or read(entry)
    )
    for position in (0, len(states) - 1, 70, 3, 100, 0):
        reads.clear()
        session.go_to(position)
        assert state(session) == states[position]
        assert len(reads) <= 64
    session.undo()
    session.go_to(10)
    session.press((3.0, 15.0, 15.0), sphere)  # what was undone goes, kept states too
    session.release()
    assert all(position <= 11 for position in session.history._keyframes)

"""Whatever a reader does and whatever a solver answers: promises hold, every row comes back."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.edits import Action, Brush, Tool
from napari_mamamia.core.errors import CaseError
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
BALL = Brush(tool=Tool.SPHERE, radius_mm=2.5)
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


def undo_one(session, rng):
    """Take a lesion's last step back, wherever in the history; where others painted over it, no."""
    session.record_pending()
    before, position = state(session), session.position
    with suppress(CaseError):
        session.undo(int(rng.choice(LABELS)))
        return
    assert (state(session), session.position) == (before, position)


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
    "undo one": undo_one,
    "redo one": lambda session, rng: session.redo(int(rng.choice(LABELS))),
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


def test_each_lesion_goes_back_and_on_by_itself():
    """Against sessions that hold the strokes of one lesion alone: acts of 20 random readers."""
    n_redone = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        session = EditingSession("A", GRID, np.zeros(SHAPE, np.uint8), None)
        done, undone = {1: [], 2: []}, {1: [], 2: []}
        for _ in range(20):
            label = int(rng.choice(LABELS))
            act = rng.choice(["draw", "undo", "redo"], p=[0.4, 0.35, 0.25])
            if act == "draw":
                # lesion 1 in rows 3 to 9, lesion 2 in rows 21 to 27: neither reaches the other
                z, y, x = rng.uniform((1, 3, 3), (5, 9, 27))
                press = ((z, y + 18 * (label - 1), x), replace(BALL, label=label))
                done[label] += [press] * draw_sphere(session, *press)
            elif act == "undo":
                assert session.undoes_in(label) == bool(done[label])
                assert (session.undo(label) is None) == (not done[label])
                undone[label] += [done[label].pop()] if done[label] else []
            elif session.redoes_in(label):
                assert session.redo(label) is not None
                done[label].append(next(p for p in undone[label] if is_all(session, done, p)))
                n_redone += 1
            assert all(is_all(session, done, label=one) for one in LABELS)
    assert n_redone > 10


def is_all(session, done, more=None, label=None):
    """Whether a lesion is what its own strokes give, the one of `more` last."""
    label = label or more[1].label
    alone = EditingSession("A", GRID, np.zeros(SHAPE, np.uint8), None)
    for press in (*done[label], *([more] if more else [])):
        draw_sphere(alone, *press)
    is_same = np.array_equal(session.labels == label, alone.labels == label)
    return is_same and np.array_equal(session.state.words(label), alone.state.words(label))


def draw_sphere(session, place, brush):
    session.press(place, brush)
    return session.release() is not None


def test_the_last_step_of_a_lesion_is_done_again_where_it_was_taken_back():
    session = EditingSession("A", GRID, np.zeros(SHAPE, np.uint8), None)
    second = replace(BALL, label=2)
    for x, brush in ((5.0, BALL), (9.0, BALL), (25.0, second)):
        draw_sphere(session, (3.0, 10.0, x), brush)
    both = state(session)
    session.undo(1)
    session.undo(1)
    assert [step.name for step in session.steps[3:]] == [
        "undo (2 paint 2.5 mm (sphere))",
        "undo (1 paint 2.5 mm (sphere))",
    ]
    assert not (session.labels == 1).any()
    assert not session.undoes_in(1)
    assert session.undo(1) is None
    assert session.summary.undos == 2
    assert session.summary.tools == ("sphere",)
    session.redo(1)
    session.redo(1)
    assert state(session) == both
    assert not session.redoes_in(1)
    assert session.redo(1) is None
    # where another lesion has painted over it the step stays, with a reason
    draw_sphere(session, (3.0, 10.0, 9.0), second)
    over = state(session)
    with pytest.raises(CaseError, match="a later step changed these voxels"):
        session.undo(1)
    assert state(session) == over


@pytest.mark.parametrize("n", [60, pytest.param(10_000, marks=pytest.mark.night)])
def test_no_stroke_breaks_a_promise_and_none_repeats_otherwise(images, n):
    """Locality, sign, locks, exact repetition: 0 of 10,000 strokes (60 for each commit)."""
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

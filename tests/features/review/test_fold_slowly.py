"""The quick computation of where readings stand, against a slow one that knows the table alone."""

import random

import pytest
from tests.review_study import ORIGIN, SHA, Story, study

from napari_mamamia.features.review.core.review import ReadingMode, Role, Task
from napari_mamamia.features.review.rules.replay import ReplayMemory, replay_events
from napari_mamamia.features.review.rules.states import STEPS, CaseState, Scope

OTHER, MISSING = "b" * 64, "c" * 64
READERS = ("ana", "ben", "cem")


def tell_anything(rng, n_events, others=()):
    """A story of readers who do what comes to their mind, on computers whose clocks are wrong."""
    of = study(readers=READERS, mode=ReadingMode.INDEPENDENT)
    of = type(of)(
        **{name: getattr(of, name) for name in of.__slots__}
        | {"tasks": (*of.tasks, Task("ana", "c0001", 1))}
    )
    story = Story(of, masks=(SHA, OTHER))
    for _ in range(n_events):
        act = rng.choice(("claim", "start", "read", "note", "release", "read-again", *others))
        more = {"text": rng.choice(("x", 7))} if act == "note" else {}
        if act in ("read", "accept", "decide"):
            more["mask"] = rng.choice((SHA, OTHER, "", MISSING, 5))
            more["answers"] = rng.choice(("{}", '{"a":1}', ["a"]))
            more["active_s"] = rng.choice((5, True, "5"))
        if act not in ("claim", "start", "note"):
            more["reason"] = rng.choice(("why", " ", 3))
        if rng.random() < 0.3:
            more["occasion"] = rng.choice((0, 1, 1, True, [1], "0"))
        if rng.random() < 0.15:
            more["round"] = rng.choice((1, 2, "1", True, None))
        heads = [one[-1].hash for one in story.chains.values()]
        seen = None if rng.random() < 0.5 else rng.sample(heads, rng.randint(0, len(heads)))
        who = rng.choice((*READERS, *READERS, "jo", "eve"))
        case = rng.choice(("c0001", "c0001", "c0002", "c9999", None, 7))
        act = rng.choice((act, act, act, act, act, ["x"], "dance")) if rng.random() < 0.1 else act
        told = story.tell(who, "x", case, seen=seen, session=rng.choice("12"), **more)
        chain = next(one for one in story.chains.values() if one[-1] is told)
        chain[-1] = told._replace(body={**told.body, "act": act})
    return story


def shift_clocks(rng, chains):
    """The same events as computers with other clocks would have noted them, some of them twice."""
    chains = [
        [one._replace(at=one.at.replace("11-23", f"11-{day}")) for one in chain]
        for chain, day in zip(chains, rng.choices((23, 23, 23, 22, 24), k=len(chains)), strict=True)
    ]
    chains += rng.sample(chains, rng.randint(0, 2))
    rng.shuffle(chains)
    return chains


# ---------------------------------------------------------------------- the slow one


def order_slowly(events):
    """Again and again the earliest by its clock of those that need nothing that is left."""
    left, order = list(dict.fromkeys(one.hash for one in events)), []
    by_hash = {one.hash: one for one in events}
    while left:

        def is_next(digest):
            one = by_hash[digest]
            return not any(
                other in one.seen
                or (by_hash[other][:3] == one[:3] and by_hash[other].seq < one.seq)
                for other in left
                if other != digest
            )

        first = min(filter(is_next, left), key=lambda digest: by_hash[digest].at)
        left.remove(first)
        order.append(by_hash[first])
    return order


def text_of(body, name, missing=""):
    return body[name] if isinstance(body.get(name), str) else missing


def step_slowly(event, state, masks):
    """The step of the table that an event is, in round 1; None where it has none."""
    body, act = event.body, event.body["act"]
    mask = text_of(body, "mask")
    is_open = type(body.get("round", 1)) is int and body.get("round", 1) == 1
    is_there = act != "read" or not mask or mask in masks
    is_told = act != "read-again" or text_of(body, "reason").strip()
    if not (is_open and is_there and is_told):
        return None
    steps = (one for one in STEPS if one.scope is Scope.READING and one.act == act)
    return next((one for one in steps if state in one.sources), None)


def read_slowly(of, case, events, masks):
    """What the table says of readings: their states, what was read, what does not count.

    What was read twice is not in the table: it is the same, a conflict, or does not count.
    """
    roles = {one.reader_id: set(one.roles) for one in of.readers}
    slots = {(one.reader, one.occasion): {} for one in of.tasks if one.case == case}
    earlier, refused, twice = [], set(), set()
    for event in order_slowly(events):
        body, occasion = event.body, event.body.get("occasion", 0)
        act = body["act"]
        if event.reader in roles and act == "note":
            continue
        slot = slots.get((event.reader, occasion if type(occasion) is int else None))
        state = CaseState.NEW if slot is None else slot.get("state", CaseState.NEW)
        if slot is not None and (act, state) == ("read", CaseState.READ):
            twice.add(event.hash)
        step = None if slot is None else step_slowly(event, state, masks)
        if step is None:
            refused.add(event.hash)
            continue
        assert Role.READER in roles[event.reader]
        if "hash" in slot:
            earlier.append(slot["hash"])
        slot.clear()
        slot["state"] = step.target
        if act == "read":
            seconds = body["active_s"] if type(body["active_s"]) is int else -1
            slot |= {"hash": event.hash, "mask": text_of(body, "mask"), "active_s": seconds}
            slot["answers"] = text_of(body, "answers", "{}")
    return slots, earlier, refused - twice, twice


@pytest.mark.parametrize("seed", range(30))
def test_readings_stand_where_the_table_alone_says(seed):
    rng = random.Random(seed)
    story = tell_anything(rng, 60)
    chains = shift_clocks(rng, [*story.chains.values()])
    state = replay_events(story.study, ORIGIN, chains, story.masks.__contains__, story.check)
    told = {one.event.hash for one in (*state.refused, *state.waiting)}
    for view in state.cases:
        events = [one for chain in chains for one in chain if one.body.get("case") == view.key]
        read = read_slowly(story.study, view.key, events, story.masks)
        slots, earlier, refused, twice = read
        assert {(one.reader, one.occasion) for one in view.readings} == set(slots)
        for one in view.readings:
            slot = slots[one.reader, one.occasion]
            assert one.state is slot.get("state", CaseState.NEW)
            expected = ("", "", "{}", 0)
            if "hash" in slot:
                expected = (slot["hash"], slot["mask"], slot["answers"], slot["active_s"])
            assert (one.hash, one.mask, one.answers, one.active_s) == expected
        assert [one.hash for one in view.earlier] == earlier
        assert {one.hash for one in events} & told - twice == refused
        assert [one.hash for one in view.events] == [one.hash for one in order_slowly(events)]


@pytest.mark.parametrize("seed", range(10))
def test_what_is_remembered_of_an_earlier_look_changes_nothing(seed):
    rng = random.Random(seed)
    decisions = ("accept", "compare", "adjudicate", "decide", "reject", "reopen", "sign")
    story = tell_anything(rng, 60, decisions)
    whole = [*story.chains.values()]
    memory = ReplayMemory()
    for share in (0.3, 0.6, 0.6, 1.0):
        # the same events as other objects, as after a file was read anew
        chains = [[one._replace() for one in chain[: int(len(chain) * share)]] for chain in whole]
        parts = (story.study, ORIGIN, chains, story.masks.__contains__, story.check)
        assert replay_events(*parts, memory) == replay_events(*parts)

"""Where a case stands after its events: the table of steps, conflicts, rounds, signatures."""

import random
from dataclasses import replace

import pytest
from tests.review_study import ORIGIN, SHA, Story, study

from napari_mamamia.features.review.core.review import ReadingMode, Task
from napari_mamamia.features.review.rules.replay import replay_events
from napari_mamamia.features.review.rules.states import CaseState, lines_of_table

OTHER = "b" * 64


def agreed():
    """Both readers are done and their masks agree."""
    story = Story(masks=(SHA, OTHER))
    one, other = story.read("ana"), story.read("ben")
    story.tell("ben", "compare", of=[one.hash, other.hash], agrees=True)
    return story


def disputed():
    story = Story(masks=(SHA, OTHER))
    one, other = story.read("ana"), story.read("ben", mask=OTHER)
    because = ["Dice 0.61 below 0.7"]
    story.tell("ben", "compare", of=[one.hash, other.hash], agrees=False, because=because)
    return story


def whys(story):
    return [one.why for one in story.state().refused]


def test_a_case_goes_from_new_to_signed():
    story = Story()
    seen = [story.case().state]
    for reader, act, more in (
        ("ana", "claim", {}),
        ("ana", "start", {}),
        ("ana", "read", {"mask": SHA}),
    ):
        story.tell(reader, act, **more)
        seen.append(story.case().state)
    assert seen == ["new", "claimed", "in work", "second reading needed"]
    story.read("ben")
    assert story.case().state is CaseState.READ
    of = [one.hash for one in story.case().readings]
    story.tell("ben", "compare", of=of, agrees=True)
    assert story.case().state is CaseState.READ
    story.tell("lea", "accept", mask=SHA, choice="ana")
    assert story.case().state is CaseState.ACCEPTED
    decision = story.case().decision
    story.tell("lea", "key", None, key="k" * 64, proof="p")
    story.tell("lea", "sign", meaning="approver", subject=decision.hash, key="k" * 64)
    assert story.case().state is CaseState.SIGNED
    assert whys(story) == []


def test_what_disagrees_is_adjudicated_with_a_reason():
    story = disputed()
    assert story.case().state is CaseState.DISAGREES
    story.tell("jo", "decide", mask=SHA, reason="too early")
    assert whys(story) == ["decide is not possible in the state disagrees of the case"]
    story.tell("jo", "adjudicate")
    assert (story.case().state, story.case().adjudicator) == (CaseState.IN_ADJUDICATION, "jo")
    story.tell("jo", "decide", mask=SHA)
    story.tell("jo", "decide", mask=SHA, reason="the rim belongs to it", choice="ana")
    assert story.case().state is CaseState.ACCEPTED
    assert story.case().decision.reason == "the rim belongs to it"
    assert whys(story)[1:] == ["the event gives no reason"]


def test_a_hidden_repeat_counts_whatever_was_decided_of_its_case_and_moves_nothing():
    first = study()
    repeat = Task("ana", "c0001", 1)
    story = Story(replace(first, tasks=(*first.tasks, repeat)))
    of = [story.read(reader).hash for reader in ("ana", "ben")]
    story.tell("ana", "compare", of=of, agrees=False, because=["Dice 0.1 below 0.7"])
    story.read("ana", occasion=1)
    assert whys(story) == []
    story.tell("ana", "read-again", occasion=1, reason="the wrong side")
    story.read("ana", occasion=1)
    assert whys(story) == []
    assert story.case().state is CaseState.DISAGREES
    assert story.case().comparison.because == ("Dice 0.1 below 0.7",)
    assert [one.state for one in story.case().readings] == [CaseState.READ] * 3
    story.tell("ana", "read-again", reason="that of the first time is judged")
    assert whys(story) == ["the case already has the state disagrees"]


def test_a_panel_discusses_what_agrees_too():
    story = Story(study(mode=ReadingMode.PANEL))
    of = [story.read(reader).hash for reader in ("ana", "ben")]
    story.tell("ana", "compare", of=of, agrees=True)
    assert story.case().state is CaseState.DISAGREES


def test_the_second_look_waits_for_the_first_and_may_accept():
    story = Story(study(mode=ReadingMode.SECOND_LOOK))
    story.tell("ben", "claim")
    assert whys(story) == ["ana is the first reader and has not read the case yet"]
    story.read("ana")
    story.read("ben")
    story.tell("ana", "accept", mask=SHA)
    assert story.case().state is CaseState.READ
    story.tell("ben", "accept", mask=SHA, choice="ben")
    assert story.case().state is CaseState.ACCEPTED


@pytest.mark.parametrize(
    ("reader", "act", "more", "why"),
    [
        ("ana", "accept", {"mask": SHA}, "only a lead, an adjudicator"),
        ("ana", "reject", {"reason": "x"}, "the role reader does not allow this"),
        ("jo", "claim", {}, "the case is not assigned to this reader"),
        ("eve", "read", {"mask": SHA}, "the study has no reader 'eve'"),
        ("ana", "read", {"mask": SHA}, ""),
        ("ana", "start", {}, "start is not possible, because the reading is read"),
        ("ana", "claim", {"round": 2}, "the event belongs to round 2, but the case is in round 1"),
        ("ana", "read-again", {}, "the event gives no reason"),
        ("lea", "reopen", {"reason": "x"}, "reopen is not possible in the state read of the case"),
        (
            "ana",
            "compare",
            {"of": ["x"], "agrees": False},
            "does not refer to the current readings",
        ),
        ("ana", "dance", {}, "unknown action 'dance'"),
        ("ana", "claim", {"occasion": 1}, "the case is not assigned to this reader"),
        ("lea", "reassign", {"of": "ana", "to": "ben"}, "unknown action 'reassign'"),
    ],
)
def test_what_the_table_does_not_have_does_not_count_and_says_why(reader, act, more, why):
    story = agreed()
    before = story.case().state
    story.tell(reader, act, **more)
    assert story.case().state is before
    assert (whys(story) or [""])[-1].startswith(why) or why in whys(story)[-1]


@pytest.mark.parametrize(
    "body",
    [
        {"act": ["read"]},
        {"act": "read", "occasion": [1]},
        {"act": "compare", "of": 7, "because": {}, "values": []},
        {"act": "read", "round": "1", "mask": 5, "answers": []},
        {"act": {}},
        {"act": "sign", "meaning": ["author"]},
        {"act": "accept", "mask": ["x"], "answers": 1},
        {},
    ],
)
def test_a_body_of_another_form_is_refused_and_harms_nothing(body):
    story = agreed()
    event = story.tell("ana", "note", text="x")
    chain = story.chains[("ana", "1")]
    chain[-1] = event._replace(body={"case": "c0001", "round": 1, **body})
    assert story.case().state is CaseState.READ


def test_a_mask_that_is_not_there_yet_makes_its_reading_wait():
    story = Story(masks=())
    story.read("ana")
    state = story.state()
    assert state.case("c0001").state is CaseState.IN_WORK
    assert [one.why for one in state.waiting] == ["the mask is not in the store yet"]
    story.masks.add(SHA)
    assert story.case().state is CaseState.SECOND_READING
    assert story.state().waiting == ()


def test_two_who_decide_without_knowing_of_each_other_are_a_conflict_until_one_knows_both():
    story = disputed()
    story.tell("jo", "adjudicate")
    seen = [one[-1].hash for one in story.chains.values()]
    story.tell("jo", "decide", mask=SHA, reason="a", seen=seen)
    story.tell("lea", "decide", mask=OTHER, reason="b", seen=seen)
    state = story.state()
    assert state.case("c0001").state is CaseState.DISAGREES
    assert state.conflicts == (
        ("c0001", "decide and decide were decided independently of each other"),
    )
    story.tell("lea", "adjudicate")
    story.tell("lea", "decide", mask=OTHER, reason="both seen")
    assert story.state().conflicts == ()
    assert story.case().decision.mask == OTHER


def test_the_same_decision_twice_is_no_conflict():
    story = disputed()
    story.tell("jo", "adjudicate")
    seen = [one[-1].hash for one in story.chains.values()]
    story.tell("jo", "decide", mask=SHA, reason="a", seen=seen)
    story.tell("lea", "decide", mask=SHA, reason="b", seen=seen)
    assert (story.case().state, story.state().conflicts) == (CaseState.ACCEPTED, ())
    # the same mask, and other answers: neither may stand in silence
    story.tell("jo", "reopen", reason="again")
    for reader in ("ana", "ben"):
        story.read(reader, mask="", answers=f'{{"assessment":"{reader}"}}', round=2)
    seen = [one[-1].hash for one in story.chains.values()]
    for judge, answers in (("jo", '{"assessment":"2"}'), ("lea", '{"assessment":"5"}')):
        story.tell(judge, "accept", mask="", answers=answers, choice="ana", seen=seen, round=2)
    assert [text for _, text in story.state().conflicts] == [
        "accept and accept were decided independently of each other"
    ]


def test_one_reader_on_two_computers_is_a_conflict_if_the_masks_differ():
    story = Story(masks=(SHA, OTHER))
    story.tell("ana", "claim", seen=())
    story.tell("ana", "claim", seen=(), session="2")
    story.tell("ana", "read", mask=SHA, seen=())
    story.tell("ana", "read", mask=OTHER, seen=(), session="2")
    assert "on computers that were not synchronised" in story.state().conflicts[0][1]
    story.tell("ana", "read-again", reason="which one was it?")
    story.read("ana", mask=OTHER)
    assert story.state().conflicts == ()
    assert story.case().readings[0].mask == OTHER
    assert [one.mask for one in story.case().earlier] == [SHA]


def test_reopening_begins_a_round_and_keeps_what_was():
    story = agreed()
    story.tell("lea", "accept", mask=SHA)
    story.tell("lea", "reopen", reason="the wrong side was read")
    case = story.case()
    assert (case.state, case.round) == (CaseState.REOPENED, 2)
    assert [one.reader for one in case.earlier] == ["ana", "ben"]
    story.tell("ana", "claim")
    assert whys(story) == ["the event belongs to round 1, but the case is in round 2"]
    story.read("ana", round=2)
    assert story.case().state is CaseState.SECOND_READING
    story.tell("lea", "reject", round=2, reason="motion")
    assert story.case().state is CaseState.REJECTED
    assert [one.act for one in story.case().history] == ["accept", "reopen", "reject"]


def test_the_order_of_files_and_wrong_clocks_change_nothing():
    story = disputed()
    story.tell("jo", "adjudicate")
    story.tell("jo", "decide", mask=SHA, reason="a")
    expected = story.case()
    rng = random.Random(3)
    for shift in ("2026-11-20T", "2026-11-23T", "2026-11-25T"):
        chains = [
            [one._replace(at=one.at.replace("2026-11-23T", shift)) for one in chain]
            if name[0] == "ben"
            else chain
            for name, chain in story.chains.items()
        ]
        rng.shuffle(chains)
        state = replay_events(story.study, ORIGIN, chains, lambda mask: True, story.check)
        case = state.case("c0001")
        assert (case.state, case.decision) == (expected.state, expected.decision)
        assert state.refused == ()


def test_what_stands_in_two_files_counts_once():
    story = disputed()
    chains = [*story.chains.values(), *story.chains.values()]
    state = replay_events(story.study, ORIGIN, chains, lambda mask: True, story.check)
    assert (state.case("c0001").state, state.refused) == (CaseState.DISAGREES, ())


def signed(**more):
    story = agreed()
    story.tell("lea", "key", None, key="1" * 64, proof="p")
    story.tell("jo", "key", None, key="2" * 64, proof="p")
    story.tell("lea", "accept", mask=SHA)
    subject = story.case().decision.hash
    about = {"meaning": "approver", "subject": subject, "key": "2" * 64, **more}
    story.tell("jo", "sign", **about)
    return story


def test_a_signature_counts_once_a_lead_vouched_for_its_key():
    story = signed()
    (signature,) = story.case().signatures
    assert signature.why_not == "no lead has countersigned the key yet"
    assert story.case().state is CaseState.ACCEPTED
    story.tell("lea", "countersign", None, of="jo", key="2" * 64, by="1" * 64, signature="s")
    assert story.case().state is CaseState.SIGNED
    assert [one.by for one in story.state().keys] == ["lea", "lea"]


def test_a_revoked_key_signs_no_more_but_what_stands_stands():
    story = signed()
    story.tell("lea", "countersign", None, of="jo", key="2" * 64, by="1" * 64, signature="s")
    stand = [story.case().signatures[0].hash]
    about = {"of": "jo", "key": "2" * 64, "by": "1" * 64, "signature": "s", "reason": "lost"}
    story.tell("lea", "revoke", None, stand=stand, **about)
    assert story.case().state is CaseState.SIGNED
    story.tell("lea", "revoke", None, stand=[], **about)
    assert story.case().signatures[0].why_not == "the key was revoked"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"subject": "c" * 64}, "the signature does not refer to the current result"),
        ({"key": "3" * 64}, "the key does not belong to this reader"),
        ({"key": "1" * 64}, "the key does not belong to this reader"),
        ({"meaning": "friend"}, "unknown meaning of a signature 'friend'"),
        ({"meaning": "author"}, "the signature does not refer to the current result"),
    ],
)
def test_a_signature_of_something_else_does_not_count(more, why):
    story = signed(**more)
    assert (whys(story), story.case().signatures) == ([why], ())


def test_only_the_first_lead_s_key_needs_nobody_s_word():
    story = Story()
    story.tell("ana", "key", None, key="3" * 64, proof="p")
    story.tell("lea", "key", None, key="1" * 64, proof="p")
    story.tell("lea", "key", None, key="2" * 64, proof="p", session="2")
    assert [(one.reader, one.by) for one in story.state().keys] == [
        ("ana", ""),
        ("lea", "lea"),
        ("lea", ""),
    ]
    story.tell("jo", "countersign", None, of="ana", key="3" * 64, by="1" * 64, signature="s")
    assert whys(story) == ["only a lead may countersign or revoke another key"]


def test_a_case_that_the_study_has_not_is_told():
    story = Story()
    story.tell("ana", "claim", "c9999")
    assert whys(story) == ["the study has no case 'c9999'"]


def test_the_table_of_steps_is_a_table():
    lines = lines_of_table()
    assert len({line.count("|") for line in lines}) == 1
    assert all(state in "\n".join(lines) for state in CaseState)

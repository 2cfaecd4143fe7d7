"""Which keys count: leads bound or not, thieves with a key, words that cross, what stands."""

import random
from dataclasses import replace

import pytest
from tests.review_study import ORIGIN, Story, study

from napari_mamamia.core.errors import CaseError
from napari_mamamia.features.review.core.review import LeadKey, Meaning, Role, StudyReader
from napari_mamamia.features.review.rules.replay import replay_events

LEADS = ("lea", "jo", "max")
DIGITS = {"lea": "1", "jo": "2", "max": "3", "ana": "4", "thief": "9"}


def key_of(who):
    return DIGITS[who] * 64


class Keys(Story):
    """A study of leads, their keys bound in its file or told in it, and a reader with a key."""

    def __init__(self, n_leads=2, n_bound=2):
        people = [StudyReader(one, one.title(), (Role.LEAD,)) for one in LEADS[:n_leads]]
        readers = [*people, StudyReader("ana", "Ana"), StudyReader("ben", "Ben")]
        bound = tuple(LeadKey(one, key_of(one)) for one in LEADS[:n_bound])
        super().__init__(replace(study(), readers=tuple(readers), lead_keys=bound))
        for who in (*LEADS[n_bound:n_leads], "ana"):
            self.tell(who, "key", None, key=key_of(who), proof="p")

    def vouch(self, who, of, key="", by=""):
        about = {"of": of, "key": key or key_of(of), "by": by or key_of(who), "signature": "s"}
        return self.tell(who, "countersign", None, **about).hash

    def end(self, who, of, *stand, key="", by="", **more):
        about = {"of": of, "key": key or key_of(of), "by": by or key_of(who), "signature": "s"}
        about |= {"stand": list(stand), "reason": "stolen", "since": "", **more}
        return self.tell(who, "revoke", None, **about).hash

    def sign(self, who, key=""):
        """Ana's reading, signed; returns the event."""
        reading = next(
            one for one in self.case().readings if one.reader == who and one.state == "read"
        )
        about = {"meaning": str(Meaning.AUTHOR), "subject": reading.hash, "signed_at": self.at()}
        return self.tell(who, "sign", key=key or key_of(who), signature="s", **about).hash

    def at(self):
        return f"minute {next(self.minute)}"

    def key(self, who, key=""):
        return next(one for one in self.state().keys if one.key == (key or key_of(who)))

    def standing(self, who="ana"):
        return [one.counts for one in self.case().signatures if one.reader == who]


def test_a_key_in_the_study_s_file_counts_and_a_backdated_one_of_a_lead_does_not():
    story = Keys(n_leads=1, n_bound=1)
    story.chains = {("lea", "thief"): []} | story.chains  # it stands first, with the oldest clock
    thief = story.tell("lea", "key", None, key=key_of("thief"), proof="p", seen=(), session="thief")
    story.chains[("lea", "thief")] = [thief._replace(at="2020-01-01T00:00:00+00:00")]
    story.vouch("lea", "ana", by=key_of("thief"))
    state = story.state()
    assert [one.counts for one in state.keys if one.reader == "lea"] == [True, False]
    assert not story.key("ana").counts
    assert [one.why for one in state.refused] == ["the lead's own key is not valid"]
    story.vouch("lea", "ana")
    assert story.key("ana").counts


def test_a_lead_s_key_in_a_file_must_be_a_lead_s_and_a_key():
    about = study()
    for reader, key in (("ana", "1" * 64), ("nobody", "1" * 64), ("lea", "1" * 63), ("lea", "x")):
        with pytest.raises(CaseError, match="64 digits"):
            replace(about, lead_keys=(LeadKey(reader, key),))
    with pytest.raises(CaseError, match="each key of a lead to be unique"):
        replace(about, lead_keys=(LeadKey("lea", "1" * 64), LeadKey("lea", "1" * 64)))


def test_who_holds_a_key_may_end_it_and_what_is_not_listed_does_not_stand():
    story = Keys()
    story.read("ana")
    story.vouch("lea", "ana")
    first, _ = story.sign("ana"), story.sign("ana")
    story.end("ana", "ana", first)
    assert story.standing() == [True, False]
    assert not story.key("ana").counts
    assert "stolen" in story.key("ana").ended


def test_a_reader_ends_no_other_key_not_even_an_older_one_of_his():
    story = Keys()
    story.tell("ana", "key", None, key=key_of("thief"), proof="p")
    story.vouch("lea", "ana")
    story.vouch("lea", "ana", key_of("thief"))
    story.end("ana", "ana", by=key_of("thief"))
    story.end("ana", "lea", by=key_of("ana"))
    assert story.key("ana").counts
    assert story.key("lea").counts
    assert {one.why for one in story.state().refused} == {
        "only a lead may countersign or revoke another key"
    }


def test_what_one_lead_lets_stand_stands_even_if_a_thief_says_that_nothing_does():
    story = Keys()
    story.read("ana")
    story.vouch("lea", "ana")
    signature = story.sign("ana")
    story.end("lea", "ana")  # by who stole the lead's key
    assert story.standing() == [False]
    story.end("jo", "ana", signature)
    assert story.standing() == [True]
    # of one lead all words hold: a key that was stolen earlier than thought
    story.end("jo", "ana")
    assert story.standing() == [False]


def test_the_holder_s_own_word_does_not_outweigh_a_lead_s():
    story = Keys()
    story.read("ana")
    story.vouch("lea", "ana")
    signature = story.sign("ana")
    story.end("ana", "ana")  # by who stole it with its passphrase
    assert story.standing() == [False]
    story.end("lea", "ana", signature)
    assert story.standing() == [True]


def test_two_leads_who_end_each_other_s_key_are_told_and_nobody_is_locked_out():
    for first, second in (("lea", "jo"), ("jo", "lea")):
        story = Keys()
        story.vouch(first, "ana")
        story.end(first, second)
        assert not story.key(second).counts
        story.end(second, first)
        state = story.state()
        assert all(one.counts for one in state.keys)
        assert len(state.disputes) == 2
        assert "neither revocation counts" in state.disputes[0][1]
        assert len(state.refused) == 2
        # both go on, so who is honest is not locked out
        story.tell("ben", "key", None, key="5" * 64, proof="p")
        story.vouch(first, "ben", "5" * 64)
        assert story.key("ben", "5" * 64).counts


def test_of_three_bound_leads_one_stolen_key_ends_none_and_two_leads_end_it():
    story = Keys(3, 3)
    good = story.vouch("lea", "ana")
    for victim in ("jo", "max"):
        story.end("lea", victim)  # the thief strikes first
    assert all(one.counts for one in story.state().keys)
    assert story.key("jo").against == ("Lea",)
    bad = story.vouch(
        "lea", "ben", story.tell("ben", "key", None, key="5" * 64, proof="p") and "5" * 64
    )
    story.end("jo", "lea", good)
    assert story.key("lea").against == ("Jo",)
    story.end("max", "lea", good)
    state = story.state()
    assert [one.counts for one in state.keys] == [False, True, True, True, False]
    assert story.key("jo").against == story.key("max").against == ()
    assert state.disputes == ()
    assert bad in {one.event.hash for one in state.refused}
    assert {one.why for one in state.refused} == {
        "the signing key was revoked, and the revocation does not preserve this event"
    }


def test_a_stolen_key_cannot_speak_for_another_bound_lead():
    story = Keys(3, 3)
    story.tell("jo", "key", None, key=key_of("thief"), proof="p")
    story.vouch("lea", "jo", key_of("thief"))  # the thief has lea's key and makes one for jo
    assert not story.key("jo", key_of("thief")).counts
    assert story.key("jo", key_of("thief")).n_missing == 1
    story.end("lea", "max")
    story.end("jo", "max", by=key_of("thief"))
    assert story.key("max").counts
    story.vouch("max", "jo", key_of("thief"))
    assert story.key("jo", key_of("thief")).counts


def test_words_of_an_ended_lead_s_key_count_only_where_they_are_listed():
    story = Keys(3, 3)
    story.tell("ben", "key", None, key="5" * 64, proof="p")
    good, bad = story.vouch("lea", "ana"), story.vouch("lea", "ben", "5" * 64)
    harm = story.end("lea", "ana")
    assert not story.key("ana").counts
    for one in ("jo", "max"):
        story.end(one, "lea", good)
    assert story.key("ana").counts
    assert not story.key("ben", "5" * 64).counts
    assert {bad, harm} <= {one.event.hash for one in story.state().refused}


def test_an_ended_lead_ends_no_key_of_an_unbound_lead():
    story = Keys(3, 1)
    for one in ("jo", "max"):
        story.vouch("lea", one)
    story.end("lea", "max")
    story.end("max", "jo")
    assert [one.counts for one in story.state().keys] == [True, True, False, False]


def test_a_lead_who_ends_the_own_key_takes_nothing_back_from_others_and_that_is_told():
    story = Keys()
    story.vouch("lea", "ana")
    story.end("lea", "lea")
    assert story.key("ana").counts
    assert not story.key("lea").counts
    assert story.key("lea").n_loose == 1
    word = story.vouch("jo", "ana")
    story.end("jo", "lea")
    assert story.key("lea").n_loose == 0
    assert story.key("ana").by == "jo"
    assert word not in {one.event.hash for one in story.state().refused}


def test_of_a_lead_alone_the_own_word_is_all_that_there_is():
    story = Keys(1, 1)
    good = story.vouch("lea", "ana")
    story.tell("ben", "key", None, key="5" * 64, proof="p")
    story.vouch("lea", "ben", "5" * 64)
    story.end("lea", "lea", good)
    assert [one.counts for one in story.state().keys] == [False, True, False]


def test_a_lead_alone_goes_on_with_a_new_key_that_the_old_one_vouched_for():
    story = Keys(1, 1)
    story.tell("lea", "key", None, key="6" * 64, proof="p")
    word = story.vouch("lea", "lea", "6" * 64)
    good = story.vouch("lea", "ana")
    story.end("lea", "lea", word, good)
    assert [one.counts for one in story.state().keys] == [False, True, True]


def test_leads_who_are_not_bound_go_by_one_word_as_before():
    story = Keys(3, 0)
    story.vouch("lea", "jo")
    story.vouch("jo", "max")
    story.vouch("max", "ana")
    assert all(one.counts for one in story.state().keys)
    assert not any(one.is_bound for one in story.state().keys)


def test_a_circle_of_words_without_a_root_counts_for_nothing():
    story = Keys(3, 1)
    story.vouch("jo", "max")
    story.vouch("max", "jo")
    assert [one.counts for one in story.state().keys] == [True, False, False, False]
    assert {one.why for one in story.state().refused} == {"the lead's own key is not valid"}


def test_any_words_give_the_same_keys_whatever_the_clocks_and_files_say():
    rng = random.Random(5)
    for n_leads, n_bound in ((2, 2), (3, 3), (3, 2), (3, 1)):
        for _ in range(6):
            story = Keys(n_leads, n_bound)
            events = []
            for _ in range(12):
                who, of = rng.choice(LEADS[:n_leads]), rng.choice((*LEADS[:n_leads], "ana"))
                listed = [one for one in events if rng.random() < 0.5]
                events.append(
                    story.vouch(who, of) if rng.random() < 0.4 else story.end(who, of, *listed)
                )
            results = set()
            for turn in range(3):
                chains = [
                    [one._replace(at=f"{rng.random()}") if turn else one for one in chain]
                    for chain in story.chains.values()
                ]
                rng.shuffle(chains)
                state = replay_events(story.study, ORIGIN, chains, lambda _: True, story.check)
                keys = [(one.key, bool(one.by), bool(one.ended), one.stand) for one in state.keys]
                results.add(tuple(sorted(keys)))
            assert len(results) == 1


def test_whatever_one_of_three_bound_leads_says_the_two_others_go_on():
    rng = random.Random(7)
    for _ in range(8):
        story = Keys(3, 3)
        story.tell("jo", "key", None, key=key_of("thief"), proof="p")
        for _ in range(8):
            of = rng.choice((*LEADS, "ana"))
            key = key_of("thief") if of == "jo" and rng.random() < 0.5 else key_of(of)
            story.vouch("lea", of, key) if rng.random() < 0.4 else story.end("lea", of, key=key)
        # the thief holds the key that he made in jo's name, too
        for of in LEADS:
            story.end("jo", of, by=key_of("thief"))
        assert [story.key(one).counts for one in ("jo", "max")] == [True, True]

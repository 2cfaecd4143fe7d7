"""Signing at a desk: who may sign what as what, keys that wait, a key that was lost."""

import hashlib

import numpy as np
import pytest
from tests.review_study import made

from napari_mamamia.core.blinding import ALL_HIDDEN
from napari_mamamia.core.case import Mask
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.features.review.core.review import ReadingMode
from napari_mamamia.features.review.io.keys import WrongPassphraseError
from napari_mamamia.features.review.io.study_file import Draft
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.check_study import verify_study
from napari_mamamia.features.review.services.client import StudyClient
from napari_mamamia.features.review.services.judging import accept_case, list_decided, reopen_case
from napari_mamamia.features.review.services.signing import (
    countersign_key,
    load_signing_status,
    make_own_key,
    sign_things,
)
from napari_mamamia.io.data_set.volumes import write_mask

GRID = Grid((2, 4, 5), np.diag([-1.0, 1.0, 2.0, 1.0]))
WORDS = "three small words"


class Desks:
    """People of a study, each with a computer of their own."""

    def __init__(self, folder, **about):
        self.folder = made(folder, cases=("A",), blinding=ALL_HIDDEN, **about)
        self._home, self._open = folder, {}

    def of(self, who):
        if who not in self._open:
            self._open[who] = StudyClient(self.folder, who, self._home / who)
        self._open[who].session.refresh()
        return self._open[who]

    def read(self, who):
        client = self.of(who)
        mask = np.zeros(GRID.shape, bool)
        mask[0, 1:3, 1:3] = True
        path = self._home / f"{who}.nii.gz"
        path.unlink(missing_ok=True)
        write_mask(Mask(GRID, mask, Provenance("A", Maker.READER, who)), path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        client.hand_in(client.take_next(), (path, digest), Draft())()
        return client

    def read_all(self):
        for who in ("Ana", "Ben"):
            self.read(who)


@pytest.fixture
def desks(tmp_path):
    return Desks(tmp_path)


def list_meanings(client):
    client.session.refresh()
    return [one.meaning.value for one in load_signing_status(client).things]


def test_a_reader_signs_as_author_a_judge_as_reviewer_and_approver_and_nobody_else(desks):
    assert list_meanings(desks.of("Ana")) == []
    desks.read_all()
    ana, jo, lea = (desks.of(who) for who in ("Ana", "Jo Judge", "Lea Lead"))
    assert list_meanings(ana) == ["author"]
    assert list_meanings(jo) == list_meanings(lea) == []  # nothing is decided
    accept_case(jo, "c0001")
    assert list_meanings(jo) == list_meanings(lea) == ["reviewer", "approver"]
    assert list_meanings(ana) == ["author"]
    for client, n_things in ((jo, 1), (lea, 2), (ana, 1)):
        make_own_key(client, WORDS)
        things = load_signing_status(client).things
        sign_things(client, things[:n_things], WORDS)
    assert list_meanings(jo) == ["approver"]
    assert list_meanings(lea) == list_meanings(ana) == []
    # the lead's own key is the first that counts; the others' wait for the lead's word
    assert desks.of("Lea Lead").session.state.case("c0001").state is CaseState.SIGNED
    (thing,) = load_signing_status(jo).things
    # whose reading was taken stays hidden, as it was to the judge
    who = "signed by Jo Judge (reviewer); Lea Lead (reviewer); Lea Lead (approver)"
    assert thing.text == f"A · a reading, by Jo Judge; {who}"


def test_the_second_of_a_second_look_signs_what_was_accepted_and_the_first_does_not(tmp_path):
    desks = Desks(tmp_path, mode=ReadingMode.SECOND_LOOK)
    desks.read_all()  # they agree: the second look is the acceptance
    assert list_meanings(desks.of("Ana")) == ["author"]
    assert list_meanings(desks.of("Ben")) == ["author", "reviewer", "approver"]


def test_a_key_waits_until_a_lead_types_the_digits_that_its_owner_reads_out(desks):
    desks.read_all()
    ana, lea, jo = (desks.of(who) for who in ("Ana", "Lea Lead", "Jo Judge"))
    digits = make_own_key(ana, WORDS)
    text = sign_things(ana, load_signing_status(ana).things, WORDS)
    assert digits in text
    assert not load_signing_status(ana).counts
    lea.session.refresh()
    jo.session.refresh()
    assert load_signing_status(lea).waiting == ("Ana",)
    assert load_signing_status(jo).waiting == ()  # no lead
    with pytest.raises(CaseError, match="create your key first"):
        countersign_key(lea, "Ana", digits, WORDS)
    make_own_key(lea, "a lead's own words")
    with pytest.raises(CaseError, match="16 digits"):
        countersign_key(lea, "Ana", "0000 0000 0000 0000", "a lead's own words")
    with pytest.raises(CaseError, match="16 digits"):
        countersign_key(lea, "Ben", digits, "a lead's own words")
    with pytest.raises(WrongPassphraseError):
        countersign_key(lea, "Ana", digits, "another lead's words")
    make_own_key(jo, WORDS)
    with pytest.raises(CaseError, match="only a lead"):
        countersign_key(jo, "Ana", digits, WORDS)
    countersign_key(lea, "Ana", digits, "a lead's own words")
    lea.session.refresh()
    ana.session.refresh()
    assert load_signing_status(lea).waiting == ("Jo Judge",)
    assert load_signing_status(ana).counts
    (signature,) = ana.session.state.case("c0001").signatures
    assert signature.counts
    assert verify_study(desks.of("Jo Judge").store).problems == ()


def test_without_a_key_or_with_a_wrong_passphrase_nothing_is_signed(desks):
    client = desks.read("Ana")
    things = load_signing_status(client).things
    with pytest.raises(CaseError, match="create your key first"):
        sign_things(client, things, WORDS)
    make_own_key(client, WORDS)
    with pytest.raises(WrongPassphraseError):
        sign_things(client, things, "three small worlds")
    assert list_meanings(client) == ["author"]
    assert client.session.state.case("c0001").signatures == ()


def test_a_new_key_takes_the_place_of_a_lost_one_unless_its_passphrase_is_refused(desks):
    client = desks.read("Ana")
    before = make_own_key(client, WORDS)
    with pytest.raises(CaseError, match="8 characters"):
        make_own_key(client, "short")
    assert load_signing_status(client).digits == before
    assert make_own_key(client, "other small words") != before
    client.session.key_file.write_text("{}")  # damaged: told as none, and a new one can be made
    assert load_signing_status(client).digits == ""
    make_own_key(client, WORDS)
    assert sign_things(client, load_signing_status(client).things, WORDS)


def test_what_changed_since_it_was_signed_is_signed_anew(desks):
    client = desks.read("Ana")
    make_own_key(client, WORDS)
    sign_things(client, load_signing_status(client).things, WORDS)
    (task,) = [task for task, _ in client.session.queue()]
    client.read_again(task, "one more look")
    assert list_meanings(client) == []  # nothing stands that could be signed
    desks.read("Ana")
    assert list_meanings(client) == ["author"]


def test_a_judge_accepts_what_agrees_and_reopens_what_is_decided(desks):
    jo, ana = desks.of("Jo Judge"), desks.of("Ana")
    jo.session.refresh()
    with pytest.raises(CaseError, match="open the case and decide"):
        accept_case(jo, "c0001")
    desks.read_all()
    ana.session.refresh()
    with pytest.raises(CaseError, match="only an adjudicator"):
        accept_case(ana, "c0001")
    accept_case(jo, "c0001")
    make_own_key(desks.of("Lea Lead"), WORDS)
    lea = desks.of("Lea Lead")
    sign_things(lea, load_signing_status(lea).things[:1], WORDS)
    jo.session.refresh()
    assert [(one.case_id, one.state) for one in list_decided(jo)] == [("A", CaseState.SIGNED)]
    assert list_decided(ana) == ()
    with pytest.raises(CaseError, match="a reason"):
        reopen_case(jo, "c0001", " ")
    ana.session.refresh()
    with pytest.raises(CaseError, match="only an adjudicator"):
        reopen_case(ana, "c0001", "x")
    reopen_case(jo, "c0001", "another lesion on the other side")
    assert jo.session.refresh().case("c0001").state is CaseState.REOPENED
    assert desks.of("Ana").take_next() is not None

"""The view of signatures and keys: items to sign, the person's own key, keys to countersign."""

from collections.abc import Callable, Sequence
from typing import Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QAbstractItemView,
    QLineEdit,
    QListWidgetItem,
    QWidget,
)

from napari_mamamia.core.texts import tr
from napari_mamamia.features.review.core.review import Meaning
from napari_mamamia.features.review.services.signing import Signable, SigningStatus
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    fill_column,
    heading,
    label,
    line,
    row,
    set_level,
    set_primary,
)
from napari_mamamia.widgets.controls.fields import combo_box, line_edit
from napari_mamamia.widgets.controls.line_list import make_line_list
from napari_mamamia.widgets.controls.revealing import reveal

_AS: Final = {
    Meaning.AUTHOR: tr("as author of your reading"),
    Meaning.REVIEWER: tr("as reviewer of the accepted result"),
    Meaning.APPROVER: tr("as approver of the accepted result"),
}
_NO_KEY: Final = tr(
    "To sign, you need a key on this computer. Choose a passphrase of at least 8 characters and "
    "write it down in a private place, because it cannot be recovered."
)
_LOST: Final = tr(
    "A forgotten passphrase cannot be recovered. A new key replaces this one, and a lead "
    "countersigns it. Your earlier signatures remain valid."
)
_SIGNS: Final = tr(
    "Each signature contains your name, the time, and the hash of mask and answers. The "
    "passphrase is needed for each signature."
)
_WHICH: Final = tr("Choose the key to revoke and give a reason; then type your passphrase again.")
NOT_THE_SAME: Final = tr("The two passphrases differ: type both again.")


_ENDS: Final = tr(
    "Use this for a key that was lost or stolen. Signatures that other people had already seen "
    "remain valid; all other signatures become permanently invalid. The owner creates a new key, "
    "which a lead countersigns."
)
_BINDS: Final = tr(
    "Your passphrase protects the key that you create now as a lead; the key is listed in "
    "study.json. Without such a key, anybody who can write to the folder can pose as a lead. List "
    "three leads, so that one stolen key locks nobody out."
)


class LeadKeyForm(QWidget):
    """Form for the leads' keys of a new study.

    `read` returns the lead, the passphrase and the keys of other leads. Errors are shown below the
    passphrase and below the other keys.
    """

    def __init__(self, passphrase_note: QWidget, others_note: QWidget) -> None:
        super().__init__()
        self.lead = combo_box(
            "review_bind_lead", tr("The lead at this computer, whose key is created now.")
        )
        self.new = _make_secret("review_bind_new", tr("A new passphrase."), tr("new passphrase"))
        self.again = _make_secret(
            "review_bind_again", tr("Type the new passphrase again."), tr("repeat")
        )
        self.others = line_edit(
            "review_bind_others",
            tr(
                "Keys of other leads as name = 64 digits from mamamia review lead-key, separated "
                "by semicolons"
            ),
            tr("other leads: name = 64 digits; …"),
        )
        fill_column(
            self,
            label("review_bind_about", _BINDS, tr("Purpose of listing the leads' keys")),
            self.lead,
            row(self.new, self.again),
            passphrase_note,
            self.others,
            others_note,
        )

    def show_leads(self, names: Sequence[str]) -> None:
        """Show the leads' names for selection."""
        before = self.lead.currentText()
        self.lead.clear()
        self.lead.addItems(list(names))
        self.lead.setCurrentText(before)

    def read(self) -> tuple[str, str, str] | None:
        """Return the entered values and clear the passphrases; None if the two differ."""
        typed = (self.new.text(), self.again.text())
        for field in (self.new, self.again):
            field.clear()
        if typed[0] != typed[1]:
            return None
        return self.lead.currentText(), typed[0], self.others.text()


_NO_LONGER: Final = tr(
    "The key of {} is no longer waiting, because another lead countersigned or revoked it."
)


class SigningView(QWidget):
    """View of signatures and keys.

    The signal `key_wanted` carries a passphrase, `signatures_wanted` items and a passphrase, and
    `countersigning_wanted` a name, digits and a passphrase. `ending_wanted` carries a key, a
    reason, a start time and a passphrase.
    """

    key_wanted = Signal(str)
    signatures_wanted = Signal(tuple, str)
    countersigning_wanted = Signal(str, str, str)
    ending_wanted = Signal(object, str, str, str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("review_signing")
        self._things: tuple[Signable, ...] = ()
        self._has_key = True
        self._is_renewing = False
        parts = (self._make_key(), line(), self._make_list(), self._make_word(), self._make_end())
        fill_column(self, *parts, 1, margins=(0, 4, 0, 0))
        self.show_look(SigningStatus("", counts=False, things=()))
        # Not known yet: a person with a key who makes another one gets one that is not
        # countersigned.
        self.key.setText("")
        self._making.hide()

    # -------------------------------------------------------------------- making

    def _make_key(self) -> QWidget:
        self.key = label("review_key", tip=tr("Your signing key on this computer"))
        self.forgotten = button(
            "review_key_forgotten",
            tr("Passphrase forgotten…"),
            tr("Creates a new key to replace the key whose passphrase is lost."),
            self._begin_renewing,
        )
        self.about_key = label("review_key_about", tip=tr("Purpose of a key"))
        want = self._want_key
        self.new = _make_secret(
            "review_key_new", tr("A new passphrase."), tr("new passphrase"), want
        )
        self.again = _make_secret(
            "review_key_again", tr("Type the new passphrase again."), tr("repeat"), want
        )
        self.make = button(
            "review_key_make",
            tr("Create key"),
            tr("Creates your key on this computer."),
            want,
            primary=True,
        )
        self._making = column(self.about_key, row(self.new, self.again), row(self.make, 1))
        return column(heading(tr("Your key")), self.key, row(self.forgotten, 1), self._making)

    def _make_list(self) -> QWidget:
        self.meaning = combo_box(
            "review_meaning", tr("Meaning of your signature: author, reviewer or approver.")
        )
        self.meaning.activated.connect(lambda _at: self._fill_list())
        self.things = make_line_list(
            "review_to_sign",
            tr("Items that you have not signed yet. Select several with Ctrl or Shift."),
        )
        self.things.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.things.itemSelectionChanged.connect(self._follow_choice)
        self.nothing = label("review_nothing_to_sign", tip=tr("Items that you may sign"))
        self.about = label("review_sign_about", _SIGNS, tr("What a signature contains"))
        want = self._want_signatures
        self.passphrase = _make_secret(
            "review_passphrase", tr("Your passphrase."), tr("passphrase"), want
        )
        self.sign = button(
            "review_sign", tr("Sign"), tr("Signs the selected items with your passphrase."), want
        )
        self.note = label("review_sign_note", tip=tr("Why an action is not possible"))
        set_level(self.note, "warning")
        line_ = row(self.passphrase, self.sign)
        self._list = column(self.meaning, self.things, self.about, line_)
        return column(heading(tr("To sign")), self.nothing, self._list, self.note)

    def _make_word(self) -> QWidget:
        self.whose = combo_box("review_key_of", tr("Owner of the key to countersign."))
        self.digits = line_edit(
            "review_key_digits",
            tr("The 16 digits that the owner reads to you."),
            tr("the 16 digits, as read to you"),
        )
        want = self._want_word
        self.word = _make_secret(
            "review_lead_passphrase", tr("Your own passphrase."), tr("your passphrase"), want
        )
        self.countersign = button(
            "review_countersign",
            tr("Countersign"),
            tr(
                "Confirms that this key belongs to this person. Signatures with this key are then "
                "valid."
            ),
            want,
        )
        self._word = column(
            line(),
            heading(tr("Keys to countersign")),
            label(
                "review_word_about",
                tr(
                    "Ask the owner, in person or by telephone, for the 16 digits that the owner's "
                    "window shows."
                ),
                tr("Compare the digits, because the key could be anybody's"),
            ),
            row(self.whose, self.digits),
            row(self.word, self.countersign),
        )
        return self._word

    def _make_end(self) -> QWidget:
        self.begin_end = button(
            "review_key_end_begin",
            tr("Revoke a key…"),
            tr("Opens the form to revoke a lost or stolen key: your own or, as a lead, any key."),
            lambda: self._show_ending(is_open=self._ending.isHidden()),
        )
        self.which = combo_box("review_key_end_which", tr("Key to revoke, by its digits."))
        self.which.setPlaceholderText(tr("key to revoke"))
        self.which.setMinimumContentsLength(12)
        self.reason = line_edit(
            "review_key_end_reason",
            tr("Reason for revoking, visible to everybody."),
            tr("reason, visible to everybody"),
        )
        self.since = line_edit(
            "review_key_end_since",
            tr(
                "Time when the key came into the wrong hands, such as 2026-11-20 14:30. Leave "
                "empty for the present time."
            ),
            tr("from now on, or since 2026-11-20 14:30"),
        )
        want = self._want_end
        self.end_word = _make_secret(
            "review_key_end_passphrase", tr("Your own passphrase."), tr("your passphrase"), want
        )
        self.end = button(
            "review_key_end",
            tr("Revoke key"),
            tr("Revokes the key permanently; this needs your passphrase."),
            want,
        )
        self.end_note = label("review_key_end_note", tip=tr("Why an action is not possible"))
        set_level(self.end_note, "warning")
        self._ending = column(
            label("review_key_end_about", _ENDS, tr("Effect of revoking a key")),
            self.which,
            self.reason,
            self.since,
            self.end_note,
            row(self.end_word, self.end),
        )
        self._end = column(line(), row(self.begin_end, 1), self._ending)
        self._ending.hide()
        return self._end

    def _show_ending(self, *, is_open: bool) -> None:
        self._ending.setVisible(is_open)
        self.say("")
        if is_open:
            reveal(self.end)

    # ------------------------------------------------------------- for the flow

    def show_look(self, look: SigningStatus) -> None:
        """Show the key and the list; the selection and the entered text are kept."""
        self._has_key = bool(look.digits) and not look.ended
        self._show_key(look)
        self._show_endable(look)
        if look.things != self._things:
            self._things = look.things
            self._fill_meanings()
        self._list.setVisible(bool(look.things))
        # Without a key the list is for information only.
        self.passphrase.setEnabled(self._has_key)
        self.nothing.setText("" if look.things else tr("There is nothing to sign at the moment."))
        self.nothing.setVisible(not look.things)
        names = [self.whose.itemText(k) for k in range(self.whose.count())]
        if names != list(look.waiting):
            before = self.whose.currentText()
            self.whose.clear()
            self.whose.addItems(list(look.waiting))
            self.whose.setCurrentText(before)
            if before not in look.waiting and self.digits.text():
                # The owner's key may change while digits are compared; then they belong to
                # another key.
                self.digits.clear()
                self.word.clear()
                self.say(_NO_LONGER.format(before))
        self._word.setVisible(bool(look.waiting))
        for control in (self.word, self.countersign):
            control.setEnabled(self._has_key)
        self._follow_choice()

    def _show_key(self, look: SigningStatus) -> None:
        state = (
            tr("valid")
            if look.counts
            else tr("a lead must countersign it: read these digits to the lead")
        )
        if look.ended:
            state = tr("revoked {when}. Create a new key.", when=look.ended)
        self.key.setText(f"{look.digits}: {state}" if look.digits else _NO_KEY)
        self.forgotten.setVisible(self._has_key and not self._is_renewing)
        self.about_key.setText(_LOST)
        self.about_key.setVisible(self._has_key)
        self._making.setVisible(not self._has_key or self._is_renewing)

    def _show_endable(self, look: SigningStatus) -> None:
        before = self.which.currentData()
        if [self.which.itemData(k) for k in range(self.which.count())] != list(look.endable):
            self.which.clear()
            for one in look.endable:
                self.which.addItem(one.text, one)
            # Nothing is preselected, because revoking cannot be undone.
            self.which.setCurrentIndex(look.endable.index(before) if before in look.endable else -1)
        self._end.setVisible(bool(look.endable))

    def close_ending(self) -> None:
        """Collapse the revocation form after a key was revoked."""
        self._ending.hide()
        for field in (self.reason, self.since):
            field.clear()

    def end_key(self) -> None:
        """Clear the passphrases after the key was created."""
        self._is_renewing = False
        self.new.clear()
        self.again.clear()
        self.say("")

    def end_secrets(self) -> None:
        """Clear the passphrases for signing and countersigning, which are asked each time."""
        for field in (self.passphrase, self.word, self.digits, self.end_word):
            field.clear()
        self.say("")

    def say(self, text: str) -> None:
        """Show why an action is not possible."""
        is_ending = not self._ending.isHidden()
        self.note.setText("" if is_ending else text)
        self.end_note.setText(text if is_ending else "")
        for note in (self.note, self.end_note):
            note.setVisible(bool(note.text()))
        if is_ending and text:
            reveal(self.end)

    @property
    def chosen(self) -> tuple[Signable, ...]:
        """Return the selected items to sign."""
        rows = (self.things.item(k) for k in range(self.things.count()))
        return tuple(row.data(Qt.ItemDataRole.UserRole) for row in rows if row.isSelected())

    # -------------------------------------------------------------------- inner

    def _fill_meanings(self) -> None:
        before = self.meaning.currentData()
        meanings = [one for one in Meaning if any(thing.meaning is one for thing in self._things)]
        self.meaning.clear()
        for meaning in meanings:
            self.meaning.addItem(_AS[meaning], meaning)
        self.meaning.setCurrentIndex(meanings.index(before) if before in meanings else 0)
        self._fill_list()

    def _fill_list(self) -> None:
        before = set(self.chosen)
        meaning = self.meaning.currentData()
        rows: Sequence[Signable] = [thing for thing in self._things if thing.meaning is meaning]
        self.things.blockSignals(True)
        self.things.clear()
        for thing in rows:
            item = QListWidgetItem(thing.text, self.things)
            item.setData(Qt.ItemDataRole.UserRole, thing)
            item.setToolTip(thing.text)
            item.setSelected(thing in before)
        self.things.blockSignals(False)
        self.things.fit()
        self._follow_choice()

    def _follow_choice(self) -> None:
        n = len(self.chosen)
        self.sign.setEnabled(self._has_key and n > 0)
        self.sign.setText(tr("Sign {number}", number=n) if n > 1 else tr("Sign"))
        set_primary(self.sign, primary=self._has_key and n > 0)

    def _begin_renewing(self) -> None:
        self._is_renewing = True
        self._making.show()
        self.forgotten.hide()

    def _want_key(self) -> None:
        if self.new.text() != self.again.text():
            self.say(NOT_THE_SAME)
            return
        self.key_wanted.emit(self.new.text())

    def _want_signatures(self) -> None:
        if self.chosen and self._has_key:
            self.signatures_wanted.emit(self.chosen, self.passphrase.text())

    def _want_word(self) -> None:
        if self._has_key and self.whose.currentText():
            self.countersigning_wanted.emit(
                self.whose.currentText(), self.digits.text(), self.word.text()
            )

    def _want_end(self) -> None:
        key = self.which.currentData()
        if key is None or not self.reason.text().strip():
            self.say(_WHICH)
            return
        self.ending_wanted.emit(key, self.reason.text(), self.since.text(), self.end_word.text())


def _make_secret(
    name: str, tip: str, hint: str, on_return: Callable[[], object] | None = None
) -> QLineEdit:
    """Make a passphrase field that calls a function on Enter."""
    return line_edit(name, tip, hint, on_return=on_return, is_secret=True)

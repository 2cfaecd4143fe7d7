"""Pseudonymous codes of readers in a report."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from napari_mamamia.features.review.rules.replay import ReviewState


@dataclass(frozen=True, slots=True)
class ReaderLabels:
    """The label of each reader id, and the names to replace in texts."""

    labels: Mapping[str, str]
    words: Mapping[str, str]

    def call(self, reader_id: str) -> str:
        """Return the label of a reader id, or any other text unchanged."""
        return self.labels.get(reader_id, reader_id)

    def rank(self, reader_id: str) -> int:
        """Return the rank of a reader in lists and pairs, by code."""
        return list(self.labels).index(reader_id) if reader_id in self.labels else len(self.labels)

    def hide(self, text: str) -> str:
        """Return a text in which ids and names of readers are replaced by labels.

        Whole words are replaced, ignoring letter case. Other descriptions of a reader stay.
        """
        if not self.words:
            return text
        either = "|".join(map(re.escape, sorted(self.words, key=len, reverse=True)))
        pattern = re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)
        return pattern.sub(lambda match: self.words[match.group().casefold()], text)


def make_labels(state: ReviewState, *, are_named: bool = False) -> ReaderLabels:
    """Return the labels: names, or codes in a random order that is fixed for the study.

    The order in the study would reveal the lead.
    """
    study = state.study
    if are_named:
        return ReaderLabels(
            {reader.reader_id: state.name(reader.reader_id) for reader in study.readers}, {}
        )
    order = sorted(
        study.readers,
        key=lambda reader: hashlib.sha256(
            f"{study.study_id}:{reader.reader_id}".encode()
        ).hexdigest(),
    )
    labels = {one.reader_id: f"R{number}" for number, one in enumerate(order, start=1)}
    words = {
        word.casefold(): labels[reader.reader_id]
        for reader in study.readers
        for word in (reader.reader_id, reader.name, state.name(reader.reader_id))
    }
    return ReaderLabels(labels, words)

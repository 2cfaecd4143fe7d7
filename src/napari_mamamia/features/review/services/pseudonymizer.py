"""The site hidden: at a desk each case goes by its number, and nothing there knows another name.

Case ids tell the site (DUKE_001), and so do the clinical table and the names of files. So a desk
gets the study under other names, and a window the data set under the same: what does not know an
id cannot show it. Texts that come from elsewhere, such as of a file that cannot be read, are
covered word by word.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final

from napari_mamamia.features.review.core.quality import Queue
from napari_mamamia.features.review.core.review import Study
from napari_mamamia.features.review.io.store import FolderStore

_COVERED: Final = "…"


@dataclass(frozen=True)
class Pseudonymizer:
    """What people at desks are told instead: the number of each case by its id, and the sites.

    Without names nothing is hidden.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    sites: tuple[str, ...] = ()

    def cover(self, text: str) -> str:
        """Return a text with numbers in place of ids, and without the names of sites.

        Examples
        --------
        >>> names = Pseudonymizer({"DUKE_001": "case-0007"}, ("DUKE",))
        >>> names.cover("a/DUKE_001_0000.nii.gz of DUKE")
        'a/case-0007_0000.nii.gz of …'
        """
        if not self.names:
            return text
        return self._hidden_words.sub(
            lambda hit: self._shown_by_id.get(hit[0].casefold(), _COVERED), text
        )

    def cover_queue(self, queue: Queue) -> Queue:
        """Return a queue with numbers, without cases that are not the study's."""
        if not self.names:
            return queue
        places = [
            replace(one, case_id=self.names[one.case_id])
            for one in queue.places
            if one.case_id in self.names
        ]
        return replace(queue, places=tuple(places))

    @cached_property
    def _shown_by_id(self) -> Mapping[str, str]:
        return {case_id.casefold(): name for case_id, name in self.names.items()}

    @cached_property
    def _hidden_words(self) -> re.Pattern[str]:
        """The longest first, or an id would be taken for a shorter one that it begins with."""
        ids = sorted(self.names, key=len, reverse=True)
        sites = sorted(self.sites, key=len, reverse=True)
        # An id counts as a whole, a site also as the beginning of other words: DUKE_001_0000.
        parts = [rf"(?<![0-9A-Za-z]){re.escape(identifier)}(?![0-9A-Za-z])" for identifier in ids]
        parts += [rf"(?<![0-9A-Za-z]){re.escape(site)}(?![a-z])" for site in sites]
        return re.compile("|".join(parts), re.IGNORECASE)


NO_VEIL: Final = Pseudonymizer()


def pseudonymize_store(store: FolderStore) -> Pseudonymizer:
    """Let a study that hides the site go by numbers in this program; return what was covered."""
    whole = store.study
    if not whole.hides_site:
        return NO_VEIL
    store.study = whole.veiled
    return make_pseudonymizer(whole)


def make_pseudonymizer(study: Study) -> Pseudonymizer:
    """Return what a study covers, whoever asks."""
    names = {case.case_id: study.number_of(case.key) for case in study.cases}
    sites = sorted({case.site for case in study.cases if case.site})
    return Pseudonymizer(MappingProxyType(names), tuple(sites))

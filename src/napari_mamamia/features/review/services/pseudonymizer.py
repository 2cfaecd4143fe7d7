"""Hide the site from readers: replace case ids by numbers.

Case ids reveal the site (DUKE_001), and so do clinical tables and file names. A client therefore
receives the study, and the window the data set, with numbers instead of ids. In other texts, such
as error messages, ids are replaced word by word.
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
    """The pseudonyms of cases by id, and the sites to hide.

    Without names nothing is hidden.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    sites: tuple[str, ...] = ()

    def cover(self, text: str) -> str:
        """Replace ids in a text by pseudonyms, and remove the names of sites.

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
        """Return a queue with pseudonyms, without cases that are not in the study."""
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
        """Return the ids and sites, the longest first, since an id may begin with a shorter id."""
        ids = sorted(self.names, key=len, reverse=True)
        sites = sorted(self.sites, key=len, reverse=True)
        # an id matches as a whole, a site also as a prefix of other words, such as DUKE_001_0000
        parts = [rf"(?<![0-9A-Za-z]){re.escape(identifier)}(?![0-9A-Za-z])" for identifier in ids]
        parts += [rf"(?<![0-9A-Za-z]){re.escape(site)}(?![a-z])" for site in sites]
        return re.compile("|".join(parts), re.IGNORECASE)


NO_PSEUDONYMS: Final = Pseudonymizer()


def pseudonymize_store(store: FolderStore) -> Pseudonymizer:
    """Replace a store's case ids by pseudonyms if the site is hidden; return the pseudonymizer."""
    whole = store.study
    if not whole.hides_site:
        return NO_PSEUDONYMS
    store.study = whole.pseudonymized
    return make_pseudonymizer(whole)


def make_pseudonymizer(study: Study) -> Pseudonymizer:
    """Return the pseudonyms of a study."""
    names = {case.case_id: study.number_of(case.key) for case in study.cases}
    sites = sorted({case.site for case in study.cases if case.site})
    return Pseudonymizer(MappingProxyType(names), tuple(sites))

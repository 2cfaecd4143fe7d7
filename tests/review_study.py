"""A small review study made by code, for several test folders, and a double of its data base."""

import hashlib
import itertools
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from napari_mamamia.core.errors import FormatError
from napari_mamamia.features.review.core.review import (
    ReadingMode,
    Role,
    Study,
    StudyCase,
    StudyPlan,
    StudyReader,
    Task,
)
from napari_mamamia.features.review.io.store import Claim, FolderStore, StoreReading
from napari_mamamia.features.review.io.study_file import write_study
from napari_mamamia.features.review.rules.replay import replay_events
from napari_mamamia.io.files.append_file import canonical
from napari_mamamia.io.workspace.event_store import Event

MASK = b"a mask's file"
SHA = hashlib.sha256(MASK).hexdigest()
ORIGIN = "a" * 64


def study(*, mode=ReadingMode.ARBITRATION, cases=("A", "B"), readers=("ana", "ben"), **plan):
    people = [
        StudyReader("lea", "Lea Lead", (Role.LEAD, Role.ADJUDICATOR)),
        StudyReader("jo", "Jo Judge", (Role.ADJUDICATOR,)),
        *(StudyReader(one, one.title()) for one in readers),
    ]
    keys = [f"c{n:04d}" for n in range(1, len(cases) + 1)]
    tasks = [Task(reader, key) for reader in readers for key in keys]
    return Study(
        "s1",
        "2026-11-23T12:00:00+00:00",
        "test",
        "data",
        StudyPlan("Study", mode, **{"n_readers": len(readers), **plan}),
        tuple(StudyCase(key, case_id) for key, case_id in zip(keys, cases, strict=True)),
        tuple(people),
        tuple(tasks),
    )


def made(folder, **about):
    """Write a study and return its folder."""
    write_study(folder / "STUDY", study(**about))
    return folder / "STUDY"


def opened(folder, home, session="1", host="H"):
    return FolderStore(folder, home, host=host, session=session)


class Story:
    """Events in memory, told one after the other: each writer has seen all, unless said."""

    def __init__(self, of=None, masks=(SHA,), check=lambda key, signature, message: True):
        self.study = of or study()
        self.masks, self.check = set(masks), check
        self.chains = {}
        self.minute = itertools.count()

    def tell(self, reader, act, case="c0001", *, seen=None, session="1", **more):
        if case is not None:
            more = {"round": 1, "case": case, **more}
        body = {"act": str(act), **more}
        chain = self.chains.setdefault((reader, session), [])
        prev = chain[-1].hash if chain else ORIGIN
        if seen is None:
            seen = [one[-1].hash for one in self.chains.values() if one]
        at = datetime(2026, 11, 23, 8, tzinfo=UTC) + timedelta(minutes=next(self.minute))
        text = at.isoformat(timespec="microseconds")
        content = canonical([reader, session, len(chain), text, body, list(seen), prev])
        digest = hashlib.sha256(content).hexdigest()
        seen = tuple(one for one in seen if one != prev)
        chain.append(Event(reader, "H", session, len(chain), text, body, seen, digest, prev))
        return chain[-1]

    def read(self, reader, case="c0001", mask=SHA, session="1", **more):
        for act in ("claim", "start"):
            self.tell(reader, act, case, session=session, **more)
        return self.tell(reader, "read", case, mask=mask, session=session, **more)

    def state(self):
        chains = self.chains.values()
        return replay_events(self.study, ORIGIN, chains, self.masks.__contains__, self.check)

    def case(self, key="c0001"):
        return self.state().case(key)


class TableStore:
    """The tables of `schema.sql` in memory, with its keys, uniqueness and checks, as a store."""

    is_known = True  # a data base that is away raises
    trouble = ""

    def __init__(self, tables, of, session="1", host="H"):
        self.tables, self.study, self.origin = tables, of, ORIGIN
        self.host, self.session = host, session

    unsent = 0

    def close(self):
        """There is nothing to send."""

    def head_of(self, reader):
        chain = (reader, self.host, self.session)
        rows = self.tables["event"]
        seq = sum(key[:3] == chain for key in rows)
        return rows[(*chain, seq - 1)].hash if seq else self.origin

    def append(self, reader, body, seen=()):
        chain = (reader, self.host, self.session)
        rows = self.tables["event"]
        seq = sum(key[:3] == chain for key in rows)
        prev = self.head_of(reader)
        at = datetime.now(UTC).isoformat(timespec="microseconds")
        line = canonical([*chain, seq, at, dict(body), sorted(set(seen)), prev])
        event = Event(
            *chain, seq, at, body, tuple(sorted(set(seen))), hashlib.sha256(line).hexdigest(), prev
        )
        if (*chain, seq) in rows:
            raise FileExistsError("primary key")
        rows[(*chain, seq)] = event
        return event

    def read(self):
        chains = {}
        for key, event in sorted(self.tables["event"].items()):
            chains.setdefault("/".join(key[:3]), []).append(event)
        return StoreReading(chains, masks=frozenset(self.tables["mask"]))

    def put_mask(self, content):
        name = hashlib.sha256(content).hexdigest()
        self.tables["mask"].setdefault(name, content)
        return name

    def get_mask(self, sha256):
        if sha256 not in self.tables["mask"]:
            raise FormatError(f"expected the mask {sha256}, got none: read the case again")
        return self.tables["mask"][sha256]

    def claim(self, place, reader):
        mine = Claim(place, 1, reader, self.host, self.session)
        with self.tables["turn"]:
            latest = self._newest(place)
            if latest is not None:
                if self._is_mine(latest, mine):
                    mine = latest
                elif not self._is_free(latest, mine):
                    return latest
                else:
                    mine = replace(mine, number=latest.number + 1)
            self.tables["claim"][(place, mine.number)] = (mine, time.time())
            return mine

    def renew(self, claim):
        latest = self._newest(claim.place)
        if latest is not None and not self._is_mine(latest, claim):
            return False
        self.tables["claim"][(claim.place, claim.number)] = (claim, time.time())
        return True

    def release(self, claim):
        if self.renew(claim):
            gone = replace(claim, is_released=True)
            self.tables["claim"][(claim.place, claim.number)] = (gone, time.time())

    def list_claims(self):
        places = {place for place, _ in self.tables["claim"]}
        found = [self._newest(place) for place in sorted(places)]
        return tuple(one for one in found if not one.is_released)

    def claim_holder(self, reader):
        return reader, self.host, self.session

    def age(self, place, seconds):
        """Let a claim grow old."""
        latest = self._newest(place)
        self.tables["claim"][(place, latest.number)] = (latest, time.time() - seconds)

    def _is_free(self, latest, mine):
        is_earlier_self = (latest.reader, latest.host) == (mine.reader, mine.host)
        is_over = latest.age_s > self.study.plan.lease_s
        return latest.is_released or is_earlier_self or is_over

    def _newest(self, place):
        numbers = [number for one, number in self.tables["claim"] if one == place]
        if not numbers:
            return None
        claim, at = self.tables["claim"][(place, max(numbers))]
        return replace(claim, age_s=time.time() - at)

    def _is_mine(self, latest, mine):
        return (latest.reader, latest.host, latest.session) == (
            mine.reader,
            mine.host,
            mine.session,
        )


def new_tables():
    return {"event": {}, "mask": {}, "claim": {}, "turn": threading.Lock()}

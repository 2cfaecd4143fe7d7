"""Assign cases to readers, with balanced loads, shared cases, and a seeded random order."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.names import count_of
from napari_mamamia.features.review.core.review import ReadingMode, StudyPlan, Task

_TRIES: Final = 20
"""Maximum number of attempts to connect all readers by shared cases."""


@dataclass(frozen=True, slots=True)
class Deal:
    """Each reader's tasks, with figures to check before the study is frozen.

    Parameters
    ----------
    tasks
        Each reader's tasks, in reading order.
    loads
        Number of readings of each reader, including hidden repeats.
    n_repeats
        Number of hidden repeats of each reader.
    pairs
        Number of cases that each pair of readers shares.
    is_connected
        Whether every reader can be compared with every other reader through shared cases. Otherwise
        disagreement between readers cannot be separated from the difficulty of their cases.
    """

    tasks: tuple[Task, ...]
    loads: tuple[tuple[str, int], ...]
    n_repeats: tuple[tuple[str, int], ...]
    pairs: tuple[tuple[str, str, int], ...]
    is_connected: bool


def deal_cases(
    plan: StudyPlan,
    cases: Sequence[str],
    readers: Sequence[str],
    order: Sequence[str] = (),
) -> Deal:
    """Assign each case to as many readers as the plan requires.

    Loads differ by at most one case. Readers with the same load are chosen in this order: first,
    readers who connect readers that share no case yet, directly or indirectly; second, readers with
    the fewest cases in common with the readers already chosen; third, random readers. In
    second-look mode, the number of first readings is balanced as well. The order of each reader is
    shuffled. A hidden repeat is in the second half, and never directly follows its first reading if
    there are three tasks or more.

    Parameters
    ----------
    cases, readers
        Keys of cases and ids of readers, without duplicates.
    order
        Case keys in the order in which every reader gets them, for example the quality-control
        order; if empty, the order is random.

    Raises
    ------
    CaseError
        If there are fewer readers than readings per case, or no case.
    """
    if not cases or len(readers) < plan.n_readers:
        raise CaseError(
            f"expected at least 1 case and {count_of(plan.n_readers, 'reader')}, but found "
            f"{count_of(len(cases), 'case')} and {count_of(len(readers), 'reader')}: add readers, "
            "or request fewer readings per case"
        )
    children = np.random.SeedSequence(plan.seed).spawn(_TRIES)
    places = {case: index for index, case in enumerate(order)}
    deals = (
        _deal_once(plan, cases, readers, places, np.random.default_rng(child)) for child in children
    )
    first = next(deals)
    if first.is_connected or plan.n_readers == 1 or len(cases) * plan.n_readers < len(readers):
        return first
    return next((deal for deal in deals if deal.is_connected), first)


def list_reading_order(
    tasks: Iterable[Task], mode: ReadingMode
) -> dict[tuple[str, int], list[str]]:
    """Return the readers for each (case, occasion); in second-look mode, in reading order."""
    looks: dict[tuple[str, int], list[str]] = {}
    for task in tasks:
        looks.setdefault((task.case, task.occasion), []).append(task.reader)
    if mode is not ReadingMode.SECOND_LOOK:
        return {place: sorted(readers) for place, readers in looks.items()}
    return looks


def _deal_once(
    plan: StudyPlan,
    cases: Sequence[str],
    readers: Sequence[str],
    places: Mapping[str, int],
    rng: np.random.Generator,
) -> Deal:
    loads = dict.fromkeys(readers, 0)
    pairs: Counter[tuple[str, str]] = Counter()
    group = {reader: reader for reader in readers}
    given: dict[str, list[str]] = {}
    for index in rng.permutation(len(cases)):
        chosen: list[str] = []
        luck = dict(zip(readers, rng.random(len(readers)), strict=True))
        while len(chosen) < plan.n_readers:
            chosen.append(_choose_reader(chosen, loads, pairs, group, luck))
            loads[chosen[-1]] += 1
        for a, b in combinations(chosen, 2):
            pairs[_pair_of(a, b)] += 1
            _join_groups(group, a, b)
        given[cases[index]] = chosen
    firsts = _choose_firsts(given, rng) if plan.mode is ReadingMode.SECOND_LOOK else {}
    orders = {reader: _order_tasks(plan, reader, given, places, rng) for reader in readers}
    tasks = [task for reader in readers for task in orders[reader]]
    # In second-look mode the order of the tasks distinguishes the first reader from the second.
    tasks.sort(key=lambda task: firsts.get(task.case, task.reader) != task.reader)
    repeats = {reader: sum(task.occasion for task in orders[reader]) for reader in readers}
    return Deal(
        tuple(tasks),
        tuple((reader, len(orders[reader])) for reader in readers),
        tuple(repeats.items()),
        tuple((a, b, pairs[_pair_of(a, b)]) for a, b in combinations(readers, 2)),
        len(set(group.values())) == 1,
    )


def _choose_reader(
    chosen: Sequence[str],
    loads: dict[str, int],
    pairs: Counter[tuple[str, str]],
    group: dict[str, str],
    luck: dict[str, float],
) -> str:
    def rank(reader: str) -> tuple[int, bool, int, float]:
        is_joined = any(group[reader] == group[other] for other in chosen)
        shared = sum(pairs[_pair_of(reader, other)] for other in chosen)
        return loads[reader], is_joined, shared, luck[reader]

    return min((reader for reader in loads if reader not in chosen), key=rank)


def _choose_firsts(given: dict[str, list[str]], rng: np.random.Generator) -> dict[str, str]:
    """Choose the first reader of each case, so that all readers are first about equally often."""
    counts: Counter[str] = Counter()
    firsts = {}
    for case, chosen in given.items():
        luck = rng.random(len(chosen))
        index = min(range(len(chosen)), key=lambda i: (counts[chosen[i]], luck[i]))
        firsts[case] = chosen[index]
        counts[chosen[index]] += 1
    return firsts


def _order_tasks(
    plan: StudyPlan,
    reader: str,
    given: dict[str, list[str]],
    places: Mapping[str, int],
    rng: np.random.Generator,
) -> list[Task]:
    given_cases = sorted(case for case, chosen in given.items() if reader in chosen)
    order = [Task(reader, given_cases[index]) for index in rng.permutation(len(given_cases))]
    if places:
        order.sort(key=lambda task: places[task.case])
    n_repeats = round(plan.repeat_share * len(given_cases))
    # from the first half of the order, so that many readings are between a case and its repeat
    half = max(1, len(order) // 2)
    twice = sorted(rng.permutation(half)[:n_repeats])
    for at in twice:
        least = max(half, at + 2)
        place = int(rng.integers(min(least, len(order)), len(order) + 1))
        order.insert(place, Task(reader, order[at].case, 1))
    return order


def _pair_of(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)


def _join_groups(group: dict[str, str], a: str, b: str) -> None:
    old, new = group[b], group[a]
    for reader, name in group.items():
        if name == old:
            group[reader] = new

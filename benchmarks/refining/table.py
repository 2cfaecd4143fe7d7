"""Rows of the table: what the robot reached, by scene and together, and what each limit says."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from refining.robot import Run

AFTER = (1, 3, 5, 10)
TARGETS = (0.85, 0.90)
BELOW = 0.005
"""Dice below the plain sphere that counts."""

BREAST, ONE_PHASE = "breast exam", "one-phase MR"


@dataclass(frozen=True)
class Row:
    """What a tool reached on one scene from one start: a run for each hand."""

    scene: str
    groups: tuple[str, ...]
    start: str
    tool: str
    runs: tuple[Run, ...]
    budget: int

    def strokes_to(self, target: float) -> float:
        """Return the mean number of strokes to a Dice, budget + 1 where it is not reached."""
        return float(np.mean([run.strokes_to(target, self.budget) for run in self.runs]))

    def after(self, strokes: int) -> float:
        """Return the mean Dice after so many strokes."""
        return float(np.mean([run.after(strokes) for run in self.runs]))

    @property
    def falls(self) -> float:
        """Mean number of strokes that lowered Dice by more than .001."""
        return float(np.mean([run.falls for run in self.runs]))

    @property
    def warns(self) -> bool:
        """Whether every hand was told something at its first stroke."""
        return all(run.warned_at == 1 for run in self.runs)


HEAD = (
    f"{'':28}{'start':10}{'tool':24}{'n':>3}{'D@0':>6}{'NoC85':>7}{'NoC90':>7}"
    + "".join(f"{f'D@{k}':>6}" for k in AFTER)
    + f"{'falls':>7}{'ms 50':>8}{'ms 95':>8}"
)


def format_rows(title: str, rows: Sequence[Row]) -> str:
    """Return one line for the mean of some rows of the same start and tool."""
    times = [ms for row in rows for run in row.runs for ms in run.ms] or [0.0]
    cells = [f"{title:28}{rows[0].start:10}{rows[0].tool:24}{len(rows):3d}"]
    cells.append(f"{_mean(rows, lambda row: row.after(0)):6.2f}")
    cells += [f"{_mean(rows, lambda row, t=t: row.strokes_to(t)):7.1f}" for t in TARGETS]
    cells += [f"{_mean(rows, lambda row, k=k: row.after(k)):6.3f}"[:6] for k in AFTER]
    cells.append(f"{_mean(rows, lambda row: row.falls):7.2f}")
    return "".join(cells) + f"{np.median(times):8.1f}{np.percentile(times, 95):8.1f}"


def _mean(rows: Sequence[Row], value: Callable[[Row], float]) -> float:
    return float(np.mean([value(row) for row in rows]))


# -------------------------------------------------------------------- limits


@dataclass(frozen=True)
class Verdict:
    """One line of the issue's table: what was measured, its limit, and whether it holds."""

    title: str
    measured: str
    limit: str
    holds: bool

    def __str__(self) -> str:
        """Return it as a line."""
        word = "ok    " if self.holds else "MISSED"
        return f"{word}  {self.title}: {self.measured} (goal {self.limit})"


class Figures:
    """All rows of a report, and the verdicts on them."""

    def __init__(self, rows: Iterable[Row], growth: dict[str, list[float]]) -> None:
        self.rows = list(rows)
        self.growth = growth
        self.verdicts: list[Verdict] = []

    def of(self, start: str, group: str = "", tool: str = "evidence") -> list[Row]:
        """Return the rows of a start, a group ("": all) and a tool; `warn` scenes apart."""
        return [
            row
            for row in self.rows
            if (row.start, row.tool) == (start, tool)
            and (group in row.groups or (not group and "invisible" not in row.groups))
        ]

    def add(self, title: str, values: Sequence[float], limits: Sequence[float], sign: int) -> None:
        """Add a verdict: values at most (sign 1) or at least (-1) their limits, as printed."""
        holds = all(
            sign * value <= sign * limit + 1e-9 for value, limit in zip(values, limits, strict=True)
        )
        word = "<=" if sign > 0 else ">="
        measured = " / ".join(f"{value:.3g}" for value in values)
        limit = " / ".join(f"{limit:g}" for limit in limits)
        self.verdicts.append(Verdict(title, measured, f"{word} {limit}", holds))

    def judge(self) -> list[Verdict]:
        """Return the verdicts on all that was measured, by the issue's column of goals."""
        self.verdicts = []
        self._judge_empty()
        self._judge_growth()
        self._judge_predictions()
        self._judge_sphere()
        self._judge_breasts()
        self._judge_times()
        self._judge_warnings()
        return self.verdicts

    def _judge_empty(self) -> None:
        for group, limits in (("", (2.5, 3.5)), (ONE_PHASE, (6.0, 9.0))):
            rows = self.of("empty", group)
            if rows:
                strokes = [_mean(rows, lambda row, t=t: row.strokes_to(t)) for t in TARGETS]
                self.add(
                    f"nothing{group and ', ' + group}: strokes to .85 / .90", strokes, limits, 1
                )
        rows = self.of("empty")
        if rows:
            reached = [_mean(rows, lambda row, k=k: row.after(k)) for k in (1, 5, 10)]
            self.add("nothing: Dice after 1 / 5 / 10", reached, (0.84, 0.93, 0.955), -1)

    def _judge_growth(self) -> None:
        if "brain1" in self.growth:
            self.add("two true outlines: brain1", [self.growth["brain1"][1]], (0.85,), -1)
        losses = {
            f"{name} by outline {k + 2}": one - two
            for name, scores in self.growth.items()
            for k, (one, two) in enumerate(pairwise(scores))
        }
        if losses:
            worst = max(losses, key=lambda name: losses[name])
            title = f"worst loss by a further true outline ({worst})"
            self.add(title, [losses[worst]], (0.01,), 1)

    def _judge_predictions(self) -> None:
        for start in ("dilated", "shifted"):
            rows = self.of(start)
            if rows:
                n_good = sum(row.after(3) >= 0.9 for row in rows)
                least = int(np.ceil(len(rows) * 15 / 16 - 1e-9))
                title = f"{start}: scenes of {len(rows)} with Dice >= .90 after 3"
                self.add(title, [n_good], (least,), -1)
        if rows := self.of("half"):
            strokes = _mean(rows, lambda row: row.strokes_to(0.9))
            self.add("half missing: strokes to .90", [strokes], (2.0,), 1)
        for start in dict.fromkeys(row.start for row in self.rows):
            if rows := self.of(start):
                falls = _mean(rows, lambda row: row.falls)
                self.add(f"{start}: falls in 10 strokes", [falls], (0.4,), 1)

    def _judge_sphere(self) -> None:
        pairs, below = self.pair_with_sphere(), self.below_sphere()
        if pairs:
            n_runs = sum(len(row.runs) for row, _ in pairs)
            n_below = sum(
                one.after(10) < other.after(10) - BELOW
                for row, sphere in pairs
                for one, other in zip(row.runs, sphere.runs, strict=True)
            )
            title = f"below the plain sphere after 10, of {len(pairs)} scenes and starts"
            self.add(f"{title} (runs: {n_below} of {n_runs})", [len(below)], (0,), 1)
        if [row for row, _ in pairs if row.start == "half" and BREAST in row.groups]:
            halves = [row for row, _ in below if row.start == "half" and BREAST in row.groups]
            self.add("half missing, breast exams: below the sphere", [len(halves)], (0,), 1)

    def pair_with_sphere(self) -> list[tuple[Row, Row]]:
        """Return each row of the evidence brush with the sphere's of the same scene and start."""
        spheres = {(row.scene, row.start): row for row in self.rows if row.tool == "sphere"}
        return [
            (row, spheres[row.scene, row.start])
            for row in self.rows
            if row.tool == "evidence"
            and "invisible" not in row.groups
            and (row.scene, row.start) in spheres
        ]

    def below_sphere(self) -> list[tuple[Row, Row]]:
        """Return the pairs whose mean over hands is more than .005 below the sphere's after 10."""
        return [
            (row, sphere)
            for row, sphere in self.pair_with_sphere()
            if row.after(10) < sphere.after(10) - BELOW
        ]

    def _judge_breasts(self) -> None:
        first = {"duke-153": 0.95, "ispy1-1002": 0.84, "ucsf-br-06": 0.60, "ucsf-br-08": 0.70}
        for row in self.of("empty", BREAST):
            limits = (first[row.scene], 0.92)
            self.add(
                f"nothing, {row.scene}: Dice after 1 / 10",
                (row.after(1), row.after(10)),
                limits,
                -1,
            )

    def _judge_times(self) -> None:
        parts: dict[bool, list[float]] = {True: [], False: []}
        for row in self.rows:
            if row.tool == "evidence" and "invisible" not in row.groups:
                parts[BREAST in row.groups] += [ms for run in row.runs for ms in run.ms]
        for is_breast, limits in ((False, (35.0, 90.0)), (True, (80.0, 200.0))):
            if parts[is_breast]:
                quantiles = [float(np.percentile(parts[is_breast], q)) for q in (50, 95)]
                title = "breast exams" if is_breast else "scenes but breast exams"
                self.add(f"{title}: processor ms of a stroke, median / p95", quantiles, limits, 1)

    def _judge_warnings(self) -> None:
        rows = self.of("empty", "invisible")
        if rows:
            silent = [row.scene for row in rows if not row.warns]
            title = f"invisible lesions without a warning at once ({', '.join(silent) or 'none'})"
            self.add(title, [len(silent)], (0,), 1)

"""Stacking: an elastic-net logistic model that combines other models' scores and a reader's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from napari_mamamia.core.progress import report_progress
from napari_mamamia.scoring.classifier.operating import Units

ALPHAS: Final = (0.1, 0.55, 1.0)
"""Fractions of the L1 penalty in the grid. Source: caret's grid for glmnet."""
N_LAMBDAS: Final = 20
LAMBDA_RATIO: Final = 1000.0
"""Ratio between the largest penalty (which makes all coefficients 0) and the smallest."""
N_FOLDS: Final = 10
N_INNER: Final = 5

_STEPS: Final = 100
_SWEEPS: Final = 1000
_TOLERANCE: Final = 1e-10
_ROUGH: Final = 1e-6
"""Tolerance for coefficients if only the deviance of a model is needed."""

_LEAST_WEIGHT: Final = 1e-9
"""Minimum of p (1 - p); below it, a case does not contribute to the curvature."""


@dataclass(frozen=True, slots=True, eq=False)
class ElasticNet:
    """The model P = 1/(1 + exp(-(intercept + coefficients . x))), with x not standardised.

    `coefficients` (k,) are 0 for constant columns, for which `constant` is True.
    """

    intercept: float
    coefficients: NDArray[np.float64]
    alpha: float
    penalty: float
    constant: tuple[int, ...] = ()

    def probability(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability for each row of `columns` (n, k); NaN if the row contains NaN."""
        chance: NDArray[np.float64] = expit(self.intercept + columns @ self.coefficients)
        return chance


@dataclass(frozen=True, slots=True, eq=False)
class StandardisedColumns:
    """Columns that are standardised to mean 0 and standard deviation 1; constant columns are 0."""

    columns: NDArray[np.float64]
    label: NDArray[np.float64]
    means: NDArray[np.float64]
    spreads: NDArray[np.float64]

    @classmethod
    def of(cls, columns: NDArray[np.float64], label: NDArray[np.float64]) -> "StandardisedColumns":
        """Check the columns and standardise them."""
        if not np.isfinite(columns).all():
            raise ValueError(
                "expected all scores to be finite, but some are not: leave out these rows"
            )
        if len(set(label.tolist())) < 2:
            raise ValueError(
                "expected both positives and negatives to fit a stack, but found only one class"
            )
        means, spreads = columns.mean(axis=0), columns.std(axis=0)
        flat = spreads <= 1e-12 * np.maximum(1.0, np.abs(means))
        spreads = np.where(flat, np.inf, spreads)
        return cls((columns - means) / spreads, label, means, spreads)

    def penalties(self, alpha: float) -> tuple[float, ...]:
        """Return the grid of penalties for these data, largest first."""
        pull = np.abs(self.columns.T @ (self.label - self.label.mean())) / len(self.label)
        largest = max(float(pull.max()), 1e-12) / max(alpha, 1e-3)
        return tuple(np.geomspace(largest, largest / LAMBDA_RATIO, N_LAMBDAS).tolist())

    def path(
        self, alpha: float, penalties: Sequence[float], tolerance: float = _TOLERANCE
    ) -> tuple[ElasticNet, ...]:
        """Fit one model per penalty, starting each fit from the previous model.

        A model minimises -(1/n) log likelihood + penalty ((1 - alpha)/2 |b|_2^2 + alpha |b|_1) for
        the standardised columns; the intercept has no penalty. The iteration ends when no
        coefficient changes by `tolerance`. Source: J. Friedman et al., Journal of Statistical
        Software 33 (2010) 1.
        """
        if not 0 <= alpha <= 1 or not all(0 <= p < np.inf for p in penalties):
            raise ValueError(
                "expected alpha to be from 0 to 1 and penalties to be 0 or above, but alpha is "
                f"{alpha:g}"
            )
        rate = self.label.mean()
        weights = np.zeros(self.columns.shape[1] + 1)
        weights[0] = np.log(rate / (1 - rate))
        models = []
        constant = tuple(np.flatnonzero(np.isinf(self.spreads)).tolist())
        for penalty in penalties:
            weights = _descend_steps(self.columns, self.label, weights, (alpha, penalty), tolerance)
            raw = weights[1:] / self.spreads
            models.append(
                ElasticNet(float(weights[0] - raw @ self.means), raw, alpha, penalty, constant)
            )
        return tuple(models)


def _descend_steps(
    columns: NDArray[np.float64],
    label: NDArray[np.float64],
    weights: NDArray[np.float64],
    choice: tuple[float, float],
    tolerance: float,
) -> NDArray[np.float64]:
    n = len(label)
    wide = np.concatenate([np.ones((n, 1)), columns], axis=1)
    alpha, penalty = choice
    l1, l2 = penalty * alpha, penalty * (1 - alpha)
    loss = _penalised_loss(wide, label, weights, l1, l2)
    for _ in range(_STEPS):
        chance = expit(wide @ weights)
        curve = np.maximum(chance * (1 - chance), _LEAST_WEIGHT)
        gram = (wide * (curve / n)[:, None]).T @ wide
        pull = wide.T @ (label - chance) / n + gram @ weights
        aim = _solve_by_coordinates(gram, pull, weights, l1, l2)
        step, share = aim - weights, 1.0
        while share > 1e-8:
            tried = weights + share * step
            new_loss = _penalised_loss(wide, label, tried, l1, l2)
            if new_loss <= loss + 1e-15:
                break
            share /= 2
        else:
            return weights
        weights, loss = np.asarray(tried, dtype=np.float64), new_loss
        if np.abs(share * step).max() < tolerance:
            break
    return weights


def _solve_by_coordinates(
    gram: NDArray[np.float64],
    pull: NDArray[np.float64],
    start: NDArray[np.float64],
    l1: float,
    l2: float,
) -> NDArray[np.float64]:
    """Minimise b'Gb/2 - b'pull + penalties over b (k + 1,), by coordinate descent."""
    if not l1:
        ridge = gram + l2 * np.diag([0.0, *np.ones(len(start) - 1)])
        return np.asarray(np.linalg.lstsq(ridge, pull, rcond=None)[0], dtype=np.float64)
    b = start.tolist()
    rows, target = gram.tolist(), pull.tolist()
    k = len(b)
    places = range(k)
    for _ in range(_SWEEPS):
        moved = 0.0
        for j in places:
            row = rows[j]
            rest = target[j] - sum(row[m] * b[m] for m in places) + row[j] * b[j]
            if j:
                cut = rest - l1 if rest > l1 else rest + l1 if rest < -l1 else 0.0
                scale = row[j] + l2
                new = cut / scale if scale > 0 else 0.0
            else:
                new = rest / row[j]
            moved = max(moved, abs(new - b[j]))
            b[j] = new
        if moved < _TOLERANCE / 10:
            break
    return np.array(b)


def _penalised_loss(
    wide: NDArray[np.float64],
    label: NDArray[np.float64],
    weights: NDArray[np.float64],
    l1: float,
    l2: float,
) -> float:
    line = wide @ weights
    loss = float((np.logaddexp(0, line) - label * line).mean())
    b = weights[1:]
    return loss + float(l2 * (b @ b) / 2 + l1 * np.abs(b).sum())


def deviance(label: NDArray[np.float64], chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return -2 times the log likelihood of each case, (n,).

    Probabilities are clipped to at least 1e-15 and at most 1 - 1e-15.

    Parameters
    ----------
    label
        0 or 1 for each case, (n,).
    chance
        Probabilities of 1, (n,).

    Examples
    --------
    >>> round(float(deviance(np.array([1.0]), np.array([0.5]))[0]), 6)
    1.386294
    """
    chance = np.clip(chance, 1e-15, 1 - 1e-15)
    each: NDArray[np.float64] = -2 * (label * np.log(chance) + (1 - label) * np.log1p(-chance))
    return each


def deal_folds(
    subjects: Units, strata: Sequence[object], n_folds: int, seed: int
) -> NDArray[np.intp]:
    """Assign rows to folds by subject, spreading each stratum evenly; return the folds (n,).

    `strata` has a value for each row; the stratum of a subject is the largest value of its rows.
    The order of subjects is random, determined by `seed`. The folds are filled in turn from stratum
    to stratum, so that their sizes differ by at most one subject.

    Parameters
    ----------
    subjects
        Subjects of the rows.
    strata
        Stratum of each row.
    n_folds
        Number of folds.
    seed
        Seed for the order of subjects.

    Raises
    ------
    ValueError
        If there are fewer subjects than folds.
    """
    if subjects.n < n_folds or n_folds < 2:
        raise ValueError(
            f"expected at least {max(n_folds, 2)} subjects for {n_folds} folds, but found "
            f"{subjects.n}"
        )
    of_subject = [""] * subjects.n
    for index, stratum in zip(subjects.of_row, strata, strict=True):
        of_subject[index] = max(of_subject[index], str(stratum))
    drawn = np.random.default_rng(seed).permutation(subjects.n)
    order = sorted(drawn.tolist(), key=lambda subject: of_subject[subject])
    folds = np.empty(subjects.n, dtype=np.intp)
    folds[order] = np.arange(subjects.n) % n_folds
    return folds[subjects.of_row]


@dataclass(frozen=True, slots=True)
class StackRules:
    """Settings of stacking: outer and inner folds, penalty grid, selection criterion, and seed.

    `one_se` selects the largest penalty whose deviance is within one standard error of the minimum.
    """

    n_folds: int = N_FOLDS
    n_inner: int = N_INNER
    alphas: tuple[float, ...] = ALPHAS
    one_se: bool = False
    seed: int = 42


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """A fitted stack; `out_of_fold` (n,) are probabilities from models that did not see the case.

    `model` is fitted on all cases, for use on other data; its scores on these cases would be
    optimistic. `chosen` holds the alpha and the penalty of each outer fold.
    """

    columns: tuple[str, ...]
    out_of_fold: NDArray[np.float64]
    model: ElasticNet
    folds: NDArray[np.intp]
    chosen: tuple[tuple[float, float], ...]


def fit_stack(
    columns: NDArray[np.float64],
    label: NDArray[np.float64],
    names: Sequence[str],
    subjects: Units,
    strata: Sequence[object],
    rules: StackRules | None = None,
) -> Stack:
    """Fit a stack by nested cross-validation.

    The columns (n, k) are scores of models that were not trained on these cases; otherwise all
    results are optimistic. For each outer fold, alpha and penalty are chosen by the mean deviance
    over inner folds of the remaining cases. Folds are stratified and keep the rows of a subject
    together.

    Parameters
    ----------
    columns
        Scores of the models, (n, k).
    label
        0 or 1 for each case, (n,).
    names
        Names of the models.
    subjects, strata
        Subject and stratum of each row.
    rules
        Folds, grid and criterion.

    Raises
    ------
    ValueError
        If a class or subjects are missing, in the data or in the remaining cases of a fold.
    """
    rules = rules or StackRules()
    folds = deal_folds(subjects, strata, rules.n_folds, rules.seed)
    total = rules.n_folds + 1
    probabilities, chosen = np.empty(len(label)), []
    for fold in range(rules.n_folds):
        report_progress(fold, total, "Fitting the stack")
        inside = folds != fold
        model = _choose_model(columns, label, inside, subjects, strata, rules)
        probabilities[~inside] = model.probability(columns[~inside])
        chosen.append((model.alpha, model.penalty))
    everything = np.ones(len(label), dtype=bool)
    model = _choose_model(columns, label, everything, subjects, strata, rules)
    report_progress(total, total, "Fitting the stack")
    return Stack(tuple(names), probabilities, model, folds, tuple(chosen))


def _choose_model(
    columns: NDArray[np.float64],
    label: NDArray[np.float64],
    inside: NDArray[np.bool_],
    subjects: Units,
    strata: Sequence[object],
    rules: StackRules,
) -> ElasticNet:
    rows = np.flatnonzero(inside)
    x, y = columns[rows], label[rows]
    keys = [subjects.names[subjects.of_row[row]] for row in rows]
    inner = Units.of(keys)
    n_inner = min(rules.n_inner, inner.n)
    folds = deal_folds(inner, [strata[int(row)] for row in rows], n_inner, rules.seed)
    whole = StandardisedColumns.of(x, y)
    grids = {alpha: whole.penalties(alpha) for alpha in rules.alphas}
    losses = {
        alpha: np.stack(list(_fold_losses(x, y, folds, alpha, penalties)))
        for alpha, penalties in grids.items()
    }
    alpha = min(losses, key=lambda loss: float(losses[loss].mean(axis=0).min()))
    means = losses[alpha].mean(axis=0)
    best = int(np.argmin(means))
    if rules.one_se:
        error = losses[alpha][:, best].std(ddof=1) / np.sqrt(n_inner)
        best = int(np.flatnonzero(means <= means[best] + error)[0])
    return whole.path(alpha, grids[alpha][: best + 1])[-1]


def _fold_losses(
    columns: NDArray[np.float64],
    label: NDArray[np.float64],
    folds: NDArray[np.intp],
    alpha: float,
    penalties: Sequence[float],
) -> Iterator[NDArray[np.float64]]:
    for fold in range(int(folds.max()) + 1):
        inside = folds != fold
        models = StandardisedColumns.of(columns[inside], label[inside]).path(
            alpha, penalties, _ROUGH
        )
        x, y = columns[~inside], label[~inside]
        yield np.array([deviance(y, model.probability(x)).mean() for model in models])

"""Search of a space by a learned model of its times: gradient-boosted trees, and evolution.

Few points are measured first. From then on, trees that were fitted to all that is known predict the
times of points that were not measured, the most promising of these are measured, and the trees are
fitted again. The points to predict are chosen by evolution: in a space of moderate size all points;
in a larger one points that differ in few entries from the best ones, crosses of these, and some
random ones. No IR and no clock: what is measured, and how, is the caller's.

Source of the scheme: T. Chen et al., "Learning to Optimize Tensor Programs" (NeurIPS 2018).
"""

import math
import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from operator import add, sub
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from braid.support.distribution import install_command
from braid.support.errors import BraidError
from braid.support.option_names import option_text

P = TypeVar("P", bound=Hashable)

Floats = NDArray[np.float64]
Row = tuple[float, ...]
"""Features of a point: equally many for all of a space."""

_FAILED = math.log(4)
"""A point that failed counts as this much worse than the worst one."""

_CENTRAL = 2
"""Points in the middle that are measured first; more of them lie side by side and teach little."""


@dataclass(frozen=True)
class ModelRule:
    """The rule by which a space is searched.

    At most `trials` points are measured, `first` of them before there is a model, and then `batch`
    at a time. The fraction `explored` of these is chosen at random, and the fraction `varied` among
    points that differ in one entry from one of the best `parents`. Where a space does not begin
    with its best guesses (`is_ordered`), powers of two in the middle are the first: extremes of
    tiles, threads and unrolls are rarely good, nor are sizes that widths of machines do not divide.
    `asked` is of how many points the model is asked each time, and `models` how many it averages.
    After `patience` batches in which nothing better was found, and nothing is predicted to be, the
    search ends.
    """

    trials: int
    first: int = 16
    batch: int = 8
    explored: float = 0.1
    varied: float = 0.4
    parents: int = 5
    asked: int = 1 << 14
    models: int = 3
    patience: int | None = 4
    is_ordered: bool = True


class TimeModel:
    """Trees that predict logarithms of times from features."""

    def __init__(self, models: int, seed: int = 0) -> None:
        """Make an average of `models`. Raises BraidError where LightGBM is not installed."""
        try:
            import lightgbm
        except ImportError as error:
            raise BraidError(
                "a search by a model needs LightGBM, which is not installed",
                hint=f"{install_command('tune')}, or search without "
                f"{option_text('search', 'model')}",
            ) from error
        self._library: Any = lightgbm
        self._seeds = [seed + number for number in range(models)]
        self._fitted: list[Any] = []

    def fit(self, rows: Floats, targets: Floats) -> None:
        """Learn logarithms of times."""
        self._fitted = []
        for seed in self._seeds:
            parameters = {
                "objective": "regression",
                "learning_rate": 0.2,
                "num_leaves": 31,
                "min_data_in_leaf": 3,
                "min_data_in_bin": 1,
                "lambda_l2": 0.1,
                "bagging_fraction": 0.8,
                "bagging_freq": 1,
                "feature_fraction": 0.5,
                "seed": seed,
                "num_threads": 1,
                "verbosity": -1,
            }
            data = self._library.Dataset(rows, targets)
            self._fitted.append(self._library.train(parameters, data, num_boost_round=40))

    def predict(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return the means of the trees' predictions, and how far they differ."""
        all = np.stack([np.asarray(each.predict(rows), np.float64) for each in self._fitted])
        return all.mean(axis=0), all.std(axis=0)


@dataclass(frozen=True)
class _Table(Generic[P]):
    """Rows of points, made once."""

    numbers: Mapping[P, int]
    rows: Floats

    def __call__(self, points: Iterable[P]) -> Floats:
        """Return the rows of some points."""
        return self.rows[[self.numbers[point] for point in points]]


def _table(points: Sequence[P], row: Callable[[P], Row]) -> _Table[P]:
    numbers = {point: number for number, point in enumerate(points)}
    return _Table(numbers, np.array([row(point) for point in points], np.float64))


@dataclass
class ModelSearch(Generic[P]):
    """A search under way: `times` are the seconds of what was measured, None where it failed.

    `space` has all points, `entries` are the components of a point, which are varied, and
    `features` are the model's inputs. `known` are rows and logarithms of times of other searches,
    relative to those of `scale`.
    """

    space: Sequence[P]
    entries: Callable[[P], Row]
    features: Callable[[P], Row]
    rule: ModelRule
    seed: int = 0
    known: tuple[Sequence[Row], Sequence[float]] = ((), ())
    times: dict[P, float | None] = field(default_factory=dict[P, "float | None"])

    def run(
        self,
        measure: Callable[[P], float | None],
        *,
        is_spent: Callable[[], bool] = lambda: False,
        is_done: Callable[[], bool] = lambda: False,
    ) -> Mapping[P, float | None]:
        """Measure points until the rule, or one of the others, ends the search."""
        for point in self.order():
            if is_spent() or len(self.times) >= self.rule.trials:
                break
            self.times[point] = measure(point)
            if is_done():
                break
        return self.times

    def order(self) -> Iterator[P]:
        """Yield the points in the order in which they are worth measuring, by what `times` has
        then.
        """
        generator = random.Random(self.seed)
        left = dict.fromkeys(point for point in self.space if point not in self.times)
        model = TimeModel(self.rule.models, self.seed)
        yield from self._taken(left, self._beginning(list(left), generator))
        since = 0
        while left:
            best = self._best()
            asked = self._asked(left, generator)
            chosen, promising = self._promising(asked, model, generator)
            yield from self._taken(left, chosen)
            found = self._best() < best
            since = 0 if found or promising else since + 1
            if self.rule.patience is not None and since >= self.rule.patience:
                return

    def _taken(self, left: dict[P, None], points: Sequence[P]) -> Iterator[P]:
        for point in points:
            del left[point]
            yield point

    def _beginning(self, points: list[P], generator: random.Random) -> list[P]:
        """Return the best guesses, first or central points of the space, and some far from
        these.
        """
        count = min(self.rule.first, len(points))
        guesses = points[: count // 2]
        if not self.rule.is_ordered:
            guesses = self._central(points)[: min(_CENTRAL, count // 2)]
        if not guesses or self.known[0]:
            return guesses[:1]
        sample = generator.sample(points, min(len(points), 16 * count))
        some = list(dict.fromkeys([*guesses, *sample]))
        rows = self._scaled(some)
        chosen = list(range(len(guesses)))
        near = np.linalg.norm(rows[:, None] - rows[None, chosen], axis=2).min(axis=1)
        while len(chosen) < count and near.max() > 0:
            chosen.append(int(near.argmax()))
            near = np.minimum(near, np.linalg.norm(rows - rows[chosen[-1]], axis=1))
        return [some[number] for number in chosen]

    def _central(self, points: list[P]) -> list[P]:
        """Return candidates, those closest to the middle of each field's values and to powers of
        two first.
        """
        if not points:
            return []
        rows = self._entries(points)
        odd = np.array([[1 - power_of_two(value) for value in row] for row in rows])
        distances = (self._scaled(points) - 0.5) ** 2 + odd**2
        order = np.argsort(distances.sum(axis=1), kind="stable")
        return [points[number] for number in order]

    def _scaled(self, points: Sequence[P]) -> Floats:
        rows = self._entries(points)
        ranks = np.stack([np.unique(column, return_inverse=True)[1] for column in rows.T], axis=1)
        return ranks / np.maximum(ranks.max(axis=0), 1)

    @cached_property
    def _entries(self) -> _Table[P]:
        return _table(self._points, self.entries)

    @cached_property
    def _features(self) -> Callable[[Iterable[P]], Floats]:
        """Rows for the model; of a large space only those of the points that it is asked about."""
        if len(self._points) <= self.rule.asked:
            return _table(self._points, self.features)
        return lambda points: np.array([self.features(point) for point in points], np.float64)

    @cached_property
    def _points(self) -> list[P]:
        return list(dict.fromkeys([*self.times, *self.space]))

    def _best(self) -> float:
        return min((t for t in self.times.values() if t is not None), default=math.inf)

    def _asked(self, left: dict[P, None], generator: random.Random) -> list[P]:
        """Return the points whose times are predicted: all, or the neighbours of the best and
        others.
        """
        if len(left) <= self.rule.asked:
            return list(left)
        points = list(left)
        close = [points[number] for number in np.flatnonzero(self._is_close(points))]
        sample = generator.sample(points, self.rule.asked)
        return list(dict.fromkeys([*close[: self.rule.asked], *sample]))

    def _is_close(self, points: Sequence[P]) -> NDArray[np.bool_]:
        """Return whether each point differs in one entry from one of the best that were
        measured.
        """
        ran = [
            (time, number) for number, time in enumerate(self.times.values()) if time is not None
        ]
        measured, rows = list(self.times), self._entries(points)
        close = np.zeros(len(points), np.bool_)
        for _, number in sorted(ran)[: self.rule.parents]:
            parent = self._entries([measured[number]])
            close |= (rows != parent).sum(axis=1) == 1
        return close

    def _promising(
        self, asked: list[P], model: TimeModel, generator: random.Random
    ) -> tuple[list[P], bool]:
        """Return the next batch, and whether one of it is predicted to be better than all
        before.
        """
        ran = {p: t for p, t in self.times.items() if t is not None and t > 0}
        count = min(self.rule.batch, len(asked))
        if len(ran) + len(self.known[0]) < 4:
            return generator.sample(asked, count), True
        rows = self._features(self.times)
        if self.known[0]:
            rows = np.concatenate([np.array(self.known[0], np.float64), rows])
        logs = {point: math.log(time) for point, time in ran.items()}
        worst = max(logs.values(), default=0.0) + _FAILED
        targets = [*self.known[1], *(logs.get(point, worst) for point in self.times)]
        model.fit(rows, np.array(targets, np.float64))
        means, spreads = model.predict(self._features(asked))
        hopes = means - spreads
        ranked = [int(number) for number in np.argsort(hopes, kind="stable")]
        explored, varied = (
            sum(generator.random() < part for _ in range(count))
            for part in (self.rule.explored, self.rule.varied)
        )
        close = self._is_close(asked)
        order = [number for number in ranked if close[number]][:varied]
        order += generator.sample(ranked, min(explored, len(ranked)))
        order = list(dict.fromkeys([*order, *ranked]))[:count]
        chosen = [asked[number] for number in order]
        return chosen, bool(hopes.min() < min(logs.values(), default=math.inf))


@lru_cache(maxsize=1 << 16)
def numeric_features(entries: Row) -> Row:
    """Return features that trees cannot derive from single entries.

    Sums and differences of logarithms, which are products and ratios, and the powers of two that
    divide entries and their products: vector widths, cache lines and banks depend on these.
    """
    logs = [math.log2(1 + abs(value)) for value in entries]
    twos = [_twos(value) for value in entries]
    products, ratios, divided = (
        [of(a, b) for number, a in enumerate(row) for b in row[:number]]
        for row, of in ((logs, add), (logs, sub), (twos, add))
    )
    return (*entries, *products, *ratios, *twos, *divided)


def power_of_two(value: float) -> float:
    """Return how close a size is to a power of two: the part of its logarithm that divides it."""
    size = abs(value)
    return 1.0 if size < 2 else _twos(size) / math.log2(size)


def _twos(value: float) -> float:
    """Return how often an integer can be divided by two; 0 of none, and of other numbers."""
    size = int(abs(value))
    return float((size & -size).bit_length() - 1) if size and size == abs(value) else 0.0

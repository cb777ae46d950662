"""The inputs of steps that follow each other: some grow with the state, as masks do."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import gt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from braid.runtime.manifest import UNBOUNDED, TensorSpec
from braid.support.likely_sizes import LIKELY_STATE
from braid.support.sizes.checks import SizeChecks
from braid.tools.commands.arrays import Range, is_mask, likely_sizes, random_inputs

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class StepInputs:
    """What the steps of a session are given, at the sizes that the state has by then.

    `specs` are all inputs of the model, with the sizes that are asked for, and `state` the names of
    those that are a state. `given` has some, in a first step; others are random within `ranges`,
    and masks are ones. `likely` are sizes of open dims by name, such as those that are asked for.
    """

    specs: Sequence[TensorSpec]
    state: Collection[str]
    checks: SizeChecks
    given: Arrays
    ranges: Mapping[str, Range]
    likely: Mapping[str, int]

    @property
    def growing(self) -> set[str]:
        """Return the open dims along which the state grows: those that it alone has."""
        return _dims(self.specs, self.state, True) - _dims(self.specs, self.state, False)

    @property
    def following(self) -> set[str]:
        """Return the open dims that follow from those that grow and what is new."""
        return self.checks.sums_of(self.growing)

    def masks(self) -> set[str]:
        """Return the masks that grow with the state: nothing is masked where they are left out."""
        follows = self.following
        return {spec.name for spec in self.specs if is_mask(spec) and follows & set(spec.dims)}

    def step_sizes(self) -> dict[str, int]:
        """Return likely sizes of a step: one new element after a state of 1,024.

        Dims of other inputs that no state has are new, but for those that follow. The names of open
        dims are those of inputs alone.
        """
        kept, given = _dims(self.specs, self.state, True), _dims(self.specs, self.state, False)
        new = given - kept - self.following if kept else ()
        return dict.fromkeys(new, 1) | dict.fromkeys(kept - given, LIKELY_STATE)

    def values(self, seed: int) -> Arrays:
        """Return all inputs of a first step, the state among them, or of a run without one."""
        likely = {**self.step_sizes(), **self.likely}
        return random_inputs(self.specs, seed, self.given, self.ranges, likely, self.checks)

    def first_state(self, seed: int, asked: Mapping[str, int]) -> Arrays:
        """Return the state of a first step: what is given, or random where a size of it is asked
        for; else nothing, so that it begins empty.
        """
        given = {name: array for name, array in self.given.items() if name in self.state}
        if given or not self.growing & asked.keys():
            return given
        return {name: own for name, own in self.values(seed).items() if name in self.state}

    def first(self, values: Arrays, state: Arrays) -> Arrays:
        """Return `values` of inputs that are no state, and masks that they lack, for a first step.

        The state may have no arrays yet.
        """
        made, given = self.masks(), self._no_state(values)
        found = self._drawn(self.specs, given, state, 0, self.likely)
        return {name: own for name, own in found.items() if name in given or name in made}

    def after(self, before: Arrays, state: Arrays) -> Arrays:
        """Return the inputs of a step after one with those of `before`, which left this state."""
        sizes = {
            name: size
            for spec in self.specs
            if spec.name in before
            for name, size in zip(spec.dims, before[spec.name].shape, strict=False)
        }
        found = self.later(before, state, 0, sizes)
        return {name: found[name] for name in before}

    def new(self, state: Arrays, seed: int, likely: Mapping[str, int]) -> Arrays:
        """Return the inputs of a first step after a state, which may have no arrays yet."""
        return self._drawn(self.specs, self._no_state(self.given), state, seed, likely)

    def later(self, before: Arrays, state: Arrays, seed: int, likely: Mapping[str, int]) -> Arrays:
        """Return the inputs of a step after others, which have left this state.

        Those of `before` stay as they are, and go on where they grow with the state; others are
        random.
        """
        follows = self.following
        specs = [_opened(spec, follows) for spec in self.specs]
        grown = {spec.name for spec in specs if follows & set(spec.dims)}
        kept = {name: array for name, array in before.items() if name not in grown}
        likely = {name: size for name, size in likely.items() if name not in follows}
        found = dict(self._drawn(specs, kept, state, seed, likely))
        for name in grown & before.keys():
            found[name] = _continued(before[name], found[name])
        return found

    def _no_state(self, values: Arrays) -> Arrays:
        return {name: array for name, array in values.items() if name not in self.state}

    def _drawn(
        self,
        specs: Sequence[TensorSpec],
        given: Arrays,
        state: Arrays,
        seed: int,
        likely: Mapping[str, int],
    ) -> Arrays:
        """Return the inputs that are no state, random where they are not given."""
        known = dict.fromkeys(self.growing, 0)
        for spec in (spec for spec in specs if spec.name in state):
            known |= zip(spec.dims, state[spec.name].shape, strict=False)
        placed = [_with_sizes(spec, known) if spec.name in self.state else spec for spec in specs]
        sizes = likely_sizes(placed, given, {**likely, **known}, self.checks)
        others = [spec for spec in specs if spec.name not in self.state]
        return random_inputs(others, seed, given, self.ranges, {**likely, **sizes})


def _dims(specs: Sequence[TensorSpec], state: Collection[str], of_state: bool) -> set[str]:
    """Return the names of the open dims of inputs that are a state, or of the others."""
    chosen = (spec for spec in specs if (spec.name in state) == of_state)
    return {name for spec in chosen for name in spec.dims if name}


def _opened(spec: TensorSpec, names: Collection[str]) -> TensorSpec:
    """Return an input with dims of these names open, whatever sizes are asked for."""
    bound = [
        UNBOUNDED if name in names else size
        for name, size in zip(spec.dims, spec.bound, strict=False)
    ]
    return replace(spec, bound=tuple(bound)) if spec.dims else spec


def _with_sizes(spec: TensorSpec, sizes: Mapping[str, int]) -> TensorSpec:
    """Return an input with these sizes of dims by name."""
    bound = [
        sizes.get(name, size) if name else size
        for name, size in zip(spec.dims, spec.bound, strict=False)
    ]
    return replace(spec, bound=tuple(bound)) if spec.dims else spec


def _continued(array: NDArray[Any], longer: NDArray[Any]) -> NDArray[Any]:
    """Return an array of a longer one's shape, which goes on with what that has."""
    if array.ndim != longer.ndim or any(map(gt, array.shape, longer.shape)):
        return array  # the step says what is wrong
    found = np.array(longer)
    found[tuple(map(slice, array.shape))] = array
    return found

"""Which output each input of a state takes the value of, as users name them."""

from collections.abc import Mapping, Sequence
from typing import cast

from braid.runtime.buffers import describe_shape
from braid.runtime.manifest import TensorSpec
from braid.support.errors import BraidError, did_you_mean
from braid.support.option_names import option_text


def matched_state(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], state: object
) -> dict[str, str]:
    """Return the output whose value each input of the state takes, by their names.

    Raises:
        BraidError: a name or pattern matches nothing, an input and its output differ in element
            type or rank, their shapes are never the same, or an input has two outputs.

    """
    if not isinstance(state, Mapping) or not state:
        raise BraidError(
            f"the state is {state!r:.100}, expected names of outputs by names of inputs",
            hint=f"such as {option_text('state', {'past.*': 'present.*'})}",
        )
    of_input = {spec.name: spec for spec in inputs}
    of_output = {spec.name: spec for spec in outputs}
    found: dict[str, str] = {}
    for pattern, target in cast(Mapping[object, object], state).items():
        names = [(name, own) for name in of_input if (own := _star(str(pattern), name)) is not None]
        if not names:
            raise _unknown("input", str(pattern), of_input)
        for name, own in names:
            wanted = str(target).replace("*", own, 1)
            if wanted not in of_output:
                raise _unknown("output", wanted, of_output)
            given, taken = of_input[name], of_output[wanted]
            if given.dtype != taken.dtype or len(given.shape) != len(taken.shape):
                raise BraidError(
                    f"input '{name}' is {given.dtype} of rank {len(given.shape)}, output "
                    f"'{wanted}' is {taken.dtype} of rank {len(taken.shape)}, which it cannot take"
                )
            if not _may_fit(given, taken):
                raise unfit_state(
                    f"'{name}' of shape ({describe_shape(given)})",
                    f"'{wanted}' of shape ({describe_shape(taken)})",
                )
            if found.setdefault(name, wanted) != wanted:
                raise BraidError(
                    f"input '{name}' takes the values of outputs '{found[name]}' and '{wanted}'",
                    hint="give each input of the state one output",
                )
    return found


def unfit_state(input: str, output: str) -> BraidError:
    """Return the error of an input that is never of the shape of an output; both are texts."""
    return BraidError(
        f"input {input} can never take the value of output {output}",
        hint="leave the dim open along which the state grows: export the model with a name of its "
        "own for it, such as 'past', and give no size of it",
    )


def _may_fit(given: TensorSpec, taken: TensorSpec) -> bool:
    """Return whether an input may have the shape of an output, as far as numbers tell."""
    dims = zip(given.shape, given.bound, taken.shape, strict=True)
    return all(new < 0 or (new <= bound if size < 0 else new == size) for size, bound, new in dims)


def _star(pattern: str, name: str) -> str | None:
    """Return the part of a name that `*` matches, "" without `*`; None if the name does not
    match."""
    before, star, after = pattern.partition("*")
    if not star:
        return "" if name == pattern else None
    is_match = name.startswith(before) and name.endswith(after)
    if not is_match or len(name) < len(before) + len(after):
        return None
    return name[len(before) : len(name) - len(after)]


def _unknown(what: str, name: str, known: Mapping[str, object]) -> BraidError:
    return BraidError(
        f"the model has no {what} '{name}'",
        hint=did_you_mean(name, known) or f"its {what}s are {', '.join(known)}",
    )

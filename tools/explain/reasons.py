"""Explain in a sentence why a kernel was chosen, from its alternatives."""

from collections.abc import Sequence

from braid.targets.kernels.kernel_family import GENERIC
from braid.tools.explain.kernel_rows import Candidate, Searched
from braid.tools.explain.quantities import format_seconds

_WITHOUT_FAMILY = {
    "roofline": "no kernel family makes it, so its cost is that of the roofline",
    "declared": "the model declares its cost",
    "measured": "a profile has its cost",
}


def reason_of(
    candidates: Sequence[Candidate],
    family: str,
    is_recorded: bool,
    is_reorder: bool,
    searched: Searched | None = None,
) -> str:
    """Return why the candidate that is taken won, and where its schedule is from."""
    parts = [_of_layouts(candidates, is_reorder), _of_family(candidates, family)]
    if is_recorded:
        parts.append("its schedule is from the record of a search" + _gained(searched))
    elif searched is not None and searched.kept:
        parts.append(f"a search kept its default schedule ({format_seconds(searched.default)})")
    return "; ".join(part for part in parts if part)


def _gained(searched: Searched | None) -> str:
    if searched is None or searched.kept:
        return ""
    was, now = format_seconds(searched.default), format_seconds(searched.seconds)
    return f" ({now} instead of {was} by default)"


def _of_layouts(candidates: Sequence[Candidate], is_reorder: bool) -> str:
    taken = next(each for each in candidates if each.is_taken)
    others = [each for each in candidates if each.layouts != taken.layouts]
    if is_reorder:
        return "what makes the tensor and what reads it are together cheapest in unlike layouts"
    if not others:
        return "no other layouts are offered"
    cheaper = [each for each in others if each.seconds < taken.seconds * (1 - 1e-9)]
    if not cheaper:
        return f"the cheapest of {len(others) + 1} choices of layouts by itself"
    best = min(cheaper, key=lambda each: each.seconds)
    saved = format_seconds(taken.seconds - best.seconds)
    if best.extra is None:
        return f"{best.layouts} would save {saved} here, but nothing around it fits"
    bound = "" if best.is_exact else "at most "
    return (
        f"{best.layouts} would save {saved} a run here, but the model would take "
        f"{bound}{format_seconds(best.extra)} more in all"
    )


def _of_family(candidates: Sequence[Candidate], family: str) -> str:
    taken = next(each for each in candidates if each.is_taken)
    rivals = [each for each in candidates if each.layouts == taken.layouts and not each.is_taken]
    rivals = [each for each in rivals if each.family != family]
    if not family:
        return _WITHOUT_FAMILY.get(taken.source, f"its cost is {taken.source}")
    if rivals:
        return f"'{family}' is the cheapest of {len(rivals) + 1} kernels in these layouts"
    if family == GENERIC:
        return "no specialized kernel takes it, so generic loops compute it"
    return f"only '{family}' makes a kernel in these layouts"

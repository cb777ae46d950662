"""Facts about code for devices without running it: times, rates and resources."""

from collections.abc import Sequence

from braid.runtime.manifest import DeviceCodeSpec


def seconds_by_device(codes: Sequence[DeviceCodeSpec]) -> dict[str, float]:
    """Return how long devices take of a run of the model, as far as that is known."""
    known: dict[str, float] = {}
    for code in codes:
        if code.seconds >= 0:
            known[code.device] = known.get(code.device, 0.0) + code.seconds
    return known


def inputs_per_second(codes: Sequence[DeviceCodeSpec]) -> dict[str, float]:
    """Return how many inputs of a stream devices take per second at most, where it is known.

    Of several functions on a device, the slowest counts.
    """
    slowest: dict[str, float] = {}
    for code in codes:
        if code.interval > 0:
            slowest[code.device] = max(slowest.get(code.device, 0.0), code.interval)
    return {device: 1 / interval for device, interval in slowest.items()}


def resources_by_device(
    codes: Sequence[DeviceCodeSpec],
) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the resources of devices that functions take, and those that exist, where known."""
    known: dict[str, dict[str, tuple[float, float]]] = {}
    for code in codes:
        for one in code.resources:
            own = known.setdefault(code.device, {})
            used, _ = own.get(one.name, (0.0, 0.0))
            own[one.name] = (used + one.used, one.available)
    return known

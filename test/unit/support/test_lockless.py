"""Properties that are computed once, and hold no lock meanwhile."""

import threading

from braid.support.lockless import lockless_property


class Slow:
    def __init__(self) -> None:
        self.begun, self.go, self.count = threading.Event(), threading.Event(), 0

    @lockless_property
    def value(self) -> int:
        """Return a number."""
        self.count += 1
        self.begun.set()
        assert self.go.wait(20)
        return 7


def test_it_is_computed_once() -> None:
    slow = Slow()
    slow.go.set()
    assert slow.value + slow.value == 14
    assert slow.count == 1
    assert Slow.value.__doc__ == "Return a number."


def test_other_objects_do_not_wait() -> None:
    slow, other = Slow(), Slow()
    other.go.set()
    thread = threading.Thread(target=lambda: slow.value, daemon=True)
    thread.start()
    assert slow.begun.wait(20)
    assert other.value == 7
    assert thread.is_alive()  # with one lock for all objects, its end would have been waited for
    slow.go.set()
    thread.join(20)
    assert not thread.is_alive()

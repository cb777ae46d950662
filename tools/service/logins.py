"""Browser sessions: temporary secrets in cookies that authenticate in place of a token."""

import hashlib
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_MOST = 1024
"""The maximum number of session secrets; beyond it the oldest session ends."""
_GRACE = 30.0
"""The seconds for which a replaced secret stays valid, for requests already sent with it."""


@dataclass
class Login:
    """The session of the user whose token has the digest `token`.

    It ends by request, after some time without use, or at a maximum age. Times are of the clock of
    `Logins`.
    """

    token: str
    began: float
    used: float
    is_ended: bool = False


@dataclass
class _Secret:
    login: Login
    made: float
    replaced: float | None = None


@dataclass
class Logins:
    """The sessions of one server process, kept in memory.

    A session ends `idle` seconds after its last request, and `longest` seconds after it began. Its
    secret is replaced every `rotation` seconds.
    """

    idle: float = 1800.0
    longest: float = 43200.0
    rotation: float = 300.0
    clock: Callable[[], float] = time.monotonic
    _secrets: dict[str, _Secret] = field(default_factory=dict[str, _Secret])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, token: str) -> str:
        """Begin a session for the token with this digest and return its secret."""
        now = self.clock()
        with self._lock:
            self._forget(now)
            return self._add(Login(token, now, now), now)

    def find(self, secret: str) -> Login | None:
        """Return the session of a secret, None if there is none; this counts as a use of it."""
        now = self.clock()
        with self._lock:
            known = self._secrets.get(_digest(secret))
            if known is None or self._is_over(known, now):
                return None
            known.login.used = now
            return known.login

    def rotated(self, secret: str) -> str | None:
        """Replace a secret older than `rotation` and return the new one, else None."""
        now = self.clock()
        with self._lock:
            known = self._secrets.get(_digest(secret))
            if known is None or known.replaced is not None or now - known.made < self.rotation:
                return None
            known.replaced = now
            return self._add(known.login, now)

    def end(self, secret: str) -> None:
        """End the session of a secret; all of its secrets become invalid."""
        with self._lock:
            if (known := self._secrets.get(_digest(secret))) is not None:
                known.login.is_ended = True
            self._forget(self.clock())

    def lasts(self, login: Login) -> bool:
        """Return whether a session is still valid."""
        now = self.clock()
        is_fresh = now - login.used < self.idle and now - login.began < self.longest
        return is_fresh and not login.is_ended

    def _add(self, login: Login, now: float) -> str:
        secret = secrets.token_urlsafe(32)
        self._secrets[_digest(secret)] = _Secret(login, now)
        while len(self._secrets) > _MOST:
            self._secrets.pop(next(iter(self._secrets))).login.is_ended = True
        return secret

    def _is_over(self, known: _Secret, now: float) -> bool:
        was_replaced = known.replaced is not None and now - known.replaced > _GRACE
        return was_replaced or not self.lasts(known.login)

    def _forget(self, now: float) -> None:
        self._secrets = {k: s for k, s in self._secrets.items() if not self._is_over(s, now)}


def _digest(secret: str) -> str:
    """Return the digest by which a secret is looked up, so that timing reveals no prefix of it."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()

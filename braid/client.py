"""A client of `braid serve`: submits models, follows their tasks, and fetches the results.

```python
client = braid.Client("http://tuner:8017", token)
task = client.submit("model.onnx", seconds=300)
for event in client.events(task):
    print(event)
client.wait(task)
y = client.run(task, {"x": x})["y"]
```
"""

import io
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from braid.support.checked_keywords import checked_path, checks_methods
from braid.support.errors import (
    BraidError,
    Note,
    SourceLocation,
    check_kinds,
    missing_file_hint,
)

_FINAL = ("done", "failed", "cancelled")
_SECONDS = 60.0
"""Without a word from the server; it sends a comment in a quiet stream of events before that."""


@dataclass(frozen=True)
class TaskEvent:
    """An event of a task; `data` depends on the kind, and `number` grows.

    `state` has the state, `step` the present step, `line` a line of text, `asks` whether the search
    waits for an order, `kernels` the kernels and their times in seconds, `report` the report of the
    compilation, and `error` why the task failed.
    """

    number: int
    kind: str
    data: Mapping[str, Any]


@checks_methods("Client")
class Client:
    """Speaks with the server at `url`, which knows its users by tokens.

    All methods raise `BraidError` if the server cannot be reached, or refuses the request.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        """Remember where the server is; nothing is sent yet."""
        check_kinds(texts={"token": token})
        try:
            if not isinstance(cast(object, url), str):
                raise ValueError(f"a {type(url).__name__}")
            parts = urllib.parse.urlsplit(url)
            has_user = "@" in parts.netloc
        except ValueError as error:
            raise BraidError(
                "the address of the server is not a URL", hint="such as http://localhost:8017"
            ) from error
        if has_user:  # never in a message
            raise BraidError(
                "the address of the server has a user or password, which braid does not use",
                hint="give it the token that 'braid serve token add NAME' prints",
            )
        if parts.scheme not in ("http", "https"):
            raise BraidError(
                f"'{url}' is not the address of a server", hint="such as http://localhost:8017"
            )
        self.url = url.rstrip("/")
        self._token = None if token is None else token.strip()  # files of tokens end in a newline
        if self._token and not (self._token.isascii() and self._token.isprintable()):
            raise BraidError(
                "the token has characters that no token has",
                hint="give the token that 'braid serve token add NAME' printed",
            )

    def submit(self, model: str | os.PathLike[str], **options: Any) -> str:
        """Queue the `.onnx` or `.mlir` file at a path; returns the name of the task.

        Options are those of the server's `POST /tasks`: `seconds`, `levels`, `trials`, `target`,
        `on_miss` and others; None is as not given. `shapes`, `dims`, `constants`, `shape_buckets`
        and `shape_bounds` are mappings as `braid.compile` takes them, and `at` one of sizes at
        which the explanation shows the plan of memory. `threshold` is a number, several, or a text
        as on the command line, "0.7,1.0"; `space` is the path of a file of spaces, or its text, in
        TOML or, with `space_format="json"`, in JSON.
        """
        hint = "such as 'model.onnx'; braid.compile takes models in memory"
        path = Path(checked_path("Client.submit", model, "an .onnx or .mlir file", hint))
        given = {"name": path.name, **_texts(options)}
        query = urllib.parse.urlencode(
            {k: str(v).lower() if isinstance(v, bool) else v for k, v in given.items()}, doseq=True
        )
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                return str(self._json("POST", f"/tasks?{query}", file, size)["id"])
        except OSError as error:
            raise BraidError(
                f"cannot read '{path}': {error.strerror or error}", hint=missing_file_hint(path)
            ) from error

    def task(self, task: str) -> dict[str, Any]:
        """Return the server's document of a task: `state`, `error`, timed `kernels` and others."""
        return self._json("GET", f"/tasks/{task}")

    def events(self, task: str, after: int = 0) -> Iterator[TaskEvent]:
        """Yield the events of a task after the event of a number, until it ends."""
        with closing(self._open("GET", f"/tasks/{task}/events?after={after}")) as stream:
            try:
                for line in stream:
                    if line.startswith(b"data:"):
                        event = json.loads(line[5:])
                        yield TaskEvent(event["number"], event["kind"], event["data"])
            except (OSError, HTTPException, ValueError) as error:
                raise self._unreachable(error) from error

    def wait(self, task: str) -> dict[str, Any]:
        """Return the task once it is done.

        Raises:
            BraidError: the task has failed, with the diagnostic of that, or was cancelled.

        """
        while (found := self.task(task))["state"] not in _FINAL:
            for _ in self.events(task):
                pass
        if found["state"] != "done":
            raise _failure(found)
        return found

    def order(self, task: str, line: str) -> None:
        """Answer a search that asks: go, stop, quit, threshold X, level N, or space NAME=V,V."""
        body = json.dumps({"line": line}).encode()
        self._json("POST", f"/tasks/{task}/orders", body, kind="application/json")

    def cancel(self, task: str) -> None:
        """End a task, with all processes that work on it."""
        self._json("POST", f"/tasks/{task}/cancel")

    def delete(self, task: str) -> None:
        """Delete a task and its files on the server; a running task is ended first."""
        self._read("DELETE", f"/tasks/{task}")

    def artifact(self, task: str) -> bytes:
        """Return the compiled model, which `braid.load` reads from a file."""
        return self._read("GET", f"/tasks/{task}/artifact")

    def run(self, task: str, inputs: Mapping[str, object]) -> dict[str, NDArray[Any]]:
        """Run the compiled model on the server, on inputs by name; returns its outputs by name.

        Raises:
            BraidError: inputs are not numbers by name, or the server refuses them.

        """
        if not isinstance(cast(object, inputs), Mapping):
            raise BraidError(
                f"Client.run takes inputs by name, got {type(inputs).__name__}",
                hint="such as client.run(task, {'x': x})",
            )
        body, arrays = io.BytesIO(), {name: np.asarray(value) for name, value in inputs.items()}
        if any(array.dtype.hasobject for array in arrays.values()):
            raise BraidError("an input has Python objects, expected numbers")
        np.savez(body, allow_pickle=False, **cast(dict[str, Any], arrays))
        data = self._read("POST", f"/tasks/{task}/run", body.getvalue())
        with np.load(io.BytesIO(data), allow_pickle=False) as results:
            return {str(name): np.asarray(results[name]) for name in results.files}

    def _json(
        self,
        method: str,
        path: str,
        body: bytes | IO[bytes] | None = None,
        size: int | None = None,
        kind: str = "application/octet-stream",
    ) -> dict[str, Any]:
        return json.loads(self._read(method, path, body, size, kind))

    def _read(
        self,
        method: str,
        path: str,
        body: bytes | IO[bytes] | None = None,
        size: int | None = None,
        kind: str = "application/octet-stream",
    ) -> bytes:
        with closing(self._open(method, path, body, size, kind)) as response:
            try:
                return response.read()
            except (OSError, HTTPException) as error:
                raise self._unreachable(error) from error

    def _open(
        self,
        method: str,
        path: str,
        body: bytes | IO[bytes] | None = None,
        size: int | None = None,
        kind: str = "application/octet-stream",
    ) -> HTTPResponse:
        headers: dict[str, str] = {}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers["Content-Type"] = kind
        if size is not None:
            headers["Content-Length"] = str(size)
        request = urllib.request.Request(
            f"{self.url}{path}", data=body, headers=headers, method=method
        )
        try:
            return cast(HTTPResponse, urllib.request.urlopen(request, timeout=_SECONDS))
        except urllib.error.HTTPError as error:
            raise _refusal(error) from error
        except (OSError, HTTPException) as error:
            raise self._unreachable(error, uploads=size is not None) from error

    def _unreachable(self, error: Exception, *, uploads: bool = False) -> BraidError:
        reason = getattr(error, "reason", error)
        if (
            uploads
            and isinstance(reason, ConnectionError)
            and not isinstance(reason, ConnectionRefusedError)
        ):
            return BraidError(
                f"the server at '{self.url}' has closed the connection while the model was sent",
                hint="the model may be larger than the server takes, see 'braid serve --help'",
            )
        return BraidError(
            f"the server at '{self.url}' cannot be reached: {reason}",
            hint="`braid serve` starts one, and says its address",
        )


def _texts(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as the query has them; mappings are texts `NAME=VALUE`.

    Raises:
        BraidError: a file of spaces cannot be read.

    """
    texts: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, Mapping):
            entries = cast("Mapping[str, object]", value).items()
            is_value = name == "constants"
            texts[name] = [f"{entry}={_text(each, is_value)}" for entry, each in entries]
        elif name == "space" and isinstance(value, os.PathLike):
            path = Path(cast("os.PathLike[str]", value))
            texts[name] = _read(path)
            texts.setdefault("space_format", "json" if path.suffix == ".json" else "toml")
        elif value is not None:
            texts[name] = value
    return texts


def _text(value: object, is_value: bool) -> str:
    """Return sizes as the command line has them, or the value of an input as JSON."""
    plain: object = np.asarray(value).tolist()
    if is_value:
        return json.dumps(plain)
    sizes = cast("list[object]", plain) if isinstance(plain, list) else [plain]
    return ",".join(map(str, sizes))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BraidError(f"cannot read '{path}': {reason}") from error


def _failure(task: Mapping[str, Any]) -> BraidError:
    """Return the error of a task that is not done, as the server's compiler raised it."""
    if task["state"] == "cancelled":
        return BraidError(f"task {task['id']} was cancelled", hint="submit the model again")
    errors = [each for each in task.get("diagnostics", ()) if each["severity"] == "error"]
    if not errors:
        return BraidError(
            f"task {task['id']} has failed: {task.get('error') or 'without a reason'}"
        )
    last = errors[-1]
    return BraidError(
        last["message"],
        location=_location(last),
        hint=last["hint"],
        notes=[Note(note["message"], _location(note)) for note in last["notes"]],
    )


def _location(place: Mapping[str, Any]) -> SourceLocation | None:
    if place["file"] is None:
        return None
    return SourceLocation(place["file"], place["line"] or 0, place["column"] or 0)


def _refusal(error: urllib.error.HTTPError) -> BraidError:
    hints = {
        401: "give the token that 'braid serve token add NAME' prints",
        429: "try again when fewer tasks wait",
    }
    with closing(error):
        try:
            detail: Any = json.load(error)["detail"]
        except (ValueError, KeyError, TypeError, OSError):
            detail = error.reason
    if isinstance(detail, list):  # what does not hold of the options
        wrong = cast("list[dict[str, Any]]", detail)
        detail = "; ".join(f"{'.'.join(map(str, e['loc'][1:]))}: {e['msg']}" for e in wrong)
    return BraidError(f"the server refuses: {detail}", hint=hints.get(error.code))

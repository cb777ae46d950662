"""Bodies of requests that go to disk piece by piece, as far as they are allowed to."""

import os
from pathlib import Path

from fastapi import HTTPException, Request
from starlette.requests import ClientDisconnect

from braid.support.byte_sizes import format_size
from braid.support.private_files import FILE_MODE


async def receive(request: Request, path: Path, limit: int) -> int:
    """Write the body of a request to a new file; its size in bytes.

    Raises:
        HTTPException: 400 for a client that disconnects, 413 for more than `limit` bytes, where
        reading stops; no file is left.

    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)
    size = 0
    try:
        with open(path, "xb", opener=_private) as file:
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit:
                    raise _too_large(limit)
                file.write(chunk)
    except ClientDisconnect:
        path.unlink(missing_ok=True)
        raise HTTPException(400, "the body ended too early") from None
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return size


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)


def _too_large(limit: int) -> HTTPException:
    # The rest of the body is not read: the connection cannot be used again.
    what = f"the body is larger than {format_size(limit)}"
    return HTTPException(413, what, headers={"Connection": "close"})

"""Several files as one: a tar archive that is the same for the same files."""

import io
import tarfile
from collections.abc import Mapping


def tar_of(files: Mapping[str, bytes]) -> bytes:
    """Return an archive of files by their names, which may have folders; no times and owners are in
    it.
    """
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return written.getvalue()

"""Of all that is no regular file, only `/dev/null` is read: as the empty file it stands for."""

from pathlib import Path

import pytest

from braid.support.input_files import NotRegularError, map_regular, open_regular, read_text


def test_the_null_device_is_an_empty_file(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    for path in ("/dev/null", link):
        assert read_text(path) == "" and bytes(map_regular(path)) == b""


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/full", "/dev"])
def test_others_are_refused(path: str) -> None:
    with pytest.raises(NotRegularError, match="expected a file"):
        open_regular(path)

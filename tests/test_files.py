from pathlib import Path

import pytest

from rlgraph.files import replace_bytes, replace_text


def test_a_write_that_fails_leaves_the_old_file_and_no_partial_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    replace_bytes(path, [b"old"])

    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_bytes(path, [b"new"])
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("file", b"old")]


def test_text_is_written_as_it_stands_in_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace_text(path, ["one\n", "zwölf\r\n"])
    assert path.read_bytes() == "one\nzwölf\r\n".encode()

"""What the command line tests share."""

from types import SimpleNamespace

import pytest

from peer.cli import main


@pytest.fixture
def run(capsys, monkeypatch):
    """A function that runs a command in this process: status, lines of output, error text."""

    def run(*words, stdin=b""):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=SimpleNamespace(read=lambda: stdin)))
        try:
            status = main([str(word) for word in words])
        except SystemExit as exc:
            status = exc.code
        captured = capsys.readouterr()
        return SimpleNamespace(status=status, out=captured.out, lines=captured.out.splitlines(), err=captured.err)

    return run


@pytest.fixture
def news(tmp_path):
    """A small document on disk."""
    path = tmp_path / "news.xml"
    path.write_text(
        "<news><item id='1'><topic>ACME</topic><author>A</author><author>B</author>"
        "<headline>Up &amp; <b>away</b></headline></item><item id='2'><topic>Oth\u00e9r</topic></item></news>"
    )
    return path

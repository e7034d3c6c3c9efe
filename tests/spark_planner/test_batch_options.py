"""Options of ``distributary plan`` that change what is planned."""

import json

import pytest

from peer.cli import main

SUBSCRIPTIONS = ["//a[b{val}][c{val}]", "//a/b{val}", "//a/c{val}", "//a{id}/b{id,val}", "//a{id}/c{id,val}"]


@pytest.fixture
def planned(tmp_path, capsys):
    """Plan with some options, and return the figures."""
    (tmp_path / "documents").mkdir()
    for n in range(4):
        body = "".join(f"<a><b>{i}{n}</b><c>{i}</c></a>" for i in range(9))
        (tmp_path / "documents" / f"{n}.xml").write_text(f"<r>{body}</r>")
    (tmp_path / "subscriptions.txt").write_text("\n".join(SUBSCRIPTIONS))

    def plan(*options):
        out = tmp_path / f"plan{len(list(tmp_path.iterdir()))}"
        status = main([
            "plan", "--subscriptions", str(tmp_path / "subscriptions.txt"), "--documents",
            str(tmp_path / "documents"), "--out", str(out), "--master", "local[1]", "--json", *options,
        ])  # fmt: skip
        told = capsys.readouterr()
        return json.loads(told.out) if status == 0 else told.err

    return plan


def test_latency_is_left_alone_where_that_is_asked_for_and_weights_are_checked(planned):
    plain = planned("--no-latency", "--no-joins", "--link-weight", "4096")
    latency = plain["latency_s"]
    assert latency["best"] == latency["ties"] == latency["loga"]
    assert "--link-weight -1: weights are from 0" in planned("--link-weight", "-1")

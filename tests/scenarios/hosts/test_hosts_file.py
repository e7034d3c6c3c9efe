"""Hosts files: what a line may say, and that a wrong one is named."""

from pathlib import Path

import pytest

from scenarios.hosts.hosts_file import BadHosts, deal, parse_hosts, read_hosts


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("user=ann", "begins with an address"),
        ("-oProxyCommand=evil", "begins with an address"),
        ("-v", "begins with an address"),
        ("-v@there", "begins with an address"),
        ("there user=-v", "expected an address, or user@address"),
        ("ann@", "expected an address, or user@address"),
        ("@there", "expected an address, or user@address"),
        ("there port=0", "port=0: expected a number from 1 to 65535"),
        ("there port=70000", "expected a number"),
        ("there port=\u0663", "expected a number"),
        ("there speed=9", "speed=9: expected one of user=, port="),
        ("there fast", "fast: expected one of"),
        ("there user=", "user= says nothing"),
        ("there user=a user=b", "user is said twice"),
        ("ann@there user=b", "user is said twice"),
        ("there identity=nowhere.key", "nowhere.key: there is no such file"),
        ("there folder=here", "expected a path from / on"),
        ("there folder=/" + 70 * "x", "of 60 letters at most"),
        ("there command='distributary", "No closing quotation; check the quotes"),
        ("there command='\"x'", "No closing quotation"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(line, said, tmp_path):
    with pytest.raises(BadHosts) as caught:
        parse_hosts(f"# machines\n\n10.0.0.1\n{line}\n", "hosts.txt", tmp_path)
    assert said in str(caught.value)
    assert str(caught.value).startswith("hosts.txt line 4: ")


def test_settings_reach_ssh_and_files_count_from_the_folder(tmp_path):
    (tmp_path / "key").write_text("")
    text = "ann@there port=2222 identity=key inside=10.0.0.9 folder=/var/tmp/ command='py -m peer'  # fast"
    [machine] = parse_hosts(text, "hosts.txt", tmp_path)
    assert machine.options == ["-l", "ann", "-p", "2222", "-i", str(tmp_path / "key"), "-o", "IdentitiesOnly=yes"]
    assert (machine.address, machine.inside, machine.folder) == ("there", "10.0.0.9", "/var/tmp")
    assert machine.command == ("py", "-m", "peer")


def test_a_file_that_is_none_or_empty_or_no_text_is_refused(tmp_path):
    with pytest.raises(BadHosts, match="No such file"):
        read_hosts(tmp_path / "nothing.txt")
    (tmp_path / "empty.txt").write_text("# nobody\n")
    with pytest.raises(BadHosts, match=r"empty\.txt: names no machine"):
        read_hosts(tmp_path / "empty.txt")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(BadHosts, match="not UTF-8"):
        read_hosts(tmp_path / "bytes.txt")
    (tmp_path / "long.txt").write_bytes(b"there\n" * 200_000)
    with pytest.raises(BadHosts, match="longer than"):
        read_hosts(tmp_path / "long.txt")


def test_the_first_machine_is_the_sources_and_hosts_take_the_others_in_turn():
    machines = parse_hosts("s\na\nb", "hosts.txt", Path())
    dealt = deal(machines, "source", ["h00", "h01", "h02"])
    assert {name: one.address for name, one in dealt.items()} == {
        "source": "s",
        "h00": "a",
        "h01": "b",
        "h02": "a",
    }
    assert {one.address for one in deal(machines[:1], "source", ["h00", "h01"]).values()} == {"s"}

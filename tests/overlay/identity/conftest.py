"""A network that tests share where they do not change it."""

import pytest

from tests.overlay.identity.networks import MemoryNet, Net


@pytest.fixture(scope="session")
def net(tmp_path_factory):
    return Net(tmp_path_factory.mktemp("net"))


@pytest.fixture(scope="session")
def memory_net():
    return MemoryNet()

"""Networks to test with: made in a folder, with sites that joined without a conversation."""

from datetime import UTC, datetime, timedelta

from overlay.identity import Address, NetworkSettings, Role, Signer, create_network, first_list, install
from overlay.identity.credential import prepare_key
from overlay.identity.dht_keys import DhtKeys, fresh_dht_key
from overlay.identity.issuing import Issuer, make_intermediate, make_root, make_site
from overlay.identity.keys import fresh_key, public_bytes

NOW = datetime(2030, 5, 17, 12, 30, 15, 250_000, tzinfo=UTC)
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
ADDRESS = Address("source.example", 7400)


class Net:
    """A network with its authority on disk and members in folders beside it."""

    def __init__(self, home, name="meteo", now=NOW):
        self.home = home
        self.made = create_network(home / "source", name, now, addresses=[ADDRESS])
        self.authority, self.source = self.made.authority, self.made.credential
        self.root = self.authority.root
        self.now = now
        self.revocations = first_list(name, self.authority.intermediate, dht_key=1)

    def join(self, site, roles=(Role.SUBSCRIBER,), now=None, since=0):
        folder = self.home / site
        key = prepare_key(folder)
        chain = self.authority.issue(public_bytes(key), site, set(roles), now or self.now, since=since)
        return install(folder, self.root, self.source.settings, chain)

    def signer(self, site, roles=(Role.SUBSCRIBER,), now=None, since=0):
        key = fresh_key()
        chain = self.authority.issue(public_bytes(key), site, set(roles), now or self.now, since=since)
        return Signer.of(key, chain, self.root)


class MemoryNet:
    """The certificates of a network without files, for tests that make their own kind of wrong ones."""

    def __init__(self, name="meteo", now=NOW):
        self.name = name
        self.root, self.root_issuer = make_root(fresh_key(), name, now)
        key = fresh_key()
        self.intermediate = Issuer(make_intermediate(key.public_key(), self.root_issuer, name, now), key)

    def chain(self, key, site="b", roles=(Role.SUBSCRIBER,), now=NOW, **other):
        said = {"network": self.name, "site": site, "roles": set(roles), "since": 0} | other
        return make_site(public_bytes(key), self.intermediate, now, **said)


def settings(name="meteo"):
    return NetworkSettings(name, (ADDRESS,), DhtKeys(fresh_dht_key(1)))

"""TLS and tokens: who is believed, who one is, files that are replaced, and arguments that do not go together."""

import subprocess

import lessor
import lessor.wire
import pytest
from serving import PROGRAM, Server, until

SERVER = "spiffe://acme/ns/lessor/sa/root"
CLIENT = "spiffe://acme/ns/shop/sa/web"
RULES = """
version: 1
default: deny
clients:
  - {{identity: "{identity}", client_id: "web*", resources: ["rate*"]}}
"""


class Authority:
    """An authority for a test, and what it certifies."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        extension = "keyUsage=critical,keyCertSign,cRLSign"
        self.certificate, self._key = self._make(name, ["-x509", "-days", "30", "-addext", extension])

    def issue(self, name, names):
        """A certificate, and its key."""
        request, key = self._make(name, [])
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName={names}\n")
        certificate = self.folder / f"{name}.pem"
        self._run(
            *("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial"),
            *("-days", "30", "-extfile", extensions, "-out", certificate),
        )
        return certificate, key

    def _make(self, name, more):
        made, key = self.folder / f"{name}-{self.name}.made", self.folder / f"{name}-{self.name}.key"
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        self._run("req", *curve, *more, "-subj", f"/CN={name}", "-keyout", key, "-out", made)
        return made, key

    def _run(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("pki"), "first")


@pytest.fixture(scope="module")
def web(authority):
    """The certificate and the key of a client."""
    return authority.issue("web", f"URI:{CLIENT}")


@pytest.fixture(scope="module")
def secured(authority, tmp_path_factory):
    """A server that speaks TLS, asks for a certificate, and lets one client in."""
    certificate, key = authority.issue("root", f"URI:{SERVER},DNS:localhost,IP:127.0.0.1")
    rules = tmp_path_factory.mktemp("access") / "access.yaml"
    rules.write_text(RULES.format(identity=CLIENT))
    flags = ["--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", authority.certificate, "--access", rules]
    server = Server(flags=flags)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def keyed(tmp_path_factory):
    """A server in plain that lets nobody in without a token, and a function that makes them."""
    folder = tmp_path_factory.mktemp("tokens")
    key, rules = folder / "auth.key", folder / "access.yaml"
    key.write_text("5e" * 32)
    rules.write_text("version: 1\ndefault: deny\n")
    server = Server(flags=["--access", rules, "--auth-key", key])

    def token(identity, ids="web*"):
        arguments = ["--identity", identity, "--client-id", ids, "--resource", "rate*", "--ttl", "1h"]
        made = subprocess.run(
            [PROGRAM, "token", "new", "--key", key, *arguments], check=True, capture_output=True, text=True
        )
        return made.stdout.strip()

    yield server, token
    server.stop()


def has(resource, capacity):
    return lambda: resource.lease.capacity == pytest.approx(capacity, abs=1e-5)


def wire_has(resource, capacity):
    return lambda: resource.capacity == pytest.approx(capacity, abs=1e-5)


def refusal(resource):
    """Why the client over grpcio has nothing of it."""
    with pytest.raises(lessor.wire.Refused) as refused:
        resource.acquire(timeout=0.1)
    return str(refused.value)


@pytest.mark.parametrize("as_bytes", [False, True], ids=["files", "bytes"])
def test_a_client_is_believed_by_its_certificate_and_believes_the_server(secured, authority, web, as_bytes, name):
    pems = dict(ca=authority.certificate, cert=web[0], key=web[1])
    if as_bytes:
        pems = {argument: path.read_bytes() for argument, path in pems.items()}
    with lessor.Client(secured.address, id="web-1", server_identity="spiffe://acme/ns/lessor/sa/*", **pems) as client:
        until("a lease", has(client.rate("rate" + name, wants=30), 30))
    # By the name that it is called by.
    with lessor.Client(secured.address, id="web-2", **pems) as client:
        until("a lease", has(client.rate("rate" + name, wants=30), 30))


def test_who_is_not_believed_gets_nothing_and_is_told_why(secured, authority, web, tmp_path, name):
    other = Authority(tmp_path, "other")
    forged = other.issue("forged", f"URI:{CLIENT}")
    ca, (cert, key) = authority.certificate, web
    for settings, why in [
        (dict(ca=other.certificate, cert=cert, key=key), "certificate"),
        (dict(ca=ca, cert=forged[0], key=forged[1]), "certificate"),
        (dict(ca=ca, cert=cert, key=key, server_identity="spiffe://acme/ns/other/sa/*"), "spiffe://acme/ns/other"),
        ({}, "TLS"),
    ]:
        with lessor.Client(secured.address, id="web-1", **settings) as client:
            rate = client.rate("rate" + name, wants=1)
            until(why, lambda rate=rate, why=why: why in (rate.lease.last_error or ""))
            assert not rate.try_acquire()


def test_a_certificate_that_is_replaced_is_shown_from_then_on(secured, authority, web, tmp_path, name):
    cert, key = tmp_path / "shown.pem", tmp_path / "shown.key"
    stranger = authority.issue("stranger", "URI:spiffe://acme/ns/other/sa/stranger")
    for file, content in zip((cert, key), stranger, strict=True):
        file.write_bytes(content.read_bytes())
    settings = dict(ca=authority.certificate, cert=cert, key=key)
    with lessor.Client(secured.address, id="web-1", **settings) as client:
        rate = client.rate("rate" + name, wants=30)
        until("no rule lets it in", lambda: "stranger" in (rate.lease.last_error or ""))
        for file, content in zip((cert, key), web, strict=True):
            file.write_bytes(content.read_bytes())
    # One that is made now shows the other, and so does one over grpcio that goes on.
    with lessor.Client(secured.address, id="web-1", **settings) as client:
        until("a lease", has(client.rate("rate" + name, wants=30), 30))


def test_the_client_over_grpcio_speaks_tls_and_reads_its_files_again(secured, authority, web, tmp_path, name):
    cert, key = tmp_path / "shown.pem", tmp_path / "shown.key"
    stranger = authority.issue("passer-by", "URI:spiffe://acme/ns/other/sa/passer-by")
    for file, content in zip((cert, key), stranger, strict=True):
        file.write_bytes(content.read_bytes())
    client = lessor.wire.Client(secured.address, id="web-3", ca=authority.certificate, cert=cert, key=key)
    with client:
        rate = client.rate("rate" + name, wants=30)
        until("refused", lambda: "passer-by" in refusal(rate))
        for file, content in zip((cert, key), web, strict=True):
            file.write_bytes(content.read_bytes())
        until("a lease", wire_has(rate, 30))


def test_a_token_says_who_a_client_is_and_its_file_is_read_again(keyed, tmp_path, name):
    server, token = keyed
    with lessor.Client(server.address, id="web-1", token=token("web")) as client:
        until("a lease", has(client.rate("rate" + name, wants=30), 30))
    file = tmp_path / "token"
    file.write_text(token("other", ids="other*"))
    with (
        lessor.Client(server.address, id="web-2", token_file=file) as client,
        lessor.wire.Client(server.address, id="web-3", token_file=file) as wire,
    ):
        rate, other = client.rate("rate" + name, wants=30), wire.rate("rate" + name, wants=30)
        until("refused", lambda: "web-2" in (rate.lease.last_error or ""))
        assert other.capacity == 0
        file.write_text("no tökén", encoding="utf-8")
        until("no token", lambda: "is no token" in refusal(other))
        file.write_text(token("web") + "\n")
        until("a lease", has(rate, 30))
        until("a lease", wire_has(other, 30))


def test_a_token_goes_nowhere_in_plain(tmp_path):
    # Nothing is sent: it is an address for documentation.
    with lessor.Client("192.0.2.1:15000", id="web", token="lessor1.x", timeout=1) as client:
        rate = client.rate("rate", wants=1)
        until("said", lambda: "in plain text" in (rate.lease.last_error or ""))
    with lessor.wire.Client("192.0.2.1:15000", id="web", token="lessor1.x", timeout=1) as wire:
        other = wire.rate("rate", wants=1)
        until("said", lambda: "in plain text" in refusal(other))


def test_arguments_that_do_not_go_together_are_named(authority, web, tmp_path):
    ca, (cert, key) = authority.certificate, web
    nowhere = tmp_path / "missing.pem"
    for settings, why in [
        (dict(cert=cert, key=key), "cert and key: are given without ca; wanted the authorities of servers"),
        (dict(server_identity="a"), "server_identity: is given without ca; wanted the authorities of servers"),
        (dict(ca=ca, cert=cert), "cert: is given without key; wanted both"),
        (dict(ca=ca, key=key), "key: is given without cert; wanted both"),
        (dict(ca=ca, cert=cert, key=b"x"), "cert and key: one is a file and one a text; wanted two of a kind"),
        (dict(token="a", token_file="b"), "token: is given with token_file; wanted one of them"),
        (dict(ca=nowhere), f"ca {nowhere}"),
        (dict(ca=b"nothing"), "ca: found"),
        (dict(ca=ca, cert=cert, key=authority.issue("another", "DNS:another")[1]), "is not the key of"),
    ]:
        with pytest.raises(ValueError, match=".*") as raised:
            lessor.Client("localhost:1", **settings)
        assert why in str(raised.value), settings
    for settings, why in [
        (dict(cert=cert, key=key), "cert and key: are given without ca"),
        (dict(ca=ca, cert=cert), "cert and key: one is given, wanted both or neither"),
        (dict(token="a", token_file="b"), "token: is given with token_file"),
        (dict(token="\n"), "token: is no token, wanted one as `lessor token new` prints it"),
        (dict(token="a\nb"), "token: is no token, wanted one as `lessor token new` prints it"),
        (dict(ca=nowhere), "missing.pem"),
    ]:
        with pytest.raises(ValueError, match=why):
            lessor.wire.Client("localhost:1", id="web", **settings)
    with pytest.raises(TypeError, match="unexpected keyword argument \"tls\""):
        lessor.Client("localhost:1", tls=True)


def test_a_child_of_a_fork_shows_the_same(secured, authority, web, name):
    import os

    pems = dict(ca=authority.certificate, cert=web[0], key=web[1])
    with lessor.Client(secured.address, id="web-4", server_identity=SERVER, **pems) as client:
        rate = client.rate("rate" + name, wants=10)
        until("a lease", has(rate, 10))
        child = os.fork()
        if child == 0:
            try:
                rate.acquire(timeout=30)
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0

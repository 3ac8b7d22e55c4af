"""Fixtures: a server for all tests, one for a test, and clients of them."""

import lessor
import pytest
from serving import Server


@pytest.fixture(scope="session")
def server():
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def own_server():
    """A server that the test may kill."""
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def client(server, request):
    with lessor.Client(server.address, id="c") as client:
        yield client


@pytest.fixture
def name(request):
    """A part of a name that no other test uses."""
    return f"-{request.node.name}"

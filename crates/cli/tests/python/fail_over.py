"""Clients of Doorman's service that echo the whole lease, while the leader dies, in plain grpcio.

Usage: fail_over.py MESSAGES HOST:PORT,HOST:PORT

MESSAGES is the directory of doorman_pb2.py. They want more than there is. When all have their exact shares it says who leads;
from then on nobody may be without a lease for a moment, and all leases together are no more than there is, until everybody
has been granted a longer one by somebody else.
"""

import sys
import time

sys.path.insert(0, sys.argv[1])

import grpc  # noqa: E402
import doorman_pb2 as doorman  # noqa: E402

RESOURCE = "shared"
CAPACITY = 300.0
CLIENTS = 5
WANTS = 80.0
SHARE = CAPACITY / CLIENTS
# Shares are counted in millionths, and doubles are rounded.
EXACT = 2e-6
TICK = 0.05
# Far more than it takes.
PATIENCE = 60.0


class Servers:
    def __init__(self, addresses):
        self.addresses, self.calls, self.leader = addresses, {}, addresses[0]

    def call(self, address):
        if address not in self.calls:
            self.calls[address] = grpc.insecure_channel(address).unary_unary(
                "/doorman.Capacity/GetCapacity",
                request_serializer=doorman.GetCapacityRequest.SerializeToString,
                response_deserializer=doorman.GetCapacityResponse.FromString,
            )
        return self.calls[address]

    def ask(self, request):
        """The answer of the leader and where it is, or nothing."""
        try:
            answer = self.call(self.leader)(request, timeout=1)
        except grpc.RpcError:
            self.turn()
            return None
        if answer.HasField("mastership"):
            if answer.mastership.master_address:
                self.leader = answer.mastership.master_address
            else:
                self.turn()
            return None
        return answer, self.leader

    def turn(self):
        place = self.addresses.index(self.leader) if self.leader in self.addresses else 0
        self.leader = self.addresses[(place + 1) % len(self.addresses)]


class Client:
    def __init__(self, servers, name):
        self.servers, self.name = servers, name
        self.lease, self.granted_by, self.due = None, None, 0.0

    def holds(self):
        if self.lease is None or self.lease.expiry_time <= time.time():
            return 0.0
        return self.lease.capacity

    def tick(self):
        if time.monotonic() < self.due:
            return
        self.due = time.monotonic() + 0.2
        request = doorman.GetCapacityRequest(client_id=self.name)
        resource = request.resource.add(resource_id=RESOURCE, priority=0, wants=WANTS)
        if self.lease is not None:
            resource.has.CopyFrom(self.lease)
        found = self.servers.ask(request)
        if found is None:
            return
        answer, self.granted_by = found
        for response in answer.response:
            self.lease = response.gets
            self.due = time.monotonic() + response.gets.refresh_interval


def check_sum(clients):
    held = sum(round(client.holds() * 1e6) for client in clients)
    assert held <= CAPACITY * 1e6, f"{held} millionths are held"


def has_share(client):
    return abs(client.holds() - SHARE) < EXACT


def until(clients, what, is_so):
    """Everybody goes on until it is so. Nobody holds too much meanwhile."""
    give_up = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < give_up, f"never: {what}, {[str(client.lease) for client in clients]}"
        for client in clients:
            client.tick()
            check_sum(clients)
        time.sleep(TICK)


def main():
    servers = Servers(sys.argv[2].split(","))
    clients = [Client(servers, f"python-{number}") for number in range(CLIENTS)]
    until(clients, "all have their shares", lambda: all(has_share(client) for client in clients))
    leader = clients[0].granted_by
    print(f"led by {leader}", flush=True)

    latest = max(client.lease.expiry_time for client in clients)

    def renewed():
        for client in clients:
            # What it has is not taken from it for a moment.
            assert has_share(client), f"{client.name} has {client.holds()} of {SHARE}"
        by_another = all(client.granted_by != leader for client in clients)
        return by_another and all(client.lease.expiry_time > latest + 2 for client in clients)

    until(clients, "another leader renews all leases", renewed)
    print(f"{CLIENTS} kept what they had", flush=True)


main()

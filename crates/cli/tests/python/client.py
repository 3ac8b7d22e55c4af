"""Clients of Doorman's service that join, leave, grow and shrink at random, in plain grpcio.

Usage: client.py MESSAGES HOST:PORT (echoes|forgets) SEED

MESSAGES is the directory of doorman_pb2.py. After every answer the leases that clients hold must sum up to no more than
there is, though they miss some answers; in the end each must get its exact share within six rounds.
"""

import random
import sys
import time

sys.path.insert(0, sys.argv[1])

import grpc  # noqa: E402
import doorman_pb2 as doorman  # noqa: E402

RESOURCE = "fair-1"
CAPACITY = 5000.0
SAFE_CAPACITY = 10.0
STEPS = 400
ROUNDS = 6
# Shares are counted in millionths, and doubles are rounded.
EXACT = 2e-6


class Server:
    def __init__(self, address):
        channel = grpc.insecure_channel(address)
        grpc.channel_ready_future(channel).result(timeout=30)

        def method(name):
            request = getattr(doorman, name + "Request")
            response = getattr(doorman, name + "Response")
            call = channel.unary_unary(
                "/doorman.Capacity/" + name,
                request_serializer=request.SerializeToString,
                response_deserializer=response.FromString,
            )
            return lambda message: call(message, timeout=30)

        self.discovery = method("Discovery")
        self.get_capacity = method("GetCapacity")
        self.release_capacity = method("ReleaseCapacity")


class Client:
    def __init__(self, server, name, wants, echoes):
        self.server, self.name, self.wants, self.echoes = server, name, wants, echoes
        self.lease = None

    def holds(self):
        if self.lease is None or self.lease.expiry_time <= time.time():
            return 0.0
        return self.lease.capacity

    def ask(self, hears=True):
        """Asks, and believes the answer; if it does not hear it, it goes on with what it has."""
        request = doorman.GetCapacityRequest(client_id=self.name)
        resource = request.resource.add(resource_id=RESOURCE, priority=0, wants=self.wants)
        if self.lease is not None and self.echoes:
            resource.has.CopyFrom(self.lease)
        elif self.lease is not None:
            resource.has.expiry_time = self.lease.expiry_time
            resource.has.refresh_interval = self.lease.refresh_interval
            resource.has.capacity = self.lease.capacity
        answer = self.server.get_capacity(request)
        assert not answer.HasField("mastership"), answer
        assert len(answer.response) == 1, answer
        response = answer.response[0]
        assert response.resource_id == RESOURCE, answer
        assert response.safe_capacity == SAFE_CAPACITY, answer
        assert response.gets.refresh_interval >= 1, answer
        assert time.time() < response.gets.expiry_time <= time.time() + 61, answer
        assert response.gets.capacity <= self.wants + EXACT, (self.wants, answer)
        if hears:
            self.lease = response.gets

    def release(self):
        self.lease = None
        answer = self.server.release_capacity(
            doorman.ReleaseCapacityRequest(client_id=self.name, resource_id=[RESOURCE])
        )
        assert not answer.HasField("mastership"), answer


def check_sum(clients):
    # Leases are whole millionths, so that the sum can be exact.
    held = sum(round(client.holds() * 1e6) for client in clients)
    assert held <= CAPACITY * 1e6, f"{held} millionths are held"


def wants(dice):
    return dice.choice([0.0, 1e9, dice.uniform(0.0, 100.0), dice.uniform(0.0, 2000.0)])


def fair_shares(clients):
    """Who wants less than an equal share of what is left gets it, the others share the rest."""
    shares, left = {}, CAPACITY
    for place, client in enumerate(sorted(clients, key=lambda client: client.wants)):
        shares[client.name] = min(client.wants, left / (len(clients) - place))
        left -= shares[client.name]
    return shares


def act(server, clients, step, echoes, dice):
    lot = dice.random()
    if lot < 0.3 or not clients:
        clients.append(Client(server, f"python-{step}", wants(dice), echoes))
        clients[-1].ask()
    elif lot < 0.5:
        clients.pop(dice.randrange(len(clients))).release()
    else:
        client = dice.choice(clients)
        client.wants *= dice.uniform(1.0, 4.0) if lot < 0.75 else dice.uniform(0.0, 1.0)
        client.ask(hears=dice.random() < 0.8)


def main():
    address, memory, seed = sys.argv[2:]
    echoes = {"echoes": True, "forgets": False}[memory]
    dice = random.Random(int(seed))
    server = Server(address)
    leader = server.discovery(doorman.DiscoveryRequest())
    assert leader.is_master and leader.mastership.master_address == address, leader

    clients = []
    for step in range(STEPS):
        act(server, clients, step, echoes, dice)
        check_sum(clients)
    while len(clients) < 8:
        clients.append(Client(server, f"late-{len(clients)}", 0.0, echoes))

    for client in clients:
        client.wants = wants(dice)
    for _ in range(ROUNDS):
        for client in dice.sample(clients, len(clients)):
            client.ask()
            check_sum(clients)
    shares = fair_shares(clients)
    for client in clients:
        off = abs(client.lease.capacity - shares[client.name])
        assert off <= EXACT, f"{client.name} is due {shares[client.name]} and has {client.lease.capacity}"
    print(f"{len(clients)} clients, {memory}, {STEPS} steps, shares exact")


main()

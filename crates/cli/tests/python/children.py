"""Servers of Doorman's that ask the one above them, in plain grpcio.

Usage: children.py MESSAGES HOST:PORT

MESSAGES is the directory of doorman_pb2.py. One of two servers stands for ten clients and the other for one, all of which
want everything: within six rounds each client must have the same, and never may more be leased than there is.
"""

import sys
import time

sys.path.insert(0, sys.argv[1])

import grpc  # noqa: E402
import doorman_pb2 as doorman  # noqa: E402

RESOURCE = "fair-1"
CAPACITY = 5000.0
ROUNDS = 6
EXACT = 2e-6


def main():
    channel = grpc.insecure_channel(sys.argv[2])
    grpc.channel_ready_future(channel).result(timeout=30)
    call = channel.unary_unary(
        "/doorman.Capacity/GetServerCapacity",
        request_serializer=doorman.GetServerCapacityRequest.SerializeToString,
        response_deserializer=doorman.GetServerCapacityResponse.FromString,
    )
    clients, leases = {"many": 10, "one": 1}, {}
    for _ in range(ROUNDS):
        for name, count in clients.items():
            request = doorman.GetServerCapacityRequest(server_id=name)
            resource = request.resource.add(resource_id=RESOURCE)
            resource.wants.add(priority=0, num_clients=count, wants=count * CAPACITY)
            if name in leases:
                resource.has.CopyFrom(leases[name])
            (response,) = call(request, timeout=30).response
            algorithm = response.algorithm
            assert algorithm.kind == doorman.Algorithm.FAIR_SHARE and algorithm.lease_length > 0, response
            leases[name] = response.gets
            held = sum(lease.capacity for lease in leases.values() if lease.expiry_time > time.time())
            assert held <= CAPACITY, f"{held} is leased"
    for name, count in clients.items():
        share = CAPACITY * count / sum(clients.values())
        assert abs(leases[name].capacity - share) <= EXACT, f"{name} is due {share} and has {leases[name].capacity}"
    print("shares exact")


main()

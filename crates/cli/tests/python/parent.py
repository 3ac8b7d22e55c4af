"""A server of Doorman's service with capacity for servers below it, in plain grpcio.

Usage: parent.py MESSAGES CAPACITY LEASE

MESSAGES is the directory of doorman_pb2.py, LEASE how long leases last, in seconds. It leases what is wanted, as far as
others have not got it. First it prints the port that it listens on, then every request for capacity as JSON.
"""

import json
import sys
import time
from concurrent import futures

sys.path.insert(0, sys.argv[1])

import grpc  # noqa: E402
import doorman_pb2 as doorman  # noqa: E402

CAPACITY = float(sys.argv[2])
LEASE = int(sys.argv[3])


class Parent:
    def __init__(self):
        self.leases = {}

    def discovery(self, request, context):
        return doorman.DiscoveryResponse(mastership=doorman.Mastership(), is_master=True)

    def get_server_capacity(self, request, context):
        answer = doorman.GetServerCapacityResponse()
        for resource in request.resource:
            print(json.dumps({
                "server": request.server_id,
                "has": resource.has.capacity if resource.HasField("has") else None,
                "wants": [[band.priority, band.num_clients, band.wants] for band in resource.wants],
            }), flush=True)
            others = sum(
                lease.capacity
                for (server, name), lease in self.leases.items()
                if server != request.server_id and name == resource.resource_id and lease.expiry_time > time.time()
            )
            wants = sum(band.wants for band in resource.wants)
            lease = doorman.Lease(
                expiry_time=int(time.time()) + LEASE, refresh_interval=1, capacity=min(wants, CAPACITY - others))
            self.leases[request.server_id, resource.resource_id] = lease
            response = answer.response.add(resource_id=resource.resource_id, gets=lease, safe_capacity=0.0)
            response.algorithm.kind = doorman.Algorithm.FAIR_SHARE
            response.algorithm.lease_length = LEASE
            response.algorithm.refresh_interval = 1
        return answer

    def release_capacity(self, request, context):
        for name in request.resource_id:
            self.leases.pop((request.client_id, name), None)
        return doorman.ReleaseCapacityResponse()


def handler(request, serve):
    return grpc.unary_unary_rpc_method_handler(
        serve, request_deserializer=request.FromString, response_serializer=lambda answer: answer.SerializeToString())


def main():
    parent = Parent()
    # One request at a time.
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("doorman.Capacity", {
        "Discovery": handler(doorman.DiscoveryRequest, parent.discovery),
        "GetServerCapacity": handler(doorman.GetServerCapacityRequest, parent.get_server_capacity),
        "ReleaseCapacity": handler(doorman.ReleaseCapacityRequest, parent.release_capacity),
    })])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    # A test that takes as long has been forgotten.
    server.wait_for_termination(timeout=120)


main()

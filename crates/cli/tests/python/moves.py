"""Clients of Doorman's service whose server dies and comes back with another memory, or has a namesake, in plain grpcio.

Usage: moves.py MESSAGES HOST:PORT[,HOST:PORT] CAPACITY (echoes|forgets)

MESSAGES is the directory of doorman_pb2.py. At one server, one client has had everything until its lease ended, and another one
has it now when `ready` is printed; then whoever runs this kills the server, starts another one there, and writes a line. From then
on a third one wants everything too. At two servers there is one client at each. No more than CAPACITY may be believed at any
moment, and in the end everybody has its share. A client believes its last answer while its calls succeed, as Doorman's for Go.
"""

import select
import sys
import time

sys.path.insert(0, sys.argv[1])

import grpc  # noqa: E402
import doorman_pb2 as doorman  # noqa: E402

ADDRESSES, CAPACITY, ECHOES = sys.argv[2].split(","), float(sys.argv[3]), sys.argv[4] == "echoes"
# Shares are counted in millionths, and doubles are rounded.
EXACT = 2e-6
TICK = 0.1
# Far more than it takes.
PATIENCE = 60.0


class Client:
    def __init__(self, name, address):
        # It goes by what it was told, whatever the date says.
        self.name, self.lease, self.told = name, None, 0.0
        options = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 200)]
        self.call = grpc.insecure_channel(address, options).unary_unary(
            "/doorman.Capacity/GetCapacity",
            request_serializer=doorman.GetCapacityRequest.SerializeToString,
            response_deserializer=doorman.GetCapacityResponse.FromString,
        )

    def lasts(self):
        return self.lease is not None and time.time() < self.lease.expiry_time

    def ask(self):
        request = doorman.GetCapacityRequest(client_id=self.name)
        resource = request.resource.add(resource_id="db", priority=0, wants=CAPACITY)
        if self.lease is not None and ECHOES:
            resource.has.CopyFrom(self.lease)
        elif self.lease is not None:
            resource.has.expiry_time = self.lease.expiry_time
            resource.has.refresh_interval = self.lease.refresh_interval
            resource.has.capacity = self.lease.capacity
        try:
            answer = self.call(request, timeout=1)
        except grpc.RpcError:
            answer = None
        if answer is None or answer.HasField("mastership"):
            self.told = self.told if self.lasts() else 0.0
        elif answer.response:
            self.lease = answer.response[0].gets
            self.told = self.lease.capacity


CLIENTS = []


def ask(client):
    client.ask()
    check()


def check():
    believed = [(client.name, client.told) for client in CLIENTS]
    assert sum(amount for _, amount in believed) <= CAPACITY + EXACT, believed


def until(what, holds):
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, (what, [(client.name, client.lease) for client in CLIENTS])
        time.sleep(TICK)


def client(name, address):
    CLIENTS.append(Client(name, address))
    return CLIENTS[-1]


def has_all(client):
    ask(client)
    return client.told >= CAPACITY - EXACT


def all_share():
    for client in CLIENTS:
        ask(client)
    share = CAPACITY / len(CLIENTS)
    return all(abs(client.told - share) < EXACT * len(CLIENTS) for client in CLIENTS)


def one_server():
    ended = client("ended", ADDRESSES[0])
    until("everything", lambda: has_all(ended))
    until("the end of its lease", lambda: not ended.lasts())
    # It asks for nothing, and so it has nothing: it shows its last lease when it comes back.
    ended.told = 0.0
    live = client("live", ADDRESSES[0])
    until("everything, again", lambda: has_all(live))
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], TICK)[0]:
        ask(live)
    assert live.lasts(), "too slow: what is tested is over"
    # The first to be heard shows a lease that is over.
    for _ in range(5):
        ask(ended)
        time.sleep(TICK)
    client("fresh", ADDRESSES[0])
    end = live.lease.expiry_time

    def share():
        left = end - time.time()
        shared = all_share()
        # It keeps it until about its end, or has its share of what is everybody's already.
        is_kept = left < 3 or live.told >= CAPACITY / 3 - EXACT
        assert is_kept or not ECHOES, f"it was cut off {left} seconds before its end"
        return shared

    until("shares", share)


if len(ADDRESSES) == 1:
    one_server()
else:
    for number, address in enumerate(ADDRESSES):
        client(f"client-{number}", address)
    until("shares", all_share)
print(f"{len(CLIENTS)} share it")

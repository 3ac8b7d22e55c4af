"""A program that keeps to what it is leased: a rate and a gauge.

    lessor serve --config configs/tenants.yaml --listen 127.0.0.1:15000
    python worker.py 127.0.0.1:15000
"""

import sys

import lessor


def main(address: str) -> None:
    with lessor.Client(address, id="worker") as client:
        queries = client.rate("search/queries")
        workers = client.gauge("search/workers")
        for job in range(10):
            queries.acquire(timeout=60)
            with workers.acquire(timeout=60) as permit:
                print(f"job {job} runs at {queries.lease.capacity} a second: {permit}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

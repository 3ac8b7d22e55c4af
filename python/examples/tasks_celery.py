"""Tasks of Celery that keep to a rate that all workers share, and come back later where it is used up.

    lessor serve --config configs/tenants.yaml --listen 127.0.0.1:15000
    LESSOR_SERVER=127.0.0.1:15000 celery --app tasks_celery worker --concurrency 4

A task that waited in `acquire` would keep its process from other work. So a task does not wait: it is tried again after
the time that the refusal names, a little later each time. The client is made before the workers are forked, and each
has its own.
"""

import os
from typing import Any

import lessor
from celery import Celery

app = Celery("tasks", broker=os.environ.get("CELERY_BROKER", "redis://127.0.0.1"))
client = lessor.Client(os.environ["LESSOR_SERVER"], id="tasks")
queries = client.rate("search/queries")


@app.task(bind=True, max_retries=100)
def index(self: Any, tenant: str, document: str) -> str:
    try:
        queries.domain(tenant).acquire_nowait()
    except lessor.Refused as refused:
        after = refused.retry_after or 1.0
        raise self.retry(countdown=after * (1 + self.request.retries / 10)) from refused
    except lessor.NoLease as nothing:
        raise self.retry(countdown=1.0) from nothing
    return f"{document} of {tenant} is indexed"

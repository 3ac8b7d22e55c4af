"""Both middlewares: what passes, what is denied and how that is answered, and when a permit comes back."""

import asyncio
import json

import httpx
import lessor
import pytest
from lessor import asgi, wsgi
from serving import saved_up, until

QUOTA = "https://iana.org/assignments/http-problem-types#quota-exceeded"
REDUCED = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"


class Asgi:
    """Requests to an application of ASGI."""

    module = asgi

    def app(self, status=200, seen=None):
        async def app(scope, receive, send):
            if seen is not None:
                seen()
            await send({"type": "http.response.start", "status": status, "headers": [(b"x-hits", b"3")]})
            await send({"type": "http.response.body", "body": b"one", "more_body": True})
            if seen is not None:
                seen()
            await send({"type": "http.response.body", "body": b"two"})

        return app

    def get(self, app, headers=()):
        async def get():
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
                return await client.get("/some/path", headers=headers)

        return asyncio.run(get())


class Wsgi:
    """Requests to an application of WSGI."""

    module = wsgi

    def app(self, status=200, seen=None):
        def app(environ, start_response):
            if seen is not None:
                seen()
            start_response(f"{status} Well", [("X-Hits", "3")])

            def body():
                yield b"one"
                if seen is not None:
                    seen()
                yield b"two"

            return body()

        return app

    def get(self, app, headers=()):
        with httpx.Client(transport=httpx.WSGITransport(app=app), base_url="http://service") as client:
            return client.get("/some/path", headers=headers)


@pytest.fixture(params=[Asgi(), Wsgi()], ids=["asgi", "wsgi"])
def http(request):
    return request.param


@pytest.fixture
def search(client, name):
    search = client.rate("search" + name, wants=500)
    saved_up(search)
    return search


def tenant(name):
    return {"X-Tenant": name}


def test_a_tenant_is_limited_and_told_what_is_left(http, search):
    app = http.module.Middleware(http.app(), search, key=http.module.header("x-tenant"), name="per tenant")
    for left in range(4, -1, -1):
        answer = http.get(app, tenant("a"))
        assert (answer.status_code, answer.text) == (200, "onetwo")
        assert answer.headers["ratelimit-policy"] == '"per tenant";q=5;w=3600'
        assert answer.headers["ratelimit"] == f'"per tenant";r={left};t=3600'
    answer = http.get(app, tenant("a"))
    after = int(answer.headers["retry-after"])
    assert (answer.status_code, 3500 < after <= 3600) == (429, True)
    assert answer.headers["ratelimit-policy"] == '"per tenant";q=5;w=3600'
    assert answer.headers["ratelimit"] == f'"per tenant";r=0;t={after}'
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["type"], problem["status"], problem["title"]) == (QUOTA, 429, "Too Many Requests")
    assert problem["violated-policies"] == ["per tenant"] and "tiers" in problem["detail"]
    assert http.get(app, tenant("b")).status_code == 200


def test_a_request_without_a_key_is_at_fault(http, search):
    app = http.module.Middleware(http.app(), search, key=http.module.header("x-tenant"))
    answer = http.get(app)
    assert (answer.status_code, answer.json()["detail"]) == (400, "the header x-tenant is missing")
    assert "retry-after" not in answer.headers


def test_costs_are_settled_by_the_answer(http, search):
    middleware = http.module.Middleware
    app = middleware(http.app(), search, key=lambda _: ["a", "b c"], settle=lambda _, headers: int(dict(
        (name.lower(), value) for name, value in headers)["x-hits"]))
    assert http.get(app).status_code == 200
    # It took one and cost three: one more is a debt of two, which two that are left pay.
    assert search.domain("a/b%20c").peek(5, 1).granted == 2
    app = middleware(http.app(), search, key=lambda _: "free", cost=lambda _: 0)
    assert [http.get(app).status_code for _ in range(7)] == [200] * 7
    app = middleware(http.app(), search, key=lambda _: "dear", cost=6)
    answer = http.get(app)
    assert answer.status_code == 429
    assert search.domain("dear").peek(5).granted == 5, "what is denied costs nothing"


def test_requests_in_flight_hold_their_units_until_the_body_has_been_sent(http, client, name):
    pool = client.gauge("pool" + name, wants=6)
    pool.acquire(timeout=60).release()
    until("all", lambda: pool.lease.capacity == 6)
    free = []

    def look():
        """How many units are free."""
        permits = []
        while (permit := pool.try_acquire()) is not None:
            permits.append(permit)
        free.append(len(permits))
        for permit in permits:
            permit.release()

    app = http.module.Middleware(http.app(seen=look), gauge=pool)
    assert http.get(app).text == "onetwo"
    look()
    assert free == [5, 5, 6]
    held = pool.acquire_nowait(6)
    answer = http.get(app)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "ratelimit" not in answer.headers
    assert answer.json()["type"] == QUOTA and answer.json()["violated-policies"] == [pool.name]
    held.release()

    def fails():
        raise KeyError("deliberate")

    with pytest.raises(KeyError, match="deliberate"):
        http.get(http.module.Middleware(http.app(seen=fails), gauge=pool))
    look()
    assert free[-1] == 6


def test_a_request_that_the_rate_refuses_holds_no_unit(http, client, search, name):
    pool = client.gauge("pool" + name, wants=6)
    pool.acquire(timeout=60).release()
    app = http.module.Middleware(http.app(), search, key=lambda _: "closed", gauge=pool)
    assert http.get(app).status_code == 429
    until("all", lambda: pool.try_acquire(6))


def test_nothing_leased_is_503_or_passes(http):
    with lessor.Client("127.0.0.1:1", id="c") as client:
        rate, gauge = client.rate("rate"), client.gauge("gauge")
        app = http.module.Middleware(http.app(), rate, gauge=gauge)
        answer = http.get(app)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["type"] == REDUCED and "violated-policies" not in answer.json()
        assert answer.json()["detail"] == "nothing is leased"
        app = http.module.Middleware(http.app(), rate, gauge=gauge, unleased="pass")
        assert http.get(app).status_code == 200


def test_rejections_can_be_answered_in_another_way(search):
    async def answer(scope, receive, send):
        rejected = scope["lessor"]
        await send({"type": "http.response.start", "status": 418, "headers": []})
        await send({"type": "http.response.body", "body": str(rejected.status).encode()})

    app = asgi.Middleware(Asgi().app(), search, key=lambda _: "closed", answer=answer)
    found = Asgi().get(app)
    assert (found.status_code, found.text) == (418, "429")

    def answer_of_wsgi(environ, start_response):
        start_response("418 Teapot", [])
        return [str(environ["lessor"].status).encode()]

    app = wsgi.Middleware(Wsgi().app(), search, key=lambda _: "closed", answer=answer_of_wsgi)
    found = Wsgi().get(app)
    assert (found.status_code, found.text) == (418, "429")


def test_what_is_not_http_passes_and_websockets_are_closed(search):
    async def app(scope, receive, send):
        await send({"type": "passed"})

    async def call(kind):
        sent = []

        async def send(message):
            sent.append(message)

        limited = asgi.Middleware(app, search, key=lambda _: "closed")
        await limited({"type": kind, "headers": []}, None, send)
        return sent

    assert asyncio.run(call("lifespan")) == [{"type": "passed"}]
    assert asyncio.run(call("websocket")) == [{"type": "websocket.close", "code": 1013}]


def test_a_middleware_without_limits_is_an_error(http, client, name):
    with pytest.raises(TypeError, match="limits nothing"):
        http.module.Middleware(http.app())
    with pytest.raises(ValueError, match="unleased"):
        http.module.Middleware(http.app(), gauge=client.gauge("pool" + name), unleased="maybe")
    with pytest.raises(TypeError, match="of a rate"):
        http.module.Middleware(http.app(), gauge=client.gauge("pool" + name), cost=2)


def test_nobody_can_write_the_name_of_another(http):
    name = http.module.domain_name
    assert name("a", "b") == "a/b" and name("a/b") == "a%2Fb" and name("", "") == "/"
    assert name("50% of|a,b=c d\n") == "50%25%20of%7Ca%2Cb%3Dc%20d%0A"
    assert name("größe\u00a0") == "größe%C2%A0"
    assert name(b"a\xff\xc3b") == "a%FF%C3b"
    long = "x" * 300
    assert name(long).startswith("x" * 160 + "~") and len(name(long)) == 177
    assert name(long) != name(long + "x") and len(name("ä" * 150).encode()) <= 177
    assert name("y" * 200) == "y" * 200


def test_problems_are_json(http, search):
    app = http.module.Middleware(http.app(), search, key=lambda _: "closed", name='a "b" \u00e9')
    answer = http.get(app)
    assert json.loads(answer.content)["violated-policies"] == ['a "b" \u00e9']
    assert answer.headers["ratelimit"].startswith('"a \\"b\\" ?";r=')

"""The service of header_cases.py: python3 http_app.py flask|gunicorn|starlette|uvloop [bare]"""

import asyncio
import itertools
import os
import socket
import sys

sys.path.insert(0, os.environ["PACKAGE"])

import idem  # noqa: E402

framework, bare = sys.argv[1], sys.argv[2:]
REPLAY = ["X-Order", "Link"]
numbers = itertools.count(1)


def work():
    with open("ledger", "a", encoding="utf-8") as f:
        f.write("effect\n")
    return next(numbers)


def read_gate():
    with open("gate", encoding="utf-8") as f:
        return f.read()


def flask_app():
    from flask import Flask, Response, request

    app = Flask("app")

    @app.post("/pay")
    def pay():
        asked = request.get_json()
        answer = Response(f"{work()} {asked['text']}", int(asked["status"]))
        for name in {name for name, _ in asked["headers"]}:
            answer.headers.pop(name, None)
        for name, value in asked["headers"]:
            answer.headers.add(name, value)
        return answer

    @app.post("/large")
    def large():
        work()
        return Response(b"x" * (1 << 20) for _ in range(20))

    @app.post("/throw")
    def throw():
        raise ValueError(work())

    @app.post("/gate")
    def gate():
        work()
        return read_gate()

    @app.post("/check")
    def check():
        request.environ["idem.attempt"].check()
        return f"{request.environ['idem.attempt'].fence} {work()}"

    if not bare:
        store = idem.open(os.environ["STORE"])
        words = {"scope": lambda environ: environ.get("HTTP_X_USER"), "replay_headers": REPLAY}
        app.wsgi_app = idem.wsgi(app.wsgi_app, store=store, **words)
        if framework == "gunicorn":
            store.limit("l", "s", "r", max=1, per=60)  # A call before the processes are forked.
    return app


def flask():
    from socketserver import ThreadingMixIn
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

    WSGIRequestHandler.log_message = lambda *args: None
    threads = type("Server", (ThreadingMixIn, WSGIServer), {"daemon_threads": True})
    server = make_server("127.0.0.1", 0, flask_app(), threads)
    print(server.server_port, flush=True)
    server.serve_forever()


def listening():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(listener.getsockname()[1], flush=True)
    return listener


def gunicorn():
    from gunicorn.app.base import BaseApplication

    listener, app = listening(), flask_app()

    class Prefork(BaseApplication):
        def load_config(self):
            for name, value in ("bind", f"fd://{listener.fileno()}"), ("workers", 3), ("loglevel", "critical"):
                self.cfg.set(name, value)

        def load(self):
            return app

    Prefork().run()


def starlette(loop="asyncio"):
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

    async def pay(request):
        asked = await request.json()
        answer = Response(f"{work()} {asked['text']}", int(asked["status"]))
        for name, value in asked["headers"]:
            answer.headers.append(name, value)
        return answer

    async def large(request):
        work()
        return StreamingResponse(b"x" * (1 << 20) for _ in range(20))

    async def throw(request):
        raise ValueError(work())

    async def gate(request):
        work()
        return Response(await asyncio.to_thread(read_gate))

    async def check(request):
        await request.scope["idem.attempt"].check()
        return Response(f"{request.scope['idem.attempt'].fence} {work()}")

    def who(scope):
        return dict(scope["headers"]).get(b"x-user", b"").decode()

    of = (pay, large, throw, gate, check)
    app = Starlette(routes=[Route("/" + f.__name__, f, methods=["POST"]) for f in of])
    if not bare:
        store = idem.open_async(os.environ["STORE"])
        app = idem.asgi(app, store=store, scope=who, replay_headers=REPLAY)
    uvicorn.Server(uvicorn.Config(app, loop=loop, log_level="critical")).run([listening()])


{"uvloop": lambda: starlette("uvloop"), **globals()}[framework]()

"""Redirects after a request was sent: it never goes to an upstream a second time."""

from files import write
from nginx import ON, Nginx, Upstream
from patience import until
from ports import free_port
from tap import equal, main, note, test

# Configurations that no check of what they say can refuse: (who, server, path).
OTHER = "location @other { proxy_pass http://two; }"
FALLBACK = (
    'location /pay {{ {0} error_page 502 504 = $fallback; proxy_read_timeout 300ms;'
    " proxy_pass http://app; }}"
)


def redirects():
    """Yield (the word in the log, more of http, the server block, a path)."""
    named = 'map $uri $fallback { default "@other"; }'
    uri = 'map $uri $fallback { default "/other"; }'
    other = "location /other { idempotency off; proxy_pass http://two; }"
    for mode in "mode=drop", "mode=cut", "mode=garbage", "hold=never":
        yield "error_page", named, FALLBACK.format("") + OTHER, f"/pay?{mode}"
    yield "error_page", uri, FALLBACK.format("") + other, "/pay?mode=drop"
    yield "error_page", "", (
        "location /pay { error_page 502 /other; proxy_pass http://app; }" + other
    ), "/pay?mode=drop"
    yield "error_page", named, (
        FALLBACK.format("recursive_error_pages on;")
        + "location @other { error_page 502 = $fallback; proxy_pass http://two; }"
    ), "/pay?mode=drop"
    yield "error_page", named, (
        FALLBACK.format("proxy_intercept_errors on; error_page 500 = $fallback;") + OTHER
    ), "/pay?status=500"
    yield "error_page", uri, (
        FALLBACK.format("")
        + "location /other { try_files /none @other; }" + OTHER
    ), "/pay?mode=drop"
    yield "error_page", uri, (
        FALLBACK.format("")
        + "location /other { rewrite ^ /further last; }"
        + "location /further { mirror /mirror; proxy_pass http://two; }"
        + "location /mirror { internal; idempotency off; proxy_pass http://two; }"
    ), "/pay?mode=drop"
    yield "X-Accel-Redirect", "", (
        "location = /file.txt { internal; proxy_method POST; proxy_pass http://two; }"
    ), "/pay?mode=accel"


@test
def what_was_sent_is_not_sent_again():
    """Whatever a variable or an answer says: one execution, 502 with a problem, an
    unknown record, and a line of the log that names what was refused."""
    count = 0
    for word, http, server, path in redirects():
        key = f"k{count}"
        with Upstream() as one, Upstream() as two:
            http += f"upstream two {{ server 127.0.0.1:{two.port}; }}"
            with Nginx(one, http=ON + http, server=server) as nginx:
                got = nginx.post(path, key, b"x")
                told = (server, got.status, got.problem)
                # What broke off first, and was never redirected, is a problem too.
                equal(told, (server, 502, "upstream-broke-off"))
                equal(nginx.post(path, key, b"x").problem, "outcome-unknown")
                equal((one.executions(), two.executions()), (1, 0))
                if "mode=cut" not in path:
                    assert f"{word} is refused" in nginx.errors(), nginx.errors()
                one.let_go("never")
        count += 1
    note(f"{count} ways to a second upstream")


@test
def without_the_guard_it_is_done_twice():
    """The control: without the module each of them reaches two upstreams."""
    for _, http, server, path in redirects():
        if "mode=cut" in path:
            continue
        server = server.replace("idempotency off;", "")
        with Upstream() as one, Upstream() as two:
            two.let_go("never")
            http += f"upstream two {{ server 127.0.0.1:{two.port}; }}"
            with Nginx(one, http=http, server=server, module=False) as nginx:
                nginx.post(path, "k", b"x")
                equal(one.executions(), 1)
                assert two.executions() >= 1, server
                one.let_go("never")


@test
def a_redirect_before_it_was_sent_goes_on():
    """The twins: nothing was sent, or the page is a file: nothing is refused."""
    named = 'map $uri $fallback { default "@other"; }'
    with Upstream() as one, Upstream() as two:
        http = ON + named + f"upstream two {{ server 127.0.0.1:{two.port}; }}"
        server = (
            "location /away { error_page 502 = $fallback;"
            f" proxy_pass http://127.0.0.1:{free_port()}; }}" + OTHER
            + "location /page { error_page 502 =200 /page.txt; proxy_pass http://app; }"
            "location = /page.txt { internal; root .; }"
            "location /asked { auth_request /auth; proxy_pass http://app; }"
            "location = /auth { internal; idempotency off; proxy_pass_request_body off;"
            " proxy_set_header Content-Length ''; proxy_pass http://two/auth; }"
        )
        with Nginx(one, http=http, server=server) as nginx:
            write(nginx.home + "/page.txt", "we are sorry\n")
            for i in range(2):
                got = nginx.post("/away", "away", b"x")
                equal((got.status, got.replayed), (201, i == 1))
            equal((one.executions(), two.executions("away")), (0, 1))
            got = nginx.post("/page?mode=drop", "page", b"x")
            equal((got.status, got.body), (200, b"we are sorry\n"))
            equal(nginx.post("/page?mode=drop", "page", b"x").problem, "outcome-unknown")
            equal(one.executions("page"), 1)
            for i in range(2):
                got = nginx.post("/asked", "asked", b"x")
                equal((got.status, got.replayed), (201, i == 1))
            equal(one.executions("asked"), 1)


@test
def a_next_server_that_the_check_does_not_see_is_not_tried():
    """proxy_next_upstream non_idempotent in a location where idempotency is off, which
    try_files sends an owner to: one execution. The control: without the module two."""
    server = (
        "location /pay {{ try_files /none @pair; }} location @pair {{ {0}"
        " proxy_next_upstream error timeout http_500 non_idempotent;"
        " proxy_pass http://pair; }}"
    )
    for module, off in (True, "idempotency off;"), (False, ""):
        for mode in "mode=drop", "status=500", "mode=reset":
            with Upstream() as one, Upstream() as two:
                pair = "".join(f"server 127.0.0.1:{u.port} max_fails=0;" for u in (one, two))
                http = ON * module + f"upstream pair {{ {pair} }}"
                with Nginx(one, http=http, server=server.format(off), module=module) as nginx:
                    nginx.post(f"/pay?{mode}", mode, b"x")
                    equal((mode, one.executions() + two.executions()), (mode, 2 - module))


@test
def a_mirror_is_sent_once():
    """An error page in a location with a mirror: the mirror got its one copy."""
    with Upstream() as one, Upstream() as two:
        http = ON + f"upstream two {{ server 127.0.0.1:{two.port}; }}"
        server = (
            "mirror /mirror; location = /page.txt { internal; root .; }"
            "location /pay { error_page 502 =200 /page.txt; proxy_pass http://app; }"
            "location /mirror { internal; idempotency off; proxy_pass http://two; }"
        )
        with Nginx(one, http=http, server=server) as nginx:
            write(nginx.home + "/page.txt", "we are sorry\n")
            equal(nginx.post("/pay?mode=drop", "k", b"x").status, 200)
            two.wait_for(1)
            assert "a subrequest to \"/mirror\" is refused" in nginx.errors()
            equal((one.executions(), two.executions()), (1, 1))


@test
def what_comes_after_the_answer_goes_nowhere():
    """post_action in a location that the check does not see: the answer goes out, and
    the request does not go to an upstream once more. The control: it does."""
    server = (
        "location /pay { try_files /none @app; } location /after { proxy_pass http://two; }"
        "location @app { %s post_action /after; proxy_pass http://app; }"
    )
    for module in True, False:
        with Upstream() as one, Upstream() as two:
            http = f"upstream two {{ server 127.0.0.1:{two.port}; }}"
            off = "idempotency off;" if module else ""
            with Nginx(one, http=ON * module + http, server=server % off, module=module) as nginx:
                for i in range(2):
                    got = nginx.post("/pay", "k", b"x")
                    equal((got.status, got.replayed), (201, module and i == 1))
                if module:
                    until(lambda: "post_action is refused" in nginx.errors())
                    equal((one.executions(), two.executions()), (1, 0))
                else:
                    two.wait_for(1)


@test
def work_without_a_record_is_not_sent_twice_either():
    """With idempotency_on_store_error pass and the store away: one execution."""
    bad = "idempotency_store sqlite:no/such/place.db; idempotency on;"
    bad += "idempotency_scope global; idempotency_on_store_error pass;"
    with Upstream() as one, Upstream() as two:
        http = bad + (
            'map $uri $fallback { default "@other"; }'
            f"upstream two {{ server 127.0.0.1:{two.port}; }}"
        )
        with Nginx(one, http=http, server=FALLBACK.format("") + OTHER) as nginx:
            got = nginx.post("/pay?mode=drop", "k", b"x")
            equal((got.status, got.problem), (502, "upstream-broke-off"))
            equal((one.executions(), two.executions()), (1, 0))


if __name__ == "__main__":
    main()

# For sessions of documents: a service on port 3000, and idem gateway on port 8080, on
# whichever ports are free. Whatever is started ends with the session. Without nginx
# or its module the session ends with 77, with a sanitizer with 78, and is skipped.

real=$TEST_PROGRAM
nginx=$(PATH=$PATH:/usr/sbin command -v nginx)
[ "$TEST_SANITIZED" != 1 ] || exit 78 # nginx cannot load what was built so.
if [ ! -e "${real%/*}/nginx/ngx_http_idempotency_module.so" ] || [ -z "$nginx" ]; then
    exit 77
fi

read -r service gateway < <(python3 - <<'PYTHON'
import socket
with socket.create_server(("127.0.0.1", 0)) as a:
    with socket.create_server(("127.0.0.1", 0)) as b:
        print(a.getsockname()[1], b.getsockname()[1])
PYTHON
)
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT

# It keeps a ledger, and hands out a receipt; where there is a file "down", neither.
python3 - "$service" <<'PYTHON' &
import http.server, os, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        down = os.path.exists("down")
        if not down:
            with open("ledger", "ab") as ledger:
                ledger.write(body + b"\n")
            with open("ledger", "rb") as ledger:
                body = b"receipt %d\n" % (1000 + len(ledger.readlines()))
        else:
            body = b"the database is down\n"
        self.send_response(500 if down else 201)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
PYTHON

# Who types idem gateway gets the free ports, and reads the usual ones.
rm -f bin/idem
cat >bin/idem <<WRAPPER
#!/bin/bash
if [ "\$1" = gateway ] && [[ "\$*" != *--dry-run* ]]; then
    given=("\${@//:3000/:$service}" --listen $gateway)
    [ \$(id -u) != 0 ] || given+=(--user root)
    exec > >(exec sed -u 's/:$gateway/:8080/; s/:$service/:3000/')
    exec 2>&1
    exec $real "\${given[@]}"
fi
exec $real "\$@"
WRAPPER
chmod +x bin/idem

curl() {
    local url="${*: -1}"
    local port=$service
    [[ $url == *:3000* ]] || port=$gateway
    until (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.02; done
    command curl -s "${@//localhost:[38]0[08]0/127.0.0.1:$port}"
}

until (: <"/dev/tcp/127.0.0.1/$service") 2>/dev/null; do sleep 0.02; done

# For sessions of documents: a service on port 3000, and idem gateway on port 8080, on
# whichever ports are free. Whatever is started ends with the session. Without nginx
# or its module the session ends with 77, with a sanitizer with 78, and is skipped.

real=$TEST_PROGRAM
nginx=$(PATH=$PATH:/usr/sbin command -v nginx)
[ "$TEST_SANITIZED" != 1 ] || exit 78 # nginx cannot load what was built so.
if [ ! -e "${real%/*}/nginx/ngx_http_idempotency_module.so" ] || [ -z "$nginx" ]; then
    exit 77
fi

# The service keeps a ledger, and hands out a receipt; where there is a file "down", neither.
# It also holds a port for the gateway, which no other program gets as long as it runs.
read -r service gateway < <(exec python3 -B - "$TEST_LIB" <<'PYTHON'
import http.server, os, sys

sys.path.insert(0, sys.argv[1])
from ports import free_port

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

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, free_port(), flush=True)
server.serve_forever()
PYTHON
)
trap "kill $! \$(jobs -p) 2>/dev/null; wait" EXIT

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

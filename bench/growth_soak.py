"""Hours of load: memory, file and log have to level off.

A gateway with 256 connections that is reloaded twice a minute, and then a program
with 8 callers beside replays, commands and purges; each does so many operations a
second. Once a minute the sizes are printed; what grew by more than a tenth between the
second third and the last one is told, and the status is 1.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

CONNECTIONS = 256
GATEWAY_MINUTES = 10  # At most.
RETENTION_MS = 60_000
SLACK = 4 << 20  # Bytes: a log's length, an allocator's mood.

CONFIG = """
load_module %(module)s;
daemon off; worker_processes 2; pid nginx.pid; error_log error.log crit; %(user)s
worker_rlimit_nofile 8192;
events { worker_connections 4000; }
http {
    access_log off;
    client_body_temp_path client_body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    server {
        listen 127.0.0.1:%(service)d backlog=1024;
        location / { default_type application/json; return 201 '{"receipt":1001}'; }
    }
    server {
        listen 127.0.0.1:%(port)d backlog=1024;
        location / {
            idempotency on; idempotency_scope global; idempotency_store sqlite:%(store)s;
            idempotency_retention 1m; idempotency_lease 10s;
            proxy_pass http://127.0.0.1:%(service)d;
            proxy_http_version 1.1; proxy_set_header Connection "";
        }
    }
}
"""

SCRIPT = """
wrk.method = "POST"
wrk.body = '{"amount":42}'
wrk.headers["Host"] = "localhost"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Idempotency-Key"] = "@"
local head, rest, n
local threads = 0
function setup(thread) threads = threads + 1; thread:set("own", threads) end
function init()
  head, rest = wrk.format():match("^(.-)@(.*)$")
  n = 0
end
function delay() return %d end
-- Every fourth is a duplicate of a key that is not long ago.
function request()
  n = n + 1
  local key = n %% 4 == 0 and n - 40 or n
  return head .. "soak-" .. os.getenv("SOAK") .. "-" .. own .. "-" .. key .. rest
end
"""


def rss(pid):
    """Of the process and its children, in bytes."""
    total = 0
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
            if int(entry) != pid and parent != pid:
                continue
            with open(f"/proc/{entry}/statm", encoding="utf-8") as f:
                total += int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            continue  # It has just ended.
    return total


def size(path):
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


class Watch:
    """The sizes of one part, minute by minute."""

    def __init__(self, title, store, pid, progress):
        self.title, self.store, self.pid, self.progress = title, store, pid, progress
        self.seen = {"memory": [], "file": [], "log": []}
        print(f"\n{title}\n\n| minute | memory, MiB | file, MiB | log, MiB |\n|---:|---:|---:|---:|", flush=True)

    def look(self, minute):
        found = {"memory": rss(self.pid), "file": size(self.store), "log": size(f"{self.store}-wal")}
        for name, value in found.items():
            self.seen[name].append(value)
        print("| " + " | ".join([f"{minute:.1f}", *(f"{v / (1 << 20):.1f}" for v in found.values())]) + " |", flush=True)

    def watch(self, minutes, each=lambda: None, step=60):
        start = time.monotonic()
        looks = 0
        step = min(step, minutes * 60 / 12)
        while time.monotonic() < start + minutes * 60:
            each()
            if time.monotonic() >= start + looks * step:
                self.look((time.monotonic() - start) / 60)
                looks += 1
            time.sleep(0.5)

    def grown(self):
        """What grew in the last third; the first one is for filling up."""
        for name, values in self.seen.items():
            third = len(values) // 3
            before, after = max(values[third : 2 * third], default=0), max(values[2 * third :], default=0)
            if after > before * 1.1 + SLACK:
                yield f"{self.title}: {name} grew from {before:,} to {after:,} bytes in the last third"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def end(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Purger:
    """idem purge and the other commands, again and again, until the block ends."""

    def __init__(self, build, store):
        self.build, self.url = build, f"sqlite:{store}"
        self.stop = threading.Event()
        self.failed = []
        self.thread = threading.Thread(target=self.work)

    def work(self):
        idem = os.path.join(self.build, "idem")
        while not self.stop.wait(5):
            for words in (["purge", "-q"], ["stats"], ["list", "--max", "20"]):
                done = subprocess.run(
                    [idem, *words, "--store", self.url], stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
                )  # fmt: skip
                if done.returncode != 0:
                    self.failed.append(f"idem {words[0]}: {done.returncode}: {done.stderr.strip()}")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def gateway(build, folder, minutes, rate, progress):
    wrk = shutil.which("wrk")
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    module = f"{build}/nginx/ngx_http_idempotency_module.so"
    if wrk is None or nginx is None or not os.path.exists(module):
        return ["the gateway was not measured: it needs wrk, nginx and the module (tools/deps bench)"]
    store = f"{folder}/gateway.db"
    words = {"module": module, "store": store, "port": free_port(), "service": free_port()}
    words["user"] = "user root;" if os.geteuid() == 0 else ""
    os.chmod(folder, 0o711)
    with open(f"{folder}/nginx.conf", "w", encoding="ascii") as f:
        f.write(CONFIG % words)
    with open(f"{folder}/soak.lua", "w", encoding="ascii") as f:
        f.write(SCRIPT % (1000 * CONNECTIONS // rate))
    progress(f"the gateway, {minutes:g} minutes")
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(open(f"{folder}/nginx.log", "w", encoding="utf-8"))
        server = subprocess.Popen([nginx, "-e", "stderr", "-p", folder, "-c", "nginx.conf"], stderr=log)
        stack.callback(end, server)
        time.sleep(1)
        if server.poll() is not None:
            return [f"nginx: {open(log.name, encoding='utf-8').read().strip()}"]
        out = stack.enter_context(open(f"{folder}/wrk.log", "w+", encoding="utf-8"))
        load = subprocess.Popen(
            [wrk, "-t", "2", "-c", str(CONNECTIONS), "-d", f"{int(minutes * 60) + 5}s", "--timeout", "30s",
             "-s", f"{folder}/soak.lua", f"http://127.0.0.1:{words['port']}/"],
            stdout=out, stderr=out, env={**os.environ, "SOAK": str(os.getpid())},
        )  # fmt: skip
        stack.callback(end, load)
        next_reload = [time.monotonic() + 30]

        def reload():
            if time.monotonic() > next_reload[0]:
                server.send_signal(signal.SIGHUP)
                next_reload[0] += 30

        watch = Watch(f"Gateway, {CONNECTIONS} connections, {rate} requests a second, a reload each 30 s", store, server.pid, progress)
        purger = stack.enter_context(Purger(build, store))
        watch.watch(minutes, reload)
        load.send_signal(signal.SIGINT)
        load.wait(60)
        out.seek(0)
        print("\n" + "\n".join("    " + line for line in out.read().strip().split("\n")), flush=True)
        return [*watch.grown(), *purger.failed[:3]]


def mixed(build, folder, minutes, rate, progress):
    store = f"{folder}/mixed.db"
    bench = os.path.join(build, "bench", "bench-idem")
    seconds = str(int(minutes * 60) + 30)
    progress(f"mixed load, {minutes:g} minutes")
    subprocess.run([bench, "fill", store, "--records", "1000", "--bytes", "128"], check=True, stdout=subprocess.DEVNULL)
    with contextlib.ExitStack() as stack:
        loads = []
        for what in (
            ("new", "--callers", "8", "--retention", str(RETENTION_MS), "--rate", str(rate)),
            ("replay", "--callers", "1", "--records", "1000", "--bytes", "128", "--rate", str(rate)),
        ):
            load = subprocess.Popen(
                [bench, what[0], store, *what[1:], "--seconds", seconds], stdout=subprocess.PIPE, text=True
            )
            stack.callback(end, load)
            loads.append(load)
        watch = Watch(f"8 callers, {rate} operations a second, replays, purges", store, loads[0].pid, progress)
        purger = stack.enter_context(Purger(build, store))
        watch.watch(minutes)
        for load in loads:
            load.terminate()
            print(f"\n    {load.communicate()[0].strip()}", flush=True)
        return [*watch.grown(), *purger.failed[:3]]


def run(build, folder, minutes, rate, progress):
    """The exit status. A purge beside writers rests: it has to keep pace with @rate."""
    wrong = gateway(build, folder, min(minutes, GATEWAY_MINUTES), rate, progress)
    wrong += mixed(build, folder, minutes, rate, progress)
    for text in wrong:
        print(f"\n**{text}**", flush=True)
    return 1 if wrong else 0

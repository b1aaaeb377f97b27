"""A client of HTTP/2 with several streams at once: h2_client.py PORT CERTIFICATE

Prints what came back as JSON; gateway.py says what that should be. It is a program of
its own because python3-h2 may be there for another Python than the tests'.
"""

import json
import socket
import ssl
import sys
import time

import h2.config
import h2.connection
import h2.events


class Client:
    def __init__(self, port, certificate):
        context = ssl.create_default_context(cafile=certificate)
        context.set_alpn_protocols(["h2"])
        raw = socket.create_connection(("127.0.0.1", port), 20)
        self.socket = context.wrap_socket(raw, server_hostname="localhost")
        assert self.socket.selected_alpn_protocol() == "h2"
        # Nothing that we send wrong on purpose is mended on its way.
        config = h2.config.H2Configuration(
            validate_outbound_headers=False, normalize_outbound_headers=False
        )
        self.connection = h2.connection.H2Connection(config)
        self.connection.initiate_connection()
        self.answers = {}
        self.ended = set()
        self.flush()

    def flush(self):
        self.socket.sendall(self.connection.data_to_send())

    def send(self, headers, body=b"a=1"):
        """Open a stream with a request; return its number."""
        stream = self.connection.get_next_available_stream_id()
        head = [(":method", "POST"), (":path", "/"), (":scheme", "https")]
        head += [(":authority", "localhost"), *headers]
        self.connection.send_headers(stream, head)
        self.connection.send_data(stream, body, end_stream=True)
        self.flush()
        return stream

    def reset(self, stream):
        self.connection.reset_stream(stream)
        self.flush()

    def wait(self, streams):
        """Return "STATUS" or "STATUS true", for a replay, of each of @streams."""
        while not set(streams) <= self.ended:
            for event in self.connection.receive_data(self.socket.recv(65536)):
                if isinstance(event, h2.events.ResponseReceived):
                    self.answers[event.stream_id] = {k.decode(): v.decode() for k, v in event.headers}
                elif isinstance(event, h2.events.StreamReset):
                    self.answers.setdefault(event.stream_id, {":status": "reset"})
                    self.ended.add(event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    self.ended.add(event.stream_id)
            self.flush()
        heads = (self.answers[stream] for stream in streams)
        return [" ".join([h[":status"], h.get("idempotent-replayed", "")]).strip() for h in heads]


def key(value):
    return ("idempotency-key", value)


def main():
    client = Client(int(sys.argv[1]), sys.argv[2])
    duplicates = client.wait([client.send([key("k")]) for _ in range(20)])
    after = client.wait([client.send([key('"k"')])])
    bad = [[key("")], [key("a"), key("b")], [key("k" * 256)], [key('"open')], [key("good")]]
    bad = client.wait([client.send(headers) for headers in bad])
    gone = client.send([key("reset")])
    client.reset(gone)
    for _ in range(200):  # Until the work that was left has ended.
        (reset,) = client.wait([client.send([key("reset")])])
        if reset != "409":
            break
        time.sleep(0.05)
    told = {"duplicates": duplicates, "after": after, "bad": bad, "reset": reset}
    print(json.dumps(told))


main()

"""idem on a table that another library also uses."""

import json

import dynamo
from tap import Idem, equal


class Side:
    """idem on the table @name of @layout, by the clock of this host."""

    def __init__(self, url, name, layout, settings=""):
        self.url, self.name = url, name
        where = f"dynamodb://{name}?endpoint={url}&region=eu-west-1&clock=host"
        self.idem = Idem(f"{where}{'&layout=' if layout else ''}{layout}{settings}")
        self.store = self.idem.store
        self.env = dynamo.environment()

    def __call__(self, *args, **rest):
        return self.idem(*args, env=self.env, **rest)

    def key(self, name):
        return name

    def begin(self, name, *options, policy="rerun"):
        """Return (exit status, answer) of idem begin."""
        key = ("-k", self.key(name))
        done = self("begin", "--json", *key, "--on-expired-lease", policy, *options)
        assert done.stdout, done.stderr
        return done.status, json.loads(done.stdout)

    def started(self, name, *options, **rest):
        status, answer = self.begin(name, *options, **rest)
        equal((status, answer["verdict"]), (0, "STARTED"))
        return answer

    def end(self, verb, answer, *options):
        return self(verb, "--token", answer["token"], "--journal", "off", *options)

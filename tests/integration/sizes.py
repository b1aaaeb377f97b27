"""Each limit on a size, one below, at it and one above: what the pages say is kept is
kept, and what is longer is refused, cut, or said."""


from box import case, contains
from files import write
from tap import equal, main

MIB16 = 16 << 20


def sizes(limit):
    """(length, whether it fits) around a limit."""
    return [(limit - 1, True), (limit, True), (limit + 1, False)]


@case
def output_of_a_run(b):
    """Output of 16 MiB is replayed byte for byte; of one byte more only that it was done. The
    limit that --max-output sets counts what was printed, on both streams together."""
    for limit, options in ((MIB16, ()), (1000, ("--max-output", "1000"))):
        for n, fits in sizes(limit):
            script = f"head -c {n // 2} /dev/urandom; head -c {n - n // 2} /dev/urandom >&2"
            got = b.run(f"k{limit}-{n}", script, *options)
            equal((got.status, len(got.stdout) + len(got.stderr)), (0, n))
            again = b.run(f"k{limit}-{n}", script, *options)
            equal((n, again.status), (n, 0 if fits else 82))
            if fits:
                assert again == got, n
            else:
                equal(again.stdout, b"")
                contains(again.stderr, b"not kept")


@case
def result_of_complete(b):
    """The same of a result that is said."""
    for n, fits in sizes(MIB16):
        write(b.file("result"), b"x" * n)
        token = b("begin", "-k", f"k{n}").stdout.decode().strip()
        got = b("complete", "--token", token, "--result", "@result")
        equal(got.status, 0)
        equal((n, b"too long to be kept" in got.stderr), (n, not fits))
        again = b("begin", "-k", f"k{n}")
        equal((n, again.status, len(again.stdout)), (n, *((10, n) if fits else (82, 0))))


@case
def texts(b):
    """Reasons: 4096 bytes, and longer ones are refused or cut to
    that, never lost."""
    for n, fits in sizes(4096):
        for verb, member in (("fail", "error"), ("unknown", "note")):
            key = f"{verb}{n}"
            token = b("begin", "-k", key).stdout.decode().strip()
            got = b(verb, "--token", token, "--reason", "x" * n)
            if got.status == 64 and not fits:
                continue
            equal((verb, n, got.status), (verb, n, 0))
            equal((verb, n, len(b.record(key)[member])), (verb, n, min(n, 4096)))


if __name__ == "__main__":
    main()

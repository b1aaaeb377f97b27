"""The Node.js package: what it does once, what it tells of the verdicts, and what remains
when it, its process or its child is killed."""

import glob
import json
import os
import re
import subprocess

import packed
import postgres
from box import Worker, case, is_gone
import deaths
from dynamo import SERVERS
from files import read
from patience import PATIENCE, until
from procfs import marked
from tap import PROGRAM, TOP, environment, equal, main, skip

PACKAGE = os.path.join(TOP, "clients", "node")
NODE = os.environ.get("NODE", "node")


def environment_of(b):
    return environment({
        "IDEM_AUDIT_LOG": b.file("audit.log"), "IDEM_JOURNAL_DIR": b.file("journal"),
        "IDEM_PROGRAM": PROGRAM, "HOME": b.path, "STORE": b.idem.store, "PACKAGE": PACKAGE,
    })


HEAD = """
const idem = require(process.env.PACKAGE);
const assert = require('node:assert/strict');
const fs = require('node:fs');
const { once: event } = require('node:events');
const store = idem.open(process.env.STORE);
const say = (word) => console.log(word);
const lines = require('node:readline').createInterface({ input: process.stdin });
const wait = () => event(lines, 'line');
const forever = () => new Promise(() => setInterval(() => {}, 1e6));
const never = () => assert.fail('it ran again');
const door = () => [...process[Symbol.for('idem.doors.1')].values()][0];
function effect() {
    fs.appendFileSync('ledger', 'effect\\n');
    return 'charged';
}
async function thrown(Kind, promise) {
    try {
        await promise;
    } catch (error) {
        assert(error instanceof Kind, error);
        return error;
    }
    assert.fail('it did not throw');
}
async function main() {
%s
}
main().then(() => lines.close(), (error) => {
    console.error(error);
    process.exit(1);
});
"""


def started(b, script, **more):
    b.write("worker.js", HEAD % script)
    return Worker(b, [NODE, "worker.js"], {**environment_of(b), **more})


def runs(b, script, **more):
    return started(b, script, **more).ends()


# ---- The verbs ---------------------------------------------------------------


@case
def once_is_one_run(b):
    """A second call returns what the first did, whatever JSON, text or bytes it was;
    without idem the effect doubles."""
    runs(b, """
    let n = 0;
    const charge = () => ({ receipt: [++n, 2], 'ä\\0': null });
    charge(), charge();
    assert.equal(n, 2);
    const first = await store.once('order-42', charge);
    assert.deepEqual(first, { receipt: [3, 2], 'ä\\0': null });
    assert.deepEqual(await store.once('order-42', never), first);
    let deep = [];
    for (let i = 0; i < 300; i++) {
        deep = [deep];
    }
    const bytes = (...of) => Buffer.from(of);
    const values = [undefined, null, '', '[1]', bytes(0, 255), bytes(), bytes(97, 98), 0, true, [1.5, 1e30], deep];
    for (const [i, value] of values.entries()) {
        assert.deepStrictEqual(await store.once(['t', i], () => value), value);
        assert.deepStrictEqual(await store.once(['t', i], never), value);
    }
    const date = new Date(0);
    assert.equal(await store.once('date', () => date), date.toJSON());
    assert.deepEqual(await store.once('array', () => new Uint16Array([1]).buffer), bytes(1, 0));
    """)
    equal(b.record('=["t","0"]')["status"], "completed")


@case
def results_that_cannot_be_kept(b):
    """Work whose result JSON would drop or change without a word, or is too long, is done
    all the same, and the first caller hears of it."""
    runs(b, """
    const values = [
        () => {}, NaN, [Infinity], 10n, Symbol('s'), new Map([[1, 2]]), { deep: new Error('e') },
        Promise, '\\ud800', { '\\udc00': 1 }, 'x'.repeat(25 << 20), 'x'.repeat(17 << 20),
    ];
    for (const [i, value] of values.entries()) {
        const error = await thrown(idem.NotKept, store.once(`k${i}`, () => value));
        assert.equal(error.result, value);
        assert.equal((await thrown(idem.NotKept, store.once(`k${i}`, never))).result, undefined);
    }
    """)
    equal([b.record(f"k{n}")["status"] for n in range(12)], ["completed"] * 12)


@case
def what_is_thrown_decides(b):
    """NothingHappened releases, Failed fails, and anything else is unknown under hold and
    another attempt under rerun; all are thrown again."""
    runs(b, """
    for (const [error, policy, key] of [
        [new idem.NothingHappened('why'), 'hold', 'released'], [new idem.Failed('why'), 'rerun', 'failed'],
        [new TypeError('why \\ud800'), 'hold', 'unknown'], ['a text', 'rerun', 'retry'],
    ]) {
        const words = { onExpiredLease: policy };
        await store.once(key, () => { throw error; }, words).then(never, (e) => assert.equal(e, error));
    }
    """)
    for status in ("released", "failed", "unknown", "retry"):
        equal(b.record(status)["status"], status)
    runs(b, """
    assert.equal(await store.once('released', () => 'now'), 'now');
    const rerun = { onExpiredLease: 'rerun' };
    assert.equal(await store.once('retry', (attempt) => attempt.takeover, rerun), true);
    const failed = new idem.Failed('no money', { code: 7 });
    await thrown(idem.Failed, store.once('f', async () => { throw failed; }));
    const again = await thrown(idem.Failed, store.once('f', never));
    assert.deepEqual([again.message, again.result], ['no money', { code: 7 }]);
    assert.match((await thrown(idem.Unknown, store.once('unknown', never))).message, /why/);
    """)


@case
def verdicts_are_errors(b):
    """Each verdict but STARTED and REPLAY, and each kind of error; a missing key never
    runs the work; no text has a token."""
    runs(b, """
    const { inspect } = require('node:util');
    const attempt = await store.begin('k', { fingerprint: { a: 1 }, lease: 600000 });
    const texts = [inspect(attempt, { depth: 9, showHidden: true }), JSON.stringify(attempt.record)];
    const busy = await thrown(idem.Busy, store.once('k', never));
    assert(busy.leaseLeft > 590000 && busy.leaseLeft <= 600000);
    assert.equal(busy.record.status, 'in_progress');
    const { token } = [...door().open.values()][0];
    const mismatch = await thrown(idem.Mismatch, store.once('k', never, { fingerprint: { a: 2 } }));
    assert((await attempt.renew(900000)) > 800000);
    await attempt.check();
    await attempt.complete('secret', { text: 'note' });
    for (const verb of ['check', 'renew', 'complete', 'release']) {
        texts.push(inspect(await thrown(idem.Lost, attempt[verb]())));
    }
    texts.push(inspect(busy), inspect(mismatch), inspect(store, { depth: 9 }), inspect(process, { depth: 9 }));
    for (const text of texts) {
        assert(token && !text.includes(token) && !text.includes('secret'), text);
    }
    const replay = await store.begin('k', { fingerprint: { a: 1 } });
    assert.deepEqual([replay.replayed, replay.result], [true, 'secret']);
    for (const verb of ['fail', 'release', 'retry', 'unknown']) {
        await (await store.begin(verb))[verb]('why');
    }
    for (const key of [null, undefined, '', [], ['a', undefined], [, 'a']]) {
        await thrown(idem.MissingKey, store.once(key, never));
    }
    await thrown(TypeError, store.once('x', never, { leese: 1 }));
    await thrown(TypeError, store.once('x', never, { lease: NaN }));
    let deep = [];
    for (let i = 0; i < 300; i++) {
        deep = [deep];
    }
    for (const [key, words] of [
        ['x'.repeat(2000)], ['\\ud800'], [42], [{}], [['a', NaN]], ['x', { onExpiredLease: 'both' }],
        ['x', { lease: 60 }], ['x', { fingerprint: deep }], ['x', { fingerprint: new Map([[1, 2]]) }],
        ['x', { fingerprint: 'x'.repeat(25 << 20) }], ['x', { scope: '\\udc00' }],
    ]) {
        await thrown(idem.Invalid, store.once(key, never, words));
    }
    const words = { max: 1, per: 3600000 };
    const got = [];
    for (const request of ['a', 'b', 'a']) {
        got.push((await store.limit('up', 'ann', request, words)).admitted);
    }
    assert.deepEqual(got, [true, false, true]);
    const last = await store.begin('last');
    await thrown(idem.Invalid, store.close());
    await last.release();
    const { child } = door();
    await store.close();
    assert(child.over);
    assert.match((await thrown(idem.Invalid, store.begin('x'))).message, /closed/);
    """)
    for verb, status in (("fail", "failed"), ("release", "released"), ("retry", "retry"),
                         ("unknown", "unknown")):
        equal(b.record(verb)["status"], status)


@case
def a_lease_that_is_over(b):
    """check() asks where the lease is over by the clock, and where it runs a notice of
    the server suffices, which fires the signal too."""
    worker = started(b, """
    const taken = await store.begin('taken');
    say('begun');
    await wait();
    await taken.check(); // By our clock it runs, and nobody has told us.
    const [held] = door().open.values();
    held.until = 0;
    await thrown(idem.Lost, taken.check());
    await thrown(idem.Lost, taken.complete());
    const attempt = await store.begin('told');
    const signal = attempt.signal;
    const [other] = door().open.values();
    assert.equal(signal.aborted, false);
    const child = door().child;
    other.child.lost.set(other.number, 'lease_over');
    other.tell();
    assert(signal.aborted && signal.reason instanceof idem.Lost);
    await thrown(idem.Lost, attempt.check());
    await attempt.complete('nobody followed');
    assert.equal(await store.once('told', never), 'nobody followed');
    const late = await store.begin('late'); // Its signal is asked for after the loss.
    const [last] = door().open.values();
    last.child.lost.set(last.number, 'lease_over');
    last.tell();
    assert(late.signal.aborted && late.signal.reason instanceof idem.Lost);
    await late.release();
    """)
    equal(worker.reads(), "begun")
    equal(b("resolve", "taken", "--release", "--force", "--reason", "test").status, 0)
    worker.go()
    worker.ends()


@case
def time_that_tests_move(b):
    """Tests move the time of a store in memory: a lease that ended is lost before the call
    returns, and who waits for it goes on. Other stores refuse it."""
    runs(b, """
    const trial = idem.open('memory:');
    const rerun = { onExpiredLease: 'rerun' };
    const attempt = await trial.begin('k', rerun);
    const { signal } = attempt;
    for (let n = 0; n < 2; n++) {
        await trial.advance(40_000);
        await attempt.check(); // It was renewed.
    }
    const waits = trial.once('k', (other) => other.takeover, { wait: 86_400_000, waitThenRun: true, ...rerun });
    await trial.advance(120_000);
    assert(signal.aborted);
    await thrown(idem.Lost, attempt.check());
    assert.equal(await waits, true);
    await thrown(idem.Lost, attempt.complete());
    await trial.advance(2 * 86_400_000);
    assert.equal(await trial.once('k', () => 'anew', rerun), 'anew');
    await thrown(idem.Invalid, trial.advance(-1));
    await thrown(idem.Invalid, trial.advance(Infinity));
    await thrown(TypeError, trial.advance());
    await trial.close();
    assert.match((await thrown(idem.Invalid, store.advance(1))).message, /cannot be moved; use memory:/);
    """)


@case
def idempotent_functions(b):
    """The key, and the fingerprint, come from the arguments; what they are called with,
    and on, goes to the function as it is, and the attempt to a parameter that is left."""
    runs(b, """
    const till = { amount: 7, pay: store.idempotent(
        async function (order, ...more) { return [order.id, this.amount, more]; },
        { key: (order) => order.id, fingerprint: (order) => order, onExpiredLease: 'rerun' },
    ) };
    for (let n = 0; n < 2; n++) {
        assert.deepEqual(await till.pay({ id: '42' }, 1), ['42', 7, [1]]);
    }
    await thrown(idem.Mismatch, till.pay({ id: '42', more: 1 }));
    await thrown(idem.MissingKey, till.pay({}));
    const of = { key: (order) => order };
    const charge = store.idempotent(async (order, attempt) => {
        await attempt.check();
        return [order, attempt.key, attempt.fence > 0n, attempt.takeover];
    }, of);
    for (let n = 0; n < 2; n++) {
        assert.deepEqual(await charge('43'), ['43', '43', true, false]);
    }
    const noted = store.idempotent((order, note, attempt) => [note === undefined, attempt.key], of);
    assert.deepEqual(await noted('44'), [true, '44']);
    const priced = store.idempotent((order, currency = 'EUR') => currency, of);
    assert.equal(await priced('45'), 'EUR');
    assert.throws(() => store.idempotent(never, { key: '42' }), TypeError);
    """)


@case
def no_program(b):
    """One sentence says so, or that it does not start or has no store."""
    runs(b, """
    const path = process.env.PATH;
    delete process.env.IDEM_PROGRAM;
    process.env.PATH = '/nonexistent';
    assert.throws(() => idem.open('x'), /NoProgram: no idem program for linux-/);
    process.env.PATH = process.cwd(); // Which has the program.
    await idem.open(process.env.STORE).once('k', () => 1);
    await thrown(idem.NoProgram, idem.open(process.env.STORE, { program: '/dev/null' }).begin('k'));
    await thrown(idem.NoProgram, idem.open(process.env.STORE, { program: '/nonexistent' }).begin('k'));
    await thrown(idem.Unavailable, idem.open('sqlite:/nonexistent/idem.db').begin('k'));
    assert.throws(() => idem.open(''), idem.Invalid);
    """)


@case
def effect_and_record_in_one_commit(b):
    """On PostgreSQL the statement completes the attempt in the caller's own transaction."""
    postgres.need()
    with postgres.server() as database:
        equal(b("store", "create", "--store", database.url).status, 0)
        worker = started(b, """
        const attempt = await store.begin('k', { onExpiredLease: 'rerun' });
        say(JSON.stringify(await attempt.statement({ receipt: 42 })));
        await wait();
        await attempt.recorded();
        assert.deepEqual(await store.once('k', never), { receipt: 42 });
        """, STORE=database.url)
        made = json.loads(worker.reads())
        database.psql(f"BEGIN; CREATE TABLE effect (); {postgres.literal(made)}; COMMIT")
        worker.go()
        worker.ends()


# ---- One child ---------------------------------------------------------------


@case
def many_in_flight(b):
    """128 calls, each with a key of its own and one that all want, over one child, which
    is still the same for modules that are loaded anew. Answers that come at once leave the
    event loop to others in between."""
    runs(b, """
    let n = 0;
    await Promise.all(Array.from({ length: 128 }, async (_, i) => {
        assert.equal(await store.once(`own-${i}`, async () => i), i);
        assert.equal(await store.once('all', () => { n++; return 'one'; }, { wait: 60000 }), 'one');
    }));
    assert.equal(n, 1);
    let left = 256;
    for (let i = left; i > 0; i--) {
        store.once('all', never).then(() => left--);
    }
    while (left > 0) {
        const before = left;
        await new Promise(setImmediate);
        assert(before - left <= 64, `the loop had no turn for ${before - left} answers`);
    }
    const { pid } = door().child;
    for (const path of Object.keys(require.cache)) {
        delete require.cache[path];
    }
    const anew = require(process.env.PACKAGE);
    assert.notEqual(anew, idem);
    const attempt = await store.begin('busy');
    await thrown(anew.Busy, anew.open(process.env.STORE).once('busy', never));
    await attempt.release();
    assert.equal(door().child.pid, pid);
    assert.equal(process[Symbol.for('idem.doors.1')].size, 1);
    """)


@case
def an_abort_signal(b):
    """It cancels a begin that waits, or was not answered yet, which then claims nothing."""
    runs(b, """
    const attempt = await store.begin('waits');
    const control = new AbortController();
    const waiting = store.begin('waits', { wait: 600000, waitThenRun: true, signal: control.signal });
    await store.begin('waits').catch(() => {}); // It has asked.
    control.abort();
    assert.equal((await waiting.catch((error) => error)).name, 'AbortError');
    const cut = new AbortController();
    const asked = store.begin('cut', { signal: cut.signal });
    while (door().child.isIdle) {
        await null;
    }
    cut.abort('a word');
    assert.equal(await asked.catch((error) => error), 'a word');
    assert.equal(await store.begin('no', { signal: cut.signal }).catch((error) => error), 'a word');
    await attempt.release();
    for (const key of ['waits', 'cut', 'no']) {
        const next = await store.begin(key, { wait: 600000, waitThenRun: true });
        await next.complete({ a: 1 });
        assert.deepEqual((await store.begin(key)).result, { a: 1 });
    }
    """)


THREADS = """
    const { Worker: Thread, isMainThread, workerData, threadId } = require('node:worker_threads');
    const cluster = require('node:cluster');
    async function calls(who) {
        for (let n = 0; n < CALLS; n++) {
            const limit = store.limit('l', who, `${n}`, { max: n + 1, per: YEAR });
            assert.equal((await store.once('same', never)) + (await limit).remaining, 7);
        }
        assert.equal(await store.once(`key-${who}`, () => who), who);
        return door().child.pid;
    }
    if (!isMainThread || cluster.isWorker) {
        say(await calls(workerData ?? `p${cluster.worker.id}`));
        cluster.worker?.disconnect();
        return;
    }
    await store.once('same', () => 7);
    const ends = [];
    for (let n = 0; n < 2; n++) {
        ends.push(event(new Thread(__filename, { workerData: `t${n}` }), 'exit'), event(cluster.fork(), 'exit'));
    }
    say(await calls('main'));
    for (const [status] of await Promise.all(ends)) {
        assert.equal(status, 0);
    }
"""


@case
def threads_and_processes_have_their_own(b):
    """worker_threads and cluster, calls of each at the same time: five children, and no
    answer of another."""
    pids = runs(b, THREADS.replace("CALLS", str(deaths.CALLS)).replace("YEAR", f"{deaths.YEAR}e3")).split()
    equal((len(pids), len(set(pids))), (5, 5))
    for who in ("main", "t0", "t1", "p1", "p2"):
        equal(b.record(f"key-{who}")["status"], "completed")
    for pid in pids:
        until(lambda pid=pid: is_gone(int(pid)), "the child has gone")


# ---- Deaths ------------------------------------------------------------------


deaths.add_cases(started, {
    "race": "say('ready'); await wait(); say(await store.once('k', effect, { wait: 60000 }));",
    "control": "say('ready'); await wait(); say(effect());",
    "hang": """
    await store.once('KEY', async () => {
        effect();
        say(door().child.pid);
        await wait();
        THEN
        await wait();
    }, { onExpiredLease: 'POLICY', onDeath: 'DEATH', lease: 60000 });
    """,
    "kills its child": """
        const { child } = door();
        process.kill(child.pid, 'SIGKILL');
        while (!door().child || door().child === child) {
            await new Promise(setImmediate);
        }
        const [held] = door().open.values();
        assert.equal(held.child, door().child);
        say(door().child.pid);""",
    "request": """
    const { attempt } = await store.http({
        method: 'POST', target: '/', headers: [['Idempotency-Key', 'request']], scope: '', body: '',
    });
    THEN
    assert(await attempt.respond({ http_status: 201, headers: [] }));
    """,
    "after": """
    await thrown(idem.Unknown, store.once('hold-lease', never));
    const again = { onExpiredLease: 'rerun' };
    await thrown(idem.Busy, store.once('rerun-lease', never, again));
    assert.equal(await store.once('rerun-now', (attempt) => attempt.takeover, again), true);
    """,
    "once": """
    let n = 0;
    assert.deepEqual(await store.once('KEY', ({ attempts }) => [++n, attempts]), [1, 1]);
    assert.deepEqual(await store.once('KEY', never), [1, 1]);
    """,
    "says its child": """
    await store.limit('l', 's', 'r', { max: 9, per: 60000 });
    say(door().child.pid);
    """,
    "refused": """
    for (let n = 0; n < 2; n++) {
        await assert.rejects(store.begin('k'), idem.Invalid);
    }
    say('refused');
    await wait();
    """,
    "done": "await store.once('done', effect);",
    "open": "await store.begin('open');",
    "exit": "await store.once('exit', () => process.exit());",
    "unread": """
    const long = 'x'.repeat(1e6);
    await store.once('long', () => long);
    say(door().child.pid);
    await wait();
    const asked = Array.from({ length: 64 }, () => store.once('long', never));
    await new Promise(setImmediate); // They have left.
    say('asked');
    for (const one of asked) {
        assert.equal(await one, long);
    }
    """,
    "frozen": """
    const attempt = await store.begin('KEY', { onExpiredLease: 'rerun', lease: 12000 });
    say('begun');
    await wait();
    await attempt.check();
    say('ours');
    await wait();
    await attempt.check().then(effect, (error) => {
        assert(error instanceof idem.Lost);
        say('lost');
    });
    if (!attempt.signal.aborted) {
        await event(attempt.signal, 'abort');
    }
    say('aborted');
    """,
    "told of it": "lost\naborted\n",
})  # fmt: skip


@case
def a_child_is_killed_while_a_begin_waits(b):
    """The next child goes on waiting, for the same claimant."""
    runs(b, """
    const other = idem.open(process.env.STORE, { program: `${process.cwd()}/idem` });
    const attempt = await other.begin('waits');
    const waiting = store.once('waits', never, { wait: 600000 });
    await store.limit('l', 's', 'r', { max: 1, per: 60000 }); // It has asked.
    const doors = [...process[Symbol.for('idem.doors.1')].values()];
    const mine = doors.find(({ open }) => open.size === 0);
    const killed = mine.child;
    process.kill(killed.pid, 'SIGKILL');
    while (!mine.child || mine.child === killed) {
        await new Promise(setImmediate);
    }
    await attempt.complete('from the other');
    assert.equal(await waiting, 'from the other');
    """)


@case
def a_child_that_does_not_start_again(b):
    """It is tried once for each call; an end that was not recorded can be said again."""
    b.write("broken", f"#!/bin/sh\necho >>{b.file('starts')}\n")
    os.chmod(b.file("broken"), 0o755)
    runs(b, """
    const attempt = await store.begin('k');
    const program = door().program;
    door().program = `${process.cwd()}/broken`;
    const { child } = door();
    process.kill(child.pid, 'SIGKILL');
    while (!child.over) {
        await new Promise(setImmediate);
    }
    await thrown(idem.Unavailable, door().connect().catch(() => attempt.complete('r')));
    const error = await thrown(idem.Unavailable, attempt.complete('r'));
    assert.match(error.message, /ended with status 0/);
    door().program = program;
    await attempt.complete('r');
    assert.equal(await store.once('k', never), 'r');
    """)
    equal(b.read("starts"), "\n" * 3)


# ---- Jest, and the package ---------------------------------------------------


@case
def jest_ends(b):
    """Two files, each with modules of its own and timers that are faked, and an attempt that
    is left open: Jest ends by itself, and its child too."""
    env = {"NODE_PATH": os.path.join(SERVERS, "node_modules"), **environment_of(b), "CI": "1"}
    say = "console.log(require.resolve('jest/bin/jest'))"
    found = subprocess.run([NODE, "-e", say], env=env, capture_output=True)
    if found.returncode:
        skip("jest is not installed: npm install jest, and its place into NODE_PATH")
    for name in ("one", "two"):
        b.write(f"{name}.test.js", """
jest.useFakeTimers();
const idem = require(process.env.PACKAGE);
const store = idem.open(process.env.STORE);
test('once', async () => {
    expect(await store.once('k', () => 42)).toBe(42);
    expect((await store.begin('NAME')).attempts).toBe(1);
});
""".replace("NAME", name))
    b.write("package.json", "{}")
    argv = [NODE, found.stdout.decode().strip(), "--runInBand"]
    done = subprocess.run(argv, env=env, cwd=b.path, capture_output=True, timeout=PATIENCE)
    told = done.stderr.decode()
    equal((done.returncode, "did not exit" in told), (0, False))
    until(lambda: not marked(f"STORE={b.idem.store}".encode()), "its child has ended")
    equal([b.record(name)["status"] for name in ("one", "two")], ["unknown"] * 2)


@case
def it_needs_nothing_else(b):
    """No import but of Node.js and itself; import and require find the same names, and
    those of the types."""
    for path in glob.glob(os.path.join(PACKAGE, "**", "*.js"), recursive=True):
        for name in re.findall(r"require\('([^']*)'\)", read(path)):
            assert name.startswith(("node:", "./lib/", "./")), (path, name)
    typed = re.findall(r"^export (?:class|function) (\w+)", read(os.path.join(PACKAGE, "index.d.ts")), re.M)
    out = runs(b, """
    const { pathToFileURL } = require('node:url');
    const found = await import(pathToFileURL(`${process.env.PACKAGE}/index.js`));
    const names = Object.keys(idem);
    for (const name of names) {
        assert.equal(found[name], idem[name]);
    }
    say(names.join(' '));
    """)
    equal(sorted(out.split()), sorted(typed))


@case
def what_the_pages_show_works(b):
    """Each block of JavaScript of its README and docs/languages.md runs, in order."""
    os.mkdir(b.file("node_modules"))
    os.symlink(PACKAGE, b.file("node_modules/idem"))

    def play(script):
        b.write("page.mjs", script)
        return [NODE, "--throw-deprecation", "page.mjs"], environment_of(b)

    deaths.play_pages(b, "js", "node", play, "its own error", "must look: unknown", "taken over: true")


@case
def the_packed_file_is_all_it_takes(b):
    """From `npm install` of the packed file, without a network, to a replay by the page's
    first ten lines: as an ordinary user, with nothing to write to but the store."""
    packed.pack(b.path)
    (first, *_) = re.findall(r"^```js\n(.*?)^```$", read(os.path.join(PACKAGE, "README.md")), re.M | re.S)
    assert first.count("\n") <= 10 and "1001" in first, first
    b.write("page.mjs", first.replace("1001", "process.pid"))
    install = "npm install --offline --no-audit --no-fund idem-*.tgz"
    printed = packed.try_out(b.path, install, "node page.mjs")
    equal((len(printed), len(set(printed))), (4, 1))


if __name__ == "__main__":
    main()

'use strict';

const { types } = require('node:util');
const { Busy, Failed, Invalid, Lost, Mismatch, NoProgram, NotKept } = require('./errors.js');
const { NotRecorded, NothingHappened, Released, StoreError } = require('./errors.js');
const { Unavailable, Unknown } = require('./errors.js');
const { LIMIT, claimOf, decode, encode, exchangeOf, isBefore } = require('./values.js');
const { milliseconds, settled, wordsOf } = require('./values.js');
const { findProgram } = require('./child.js');
const { doorOf } = require('./door.js');

const TEXT_MAX = 1000; /* Of a note that we write. */
const VERDICTS = {
    BUSY: Busy,
    MISMATCH: Mismatch,
    UNKNOWN: Unknown,
    FAILED: Failed,
    RELEASED: Released,
};
const KINDS = { retry: Unavailable, lost: Lost, caller: Invalid };

/* The error for what the server, or its child, said. */
function refusal(said) {
    const data = said.data ?? {};
    const Kind = KINDS[data.kind] ?? (data.kind ? StoreError : Invalid);
    const error = new Kind(said.message);
    if (data.name) {
        error.code = data.name;
    }
    return error;
}

/* The error of this module for what came through the door. */
async function told(promise, program, signal) {
    try {
        return await promise;
    } catch (error) {
        if (types.isNativeError(error) || (signal?.aborted && error === signal.reason)) {
            throw error;
        }
        if (error.error) {
            throw new NoProgram(`cannot start ${program}: ${error.error.message}`);
        }
        if (error.status !== undefined) {
            const how = error.signal ?? `status ${error.status}`;
            throw new Unavailable(`idem serve ended with ${how}; standard error has its reason`);
        }
        throw refusal(error);
    }
}

/* An attempt that was started, or a replay, whose `result` is there. */
class Attempt {
    #store;
    #door;
    #held;
    #recorded;
    #wasLost = false;
    #controller; /* Made for whom asks for its signal. */

    constructor(store, door, params, { got, held }) {
        const record = got.record ?? {};
        this.key = params.key;
        this.scope = params.scope ?? '';
        this.replayed = got.verdict === 'REPLAY';
        this.record = record;
        this.fence = BigInt(got.fence ?? record.fence ?? 0);
        this.attempts = got.attempts ?? 0;
        this.takeover = got.takeover ?? false;
        this.#store = store;
        this.#door = door;
        this.#held = held;
        this.#recorded = got.result;
        if (held) {
            held.owner = store;
            held.onLost = () => {
                this.#wasLost = true;
                this.#controller?.abort(lost());
            };
            held.tell();
        }
    }

    /* The recorded result, of a replay. */
    get result() {
        return decode(this.#recorded);
    }

    /* Fires when the lease is lost. */
    get signal() {
        if (!this.#controller) {
            this.#controller = new AbortController();
            if (this.#wasLost) {
                this.#controller.abort(lost());
            }
        }
        return this.#controller.signal;
    }

    get hasEnded() {
        return !this.#held || this.#held.isEnding;
    }

    #ours() {
        if (this.hasEnded) {
            throw new Lost('the attempt has ended, or is a replay');
        }
    }

    async #end(verb, params, result) {
        this.#ours();
        const asked = { ...settled(params), result };
        return told(this.#door.end(this.#held, verb, asked), this.#store.program);
    }

    /* What cannot be kept is done all the same. */
    async #completed(verb, value, text) {
        this.#ours();
        let form;
        let unfit;
        try {
            form = encode(value);
        } catch (error) {
            unfit = error;
        }
        let got;
        if (form) {
            try {
                got = await this.#end(verb, { text }, form.result);
            } catch (error) {
                if (!(error instanceof Invalid) || error.code) {
                    throw error;
                }
                unfit = error; /* Not the call is wrong: the line would be too long. */
            }
        }
        got ??= await this.#end(verb, { text }, { not_kept: true });
        if (got.not_kept) {
            const why = unfit?.message ?? 'too long';
            const error = new NotKept(`the work is done; its result is not kept: ${why}`);
            throw Object.assign(error, { result: value, cause: unfit });
        }
        return form.back;
    }

    /* The work is done. Gives the result as a replay has it. */
    async complete(result, { text } = {}) {
        return this.#completed('complete', result, text);
    }

    /* The work failed, and a person must look. */
    async fail(text, { result } = {}) {
        await this.#completed('fail', result, text);
    }

    /* Nothing happened, and another may try. */
    async release(text) {
        await this.#end('release', { text });
    }

    /* It failed and may have had effects; the next caller runs it again. */
    async retry(text, { failuresMax, after } = {}) {
        const params = { text, failures_max: failuresMax };
        if (after !== undefined) {
            params.retry_after_ms = milliseconds(after, 'after');
        }
        await this.#end('retry', params);
    }

    /* It may have happened. */
    async unknown(text) {
        await this.#end('unknown', { text });
    }

    /* The response to a request over HTTP, as http.end has it, of texts and numbers. False: it
     * is not on record. */
    async respond(response) {
        if (this.hasEnded) {
            return true; /* The handler itself said how it ended. */
        }
        const tombstone = { http_status: response.http_status, headers: [], not_kept: true };
        const lists = { outcome: response.outcome, replay_headers: response.replay_headers };
        const end = (asked) =>
            told(this.#door.end(this.#held, 'http.end', asked), this.#store.program);
        try {
            await end(response).catch((error) => {
                if (!(error instanceof Invalid) || error.code) {
                    throw error;
                }
                return end({ ...tombstone, ...lists });
            });
            return true;
        } catch {
            Attempt.drop(this);
            return false;
        }
    }

    /* The SQL (text, values) that completes it in your own transaction on PostgreSQL. */
    async statement(result) {
        this.#ours();
        const params = { result: encode(result).result };
        const asked = this.#door.ask('statement', (child) => this.#held.nameFor(child), params);
        const { got } = await told(asked, this.#store.program);
        return got;
    }

    /* The transaction with the statement was committed. */
    async recorded() {
        await this.#end('recorded', {});
    }

    /* Extend the lease, by default by its length; gives what is left of it. */
    async renew(lease) {
        this.#ours();
        const params = lease === undefined ? {} : { lease_ms: milliseconds(lease, 'lease') };
        const left = await told(this.#door.renew(this.#held, params), this.#store.program);
        return left ?? Infinity;
    }

    /* Reject with Lost where the lease is over: call it before each effect. */
    async check() {
        this.#ours();
        if (this.#held.isLost) {
            throw lost();
        }
        if (!isBefore(this.#held.until)) {
            await this.renew(); /* As we know it; the server may have renewed it. */
        }
    }

    /* For once(): the end of work that threw `error`. */
    static async endAs(attempt, error, hasBegun) {
        const text = wellFormed(String(error).slice(0, TEXT_MAX));
        if (!hasBegun) {
            await attempt.release('the work was not started');
        } else if (error instanceof NothingHappened) {
            await attempt.release(text);
        } else if (error instanceof Failed) {
            const failing = attempt.fail(wellFormed(error.message), { result: error.result });
            await failing.catch((other) => {
                if (!(other instanceof NotKept)) {
                    throw other;
                }
            });
        } else if (attempt.#held.params.on_expired_lease === 'rerun') {
            await attempt.retry(text);
        } else {
            await attempt.unknown(text);
        }
    }

    /* For once(): give the attempt up as it is. */
    static drop(attempt) {
        attempt.#held.isEnding = true;
        attempt.#door.drop(attempt.#held);
    }
}

function lost() {
    return new Lost('the lease is over: start no further effect');
}

function wellFormed(text) {
    return Buffer.from(text).toString();
}

/* The error for a verdict. */
function notStarted(key, got) {
    const { record } = got;
    const Kind = VERDICTS[got.verdict];
    const note = (Kind === Failed || Kind === Unknown) && (record.error || record.note);
    const name = JSON.stringify(key);
    const error = new Kind(note || `the key ${name} is ${record.status}: ${got.verdict}`);
    error.record = record;
    if (error instanceof Busy) {
        error.leaseLeft = got.lease_left_ms ?? Infinity;
    }
    if (error instanceof Failed) {
        try {
            error.result = decode(got.result);
        } catch {
            error.result = undefined; /* It was not kept. */
        }
    }
    return error;
}

/* A store, from open(). */
class Store {
    #door;
    #isClosed = false;
    #calls = 0;

    constructor(url, program) {
        if (!url || typeof url !== 'string') {
            throw new Invalid('the URL of the store is missing');
        }
        this.program = findProgram(program);
        this.#door = doorOf(this.program, url);
    }

    async #ask(ask, signal) {
        if (this.#isClosed) {
            throw new Invalid('the store is closed');
        }
        this.#calls++;
        try {
            return await told(ask(), this.program, signal);
        } finally {
            this.#calls--;
        }
    }

    /* Claim a key: an attempt that must be ended, or a replay (`replayed`, `result`). */
    async begin(key, { signal, ...claim } = {}) {
        const params = claimOf(key, claim);
        signal?.throwIfAborted();
        const begun = await this.#ask(() => this.#door.begin('begin', params, signal), signal);
        if (VERDICTS[begun.got.verdict]) {
            throw notStarted(key, begun.got);
        }
        return new Attempt(this, this.#door, params, begun);
    }

    /* A request over HTTP, as http.begin has it: an attempt, or the whole answer to it. */
    async http(request, claim = {}) {
        const params = exchangeOf(request, claim);
        const begun = await this.#ask(() => this.#door.begin('http.begin', params));
        const { answer } = begun.got;
        if (answer) {
            return { answer: { ...answer, body: Buffer.from(answer.body, 'base64') } };
        }
        const attempt = new Attempt(this, this.#door, params, begun);
        await attempt.check().catch(async (error) => {
            await Attempt.endAs(attempt, error, /* hasBegun= */ false);
            throw error;
        });
        return { attempt };
    }

    /* For lambdaHandler(): event.begin or event.end. */
    async event(method, params) {
        const asked = settled(params);
        const { got } = await this.#ask(() => this.#door.ask(method, () => ({}), asked));
        return got;
    }

    /* Gives what the work gives, now or when it ran. */
    async once(key, work, claim) {
        if (typeof work !== 'function') {
            throw new TypeError('once: the work is a function');
        }
        const attempt = await this.begin(key, claim);
        if (attempt.replayed) {
            return attempt.result;
        }
        let hasBegun = false;
        let value;
        try {
            await attempt.check();
            hasBegun = true;
            value = await work(attempt);
        } catch (error) {
            if (!attempt.hasEnded) {
                await Attempt.endAs(attempt, error, hasBegun).catch((other) => {
                    throw notRecorded(attempt, 'how the work ended', other, error);
                });
            }
            throw error;
        }
        if (attempt.hasEnded) {
            return value; /* The work itself said how it ended. */
        }
        try {
            return await attempt.complete(value);
        } catch (error) {
            if (error instanceof NotKept) {
                throw error;
            }
            const found = notRecorded(attempt, 'that the work is done', error, error);
            throw Object.assign(found, { result: value });
        }
    }

    /* The function with once() around it. The options, of which `key` is needed, may be
     * functions of its arguments. Where it has a parameter more than there are arguments, that
     * is the attempt. */
    idempotent(work, { key, ...claim } = {}) {
        if (typeof work !== 'function' || typeof key !== 'function') {
            throw new TypeError('idempotent: the work and its key are functions');
        }
        const store = this;
        return async function (...args) {
            const of = Object.entries(claim).map(([word, value]) => [
                word,
                typeof value === 'function' ? value(...args) : value,
            ]);
            const run = (attempt) => {
                const all = [...args];
                if (work.length > args.length) {
                    all[work.length - 1] = attempt;
                }
                return work.apply(this, all);
            };
            return store.once(key(...args), run, Object.fromEntries(of));
        };
    }

    /* Count a request against a limit, once for each `request`. */
    async limit(name, subject, request, limit) {
        const params = settled({ name, subject, request, ...wordsOf(limit, LIMIT) });
        const { got } = await this.#ask(() => this.#door.ask('limit', () => ({}), params));
        const { admitted, repeated, remaining, start_ms: startMs, end_ms: endMs } = got;
        return { admitted, repeated, remaining, startMs, endMs };
    }

    /* For tests: move the time of a store in memory forward. */
    async advance(time) {
        const params = { ms: milliseconds(time, 'the time') };
        await this.#ask(() => this.#door.ask('advance', () => ({}), params));
    }

    /* End the child. Refused while attempts are open. */
    async close() {
        const held = [...this.#door.open.values()].filter((one) => one.owner === this);
        if (held.length + this.#calls > 0) {
            const open = `${held.length} attempts were not ended`;
            throw new Invalid(`${open}, ${this.#calls} calls not answered`);
        }
        this.#isClosed = true;
        await this.#door.close();
    }
}

function notRecorded(attempt, what, error, cause) {
    Attempt.drop(attempt);
    const found = new NotRecorded(`${what} is not on record: ${error.message}`);
    return Object.assign(found, { cause }, error.code && { code: error.code });
}

/* A store; its child starts with the first call. */
function open(url, { program } = {}) {
    return new Store(url, program);
}

module.exports = { open };

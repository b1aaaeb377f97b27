'use strict';

/* The way to a store: its child, and the attempts that are open. There is one in a thread for
 * a store, kept on `process`, because Jest loads modules anew for each test. So what stands
 * here is of no use to a caller as it is: errors are as the server sent them. */

const { setInterval, clearInterval } = require('node:timers');
const { Child, GONE } = require('./child.js');
const { askTime, isBefore } = require('./values.js');

const KEPT = Symbol.for('idem.doors.1');
const CLAIMS = ['begin', 'http.begin'];
const TRIES = 5; /* Children that die of one call. */
const TIMER_MAX = 2 ** 31 - 1;

function doorOf(program, url) {
    if (!process[KEPT]) {
        Object.defineProperty(process, KEPT, { value: new Map() });
    }
    const name = JSON.stringify([program, url]);
    if (!process[KEPT].has(name)) {
        process[KEPT].set(name, new Door(program, url));
    }
    return process[KEPT].get(name);
}

/* The lease that is left was counted after we had asked; not known is over. */
function until(asked, got) {
    return got.lease_left_ms === null ? Infinity : asked + got.lease_left_ms;
}

/* What this thread knows of an attempt. */
class Held {
    isEnding = false;
    isTaken = false;
    child = null;
    number = 0;
    until = 0;
    owner = null; /* Whose close() it forbids. */
    onLost = () => {};

    constructor(method, params, token, fence) {
        this.method = method;
        this.params = params;
        this.token = token;
        this.fence = fence;
    }

    /* For a request: the number was given by a child, and the token goes with any. */
    nameFor(child) {
        return child === this.child ? { attempt: this.number } : { token: this.token };
    }

    get isLost() {
        return this.isTaken || Boolean(this.child?.lost.has(this.number));
    }

    tell() {
        if (this.isLost) {
            this.onLost();
        }
    }
}

class Door {
    child = null;
    open = new Map(); /* By nonce. */
    #connecting = null;
    #beat = null;
    #beatTime = 0;

    constructor(program, url) {
        this.program = program;
        this.url = url;
    }

    #connected() {
        return this.child?.over ? null : this.child;
    }

    /* The child; a new one takes over the attempts that are open. */
    async connect() {
        const child = this.#connected();
        if (child) {
            return child;
        }
        this.#connecting ??= this.#start().finally(() => {
            this.#connecting = null;
        });
        return this.#connecting;
    }

    async #start() {
        const child = new Child(
            this.program,
            this.url,
            (of, number) => this.#lost(of, number),
            (of) => this.#gone(of),
        );
        await child.hello();
        await Promise.all([...this.open.values()].map((held) => this.adopt(child, held)));
        this.child = child;
        return child;
    }

    /* The same nonce finds the same claim, which this child renews from now on. */
    async adopt(child, held) {
        if (held.isEnding || held.child === child) {
            return;
        }
        const { wait_ms, wait_then_run, ...params } = held.params;
        const asked = askTime();
        let got;
        try {
            got = await child.call(held.method, { ...params, again: true }).answer;
        } catch (error) {
            held.isTaken = error.data?.kind === 'lost';
            held.tell();
            return;
        }
        if (got.verdict === 'STARTED' && got.fence === held.fence) {
            this.#belongs(held, child, asked, got);
            return;
        }
        held.isTaken = true;
        held.tell();
        if (got.verdict === 'STARTED') {
            child.post('release', { attempt: got.attempt });
        }
    }

    #belongs(held, child, asked, got) {
        held.child = child;
        held.number = got.attempt;
        held.until = until(asked, got);
        if (got.lease_left_ms !== null) {
            this.#beatWithin(Math.min(got.lease_left_ms / 4, TIMER_MAX));
        }
        held.tell();
    }

    #gone(child) {
        if (child === this.child) {
            this.child = null;
            if (this.open.size > 0) {
                this.connect().catch(() => {}); /* Who else renews what is open? */
            }
        }
    }

    #lost(child, number) {
        for (const held of this.open.values()) {
            if (held.child === child && held.number === number) {
                held.tell();
            }
        }
    }

    /* Send heartbeats at least that often while attempts are open. */
    #beatWithin(time) {
        if (!this.#beat || time < this.#beatTime) {
            clearInterval(this.#beat);
            this.#beatTime = time;
            this.#beat = setInterval(() => this.#pulse(), time);
            this.#beat.unref();
        }
    }

    #pulse() {
        if (this.open.size === 0) {
            clearInterval(this.#beat);
            this.#beat = null;
        } else if (this.child) {
            this.child.post('ping', {});
        } else {
            this.connect().catch(() => {
                for (const held of this.open.values()) {
                    if (!isBefore(held.until)) {
                        held.onLost(); /* As far as can be known here. */
                    }
                }
            });
        }
    }

    /* Ask, and ask a new child where one died before it answered. `nameFor` gives the
     * parameters that depend on the child. */
    async ask(method, nameFor, params, signal) {
        for (let n = 0; n < TRIES; n++) {
            const child = this.#connected() ?? (await this.connect());
            signal?.throwIfAborted();
            const line = Child.line(method, { ...nameFor(child), ...params });
            if (Buffer.byteLength(line.text) > child.lineMax) {
                throw { message: 'the request is longer than a line may be' };
            }
            try {
                const { answer } = child.send(line);
                const got = await (signal ? cancellable(child, line.id, answer, signal) : answer);
                return { child, got };
            } catch (error) {
                if (error !== GONE) {
                    throw error;
                }
                params = CLAIMS.includes(method) ? { ...params, again: true } : params;
            }
        }
        const message = `idem serve ended ${TRIES} times before it answered`;
        throw { message, data: { kind: 'retry' } };
    }

    /* Claim; `held` is there where it is ours now. */
    async begin(method, params, signal) {
        const asked = askTime();
        const { child, got } = await this.ask(method, () => ({}), params, signal);
        if (got.verdict !== 'STARTED') {
            return { got };
        }
        const held = new Held(method, params, got.token, got.fence);
        this.open.set(params.nonce, held);
        this.#belongs(held, child, asked, got);
        if (child.over) {
            await this.connect().then((next) => this.adopt(next, held)).catch(() => {});
        }
        return { got, held };
    }

    async end(held, verb, params) {
        held.isEnding = true;
        try {
            const { got } = await this.ask(verb, (child) => held.nameFor(child), params);
            this.drop(held);
            return got;
        } catch (error) {
            held.isEnding = error.data?.kind === 'lost'; /* Else it may be tried again. */
            if (held.isEnding) {
                this.drop(held);
            }
            throw error;
        }
    }

    drop(held) {
        this.open.delete(held.params.nonce);
        held.child?.lost.delete(held.number);
    }

    async renew(held, params) {
        const asked = askTime();
        const { got } = await this.ask('renew', (child) => held.nameFor(child), params);
        held.until = until(asked, got);
        return got.lease_left_ms;
    }

    /* End the child, unless somebody needs it. */
    async close() {
        const child = this.child;
        if (child && this.open.size === 0 && child.isIdle) {
            this.child = null;
            await child.close();
        }
    }
}

/* An answer that is not awaited any longer once the signal has fired: the server gives the
 * claim back, whether it was made or not. */
function cancellable(child, id, answer, signal) {
    return new Promise((resolve, reject) => {
        const cancel = () => {
            child.post('cancel', { id });
            child.forget(id);
            reject(signal.reason);
        };
        signal.addEventListener('abort', cancel, { once: true });
        const after = (settle) => (value) => {
            signal.removeEventListener('abort', cancel);
            settle(value);
        };
        answer.then(after(resolve), after(reject));
    });
}

module.exports = { doorOf };

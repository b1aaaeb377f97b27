'use strict';

/* One process of `idem serve --stdio`, and its pipes. They keep our process from ending only
 * while an answer is awaited. */

const { randomBytes } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { spawn } = require('node:child_process');
const { setImmediate, setTimeout, clearTimeout } = require('node:timers');
const { NoProgram } = require('./errors.js');

const PATIENCE = 10000; /* Milliseconds, for a server that was told to end. */
const NEWLINE = 10;
const SLICE = 16; /* Answers whose callers go on in one turn of the event loop. */
const UNSENT_MAX = 1 << 20; /* Characters that wait for the end of a turn. */
const SECRET = randomBytes(8).toString('hex');
let sent = 0; /* Requests. */

/* What a call rejects with; any other error is the server's, as it was sent. */
const GONE = { message: 'idem serve ended before it answered', data: { kind: 'retry' } };

/* The path of the program, from `program`, IDEM_PROGRAM, our folder or PATH. */
function findProgram(program) {
    const machine = `${process.platform}-${process.arch}`;
    const own = path.join(__dirname, '..', 'bin', machine, 'idem');
    const named = program || process.env.IDEM_PROGRAM;
    const folders = (process.env.PATH ?? '').split(':').filter(Boolean);
    for (const place of named ? [] : [own, ...folders.map((folder) => path.join(folder, 'idem'))]) {
        try {
            fs.accessSync(place, fs.constants.X_OK);
            return place;
        } catch {
            continue;
        }
    }
    if (!named) {
        throw new NoProgram(`no idem program for ${machine} here: set IDEM_PROGRAM`);
    }
    return named;
}

class Child {
    over = false;
    lineMax = 0;
    lost = new Map(); /* Attempts that the server says are lost, by number. */
    #calls = new Map(); /* By id. */
    #awaited = 0;
    #unsent = ''; /* Lines. */
    #rest = []; /* Of a line. */
    #lines = [];
    #isTurning = false; /* The event loop has its turn, and then come those lines. */
    #process;
    #exit;
    #onLost;
    #onGone;

    constructor(program, url, onLost, onGone) {
        const env = { ...process.env, IDEM_STORE: url }; /* Not an argument: others read those. */
        const stdio = ['pipe', 'pipe', 'inherit'];
        const child = spawn(program, ['serve', '--stdio'], { env, stdio });
        this.#process = child;
        this.#onLost = onLost;
        this.#onGone = onGone;
        this.#exit = new Promise((resolve) => {
            child.on('error', (error) => resolve({ error }));
            child.on('exit', (status, signal) => resolve({ status, signal }));
        });
        child.on('error', () => this.#end());
        child.stdin.on('error', () => {}); /* It has gone, and its end of file comes. */
        child.stdout.on('error', () => {});
        child.stdout.on('data', (more) => this.#take(more));
        child.stdout.on('close', () => {
            this.#lines.splice(0).forEach((line) => this.#takeLine(line));
            this.#end();
        });
    }

    get pid() {
        return this.#process.pid;
    }

    /* Greet it; reject with how it ended. */
    async hello() {
        this.#hold(1);
        try {
            const got = await this.call('hello', { protocol: 1, pid: process.pid }).answer;
            this.lineMax = got.line_max;
        } catch (error) {
            if (error === GONE) {
                throw await this.#exit;
            }
            this.#cut(); /* It is there, and refuses us. */
            throw error;
        } finally {
            this.#hold(-1);
        }
    }

    /* The line of a request. Its id cannot be guessed, so that no answer to another is taken
     * for its. */
    static line(method, params) {
        const id = `${SECRET}-${++sent}`;
        return { id, text: `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n` };
    }

    call(method, params, isAwaited = true) {
        return this.send(Child.line(method, params), isAwaited);
    }

    send({ id, text }, isAwaited = true) {
        const answer = new Promise((resolve, reject) => {
            if (this.over) {
                reject(GONE);
                return;
            }
            this.#calls.set(id, { resolve, reject, isAwaited });
            this.#hold(isAwaited ? 1 : 0);
            this.#write(text);
        });
        return { id, answer };
    }

    /* One write takes all requests of a turn of the event loop. */
    #write(text) {
        if (this.#unsent === '') {
            setImmediate(() => this.#flush());
        }
        this.#unsent += text;
        if (this.#unsent.length > UNSENT_MAX) {
            this.#flush();
        }
    }

    #flush() {
        const text = this.#unsent;
        this.#unsent = '';
        if (text !== '') {
            this.#process.stdin.write(text);
        }
    }

    /* Send a request whose answer does not matter. */
    post(method, params) {
        this.call(method, params, false).answer.catch(() => {});
    }

    /* Nobody awaits this answer any longer. */
    forget(id) {
        const call = this.#calls.get(id);
        if (call?.isAwaited) {
            call.isAwaited = false;
            this.#hold(-1);
        }
    }

    get isIdle() {
        return this.#awaited === 0;
    }

    /* Say goodbye, and see it end. */
    async close() {
        this.#hold(1);
        let timer;
        const patience = new Promise((resolve) => {
            timer = setTimeout(resolve, PATIENCE);
        });
        const end = this.call('bye', {}).answer.catch(() => {}).then(() => this.#exit);
        await Promise.race([end, patience]);
        clearTimeout(timer);
        this.#hold(-1);
        this.#cut();
    }

    #hold(more) {
        const was = this.#awaited > 0;
        this.#awaited += more;
        const is = this.#awaited > 0;
        if (was !== is) {
            for (const handle of [this.#process, this.#process.stdin, this.#process.stdout]) {
                handle[is ? 'ref' : 'unref']?.();
            }
        }
    }

    #cut() {
        this.#process.stdin.destroy();
        this.#process.stdout.destroy();
        this.#end();
    }

    #end() {
        if (this.over) {
            return;
        }
        this.over = true;
        const calls = [...this.#calls.values()];
        this.#calls.clear();
        this.#onGone(this);
        for (const call of calls) {
            this.#hold(call.isAwaited ? -1 : 0);
            call.reject(GONE);
        }
    }

    /* All lines that have come to their end are decoded at once. */
    #take(more) {
        const end = more.lastIndexOf(NEWLINE) + 1;
        if (end > 0) {
            this.#rest.push(more.subarray(0, end));
            const [first, ...others] = this.#rest;
            const lines = (others.length > 0 ? Buffer.concat(this.#rest) : first).toString();
            this.#rest = [];
            this.#lines.push(...lines.split('\n').slice(0, -1));
        }
        if (end < more.length) {
            this.#rest.push(more.subarray(end));
        }
        if (!this.#isTurning) {
            this.#turn();
        }
    }

    /* Many answers come at once. After some of them the new requests of their callers leave,
     * so that the server works while the others are read. */
    #turn() {
        this.#flush();
        this.#isTurning = this.#lines.length > 0;
        if (this.#isTurning) {
            this.#lines.splice(0, SLICE).forEach((line) => this.#takeLine(line));
            setImmediate(() => this.#turn());
        }
    }

    #takeLine(line) {
        try {
            this.over || this.#took(JSON.parse(line));
        } catch {
            this.#cut(); /* That is not of the protocol. */
        }
    }

    #took(message) {
        if (message.method) {
            this.lost.set(message.params.attempt, message.params.reason);
            this.#onLost(this, message.params.attempt);
            return;
        }
        const call = this.#calls.get(message.id);
        if (!this.#calls.delete(message.id)) {
            throw new Error('the answer to another');
        }
        if (message.error) {
            call.reject(message.error);
        } else {
            call.resolve(message.result);
        }
        this.#hold(call.isAwaited ? -1 : 0);
    }
}

module.exports = { Child, GONE, findProgram };

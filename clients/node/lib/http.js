'use strict';

/* One request over HTTP: run it, or answer it. What the frameworks have in common. */

const { Invalid } = require('./errors.js');

const METHODS = ['POST', 'PATCH'];

/* What a middleware is told once. */
class Guard {
    #options;

    constructor({ store, scope, required = false, replayHeaders, outcome, ...claim }) {
        if (!store || (typeof scope !== 'string' && typeof scope !== 'function')) {
            throw new TypeError('needed: a store, and a scope, a text or a function of the request');
        }
        this.#options = { store, scope, required, claim };
        this.rules = { outcome, replay_headers: replayHeaders?.join() };
    }

    takes({ method, headers }) {
        const hasKey = headers['idempotency-key'] !== undefined;
        return METHODS.includes(method) && (hasKey || this.#options.required);
    }

    /* The node:http request `req`, as the framework has it, whose `body` was read. */
    async begin(req, target, body, request) {
        const { store, scope, claim } = this.#options;
        const who = typeof scope === 'function' ? await scope(request) : { toString: () => scope };
        const headers = [];
        for (let i = 0; i < req.rawHeaders.length; i += 2) {
            headers.push([req.rawHeaders[i], req.rawHeaders[i + 1]]);
        }
        const asked = {
            method: req.method,
            target,
            headers,
            body: bytesOf(req, body).toString('base64'),
            ...this.rules,
        };
        if (who) {
            asked.scope = String(who);
        }
        const { answer, attempt } = await store.http(asked, claim);
        return { answer: answer && { ...answer, headers: grouped(answer.headers) }, attempt };
    }
}

/* Pairs of a name and its value, or all of its values. */
function grouped(headers) {
    const values = new Map();
    for (const [name, value] of headers) {
        values.set(name, values.has(name) ? [values.get(name), value].flat() : value);
    }
    return [...values];
}

/* As it was sent, or what a parser made of it. */
function bytesOf(req, body) {
    const { 'content-length': length = '0', 'transfer-encoding': coding } = req.headers;
    if ((Number(length) > 0 || coding) && !req.readableDidRead) {
        throw new Invalid('the body was not read: put a body parser before idem');
    }
    if (body === undefined || body === null) {
        return Buffer.alloc(0);
    }
    const isBytes = typeof body === 'string' || ArrayBuffer.isView(body);
    return Buffer.from(isBytes ? body : JSON.stringify(body));
}

module.exports = { Guard };

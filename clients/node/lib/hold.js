'use strict';

/* A response of node:http that waits until it is on record. */

const BODY_MAX = 16 * 1024 * 1024; /* A longer one is passed on, and not kept. */

const HELD = Symbol('held');
const OVERLAID = {
    headersSent: overlaid('headersSent', (calls) => calls.length > 0),
    writableEnded: overlaid('writableEnded', (calls) => calls.at(-1)?.[0] === 'end'),
};

function headersOf(res) {
    const headers = [];
    for (const [name, value] of Object.entries(res.getHeaders())) {
        for (const one of Array.isArray(value) ? value : [value]) {
            headers.push([name, String(one)]);
        }
    }
    return headers;
}

/* Hold back what is written to `res` until it is on record. */
function hold(res, attempt, rules) {
    const { write, end, writeHead, flushHeaders } = res;
    const real = { write, end, writeHead, flushHeaders };
    const calls = [];
    const body = [];
    let length = 0;
    let isAsked = false;
    let isOpen = false;

    async function settle(isWhole) {
        isAsked = true;
        const isRecorded = await attempt.respond({
            http_status: res.statusCode,
            headers: headersOf(res),
            ...(isWhole ? { body: Buffer.concat(body).toString('base64') } : { not_kept: true }),
            ...rules,
        });
        isOpen = true;
        if (!isRecorded) {
            res.setHeader('Idempotency-Recorded', 'false');
        }
        for (const [name, args] of calls) {
            real[name].apply(res, args);
        }
    }

    function take(name, [chunk, coding, ...rest]) {
        const functions = [chunk, coding, ...rest].filter((one) => typeof one === 'function');
        const named = typeof coding === 'string' ? coding : 'utf8';
        const bytes = typeof chunk === 'string' ? Buffer.from(chunk, named) : chunk;
        const isBytes = ArrayBuffer.isView(bytes);
        if (isBytes) {
            body.push(bytes);
            length += bytes.length;
        }
        if (name === 'write') {
            functions.splice(0).forEach((done) => process.nextTick(done)); /* It may wait for it. */
        }
        calls.push([name, isBytes ? [bytes, ...functions] : functions]);
        if (!isAsked && (name === 'end' || length > BODY_MAX)) {
            settle(length <= BODY_MAX).catch((error) => res.destroy(error));
        }
    }

    res.write = (...args) => (isOpen ? real.write.apply(res, args) : take('write', args) ?? true);
    res.end = (...args) => (isOpen ? real.end.apply(res, args) : take('end', args) ?? res);
    res.flushHeaders = () => isOpen && real.flushHeaders.apply(res);
    res.writeHead = (status, ...rest) => {
        if (isOpen) {
            return real.writeHead.call(res, status, ...rest);
        }
        res.statusCode = status;
        if (typeof rest[0] === 'string') {
            res.statusMessage = rest[0];
        }
        pairsOf(rest.at(-1)).forEach(([name, value]) => res.setHeader(name, value));
        return res;
    };
    res[HELD] = { res, calls };
    Object.defineProperties(res, OVERLAID);
}

/* The headers of writeHead(): an object, pairs, or names and values by turns. */
function pairsOf(headers) {
    if (!Array.isArray(headers)) {
        return Object.entries(typeof headers === 'object' ? headers : {});
    }
    if (Array.isArray(headers[0])) {
        return headers;
    }
    return headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1]]] : []));
}

/* A framework that has written asks for it before all else. All responses have
 * the same function: with one of its own each would have a hidden class of its own. */
function overlaid(name, isSo) {
    return {
        configurable: true,
        get() {
            const { res, calls } = this[HELD];
            return isSo(calls) || Reflect.get(Object.getPrototypeOf(res), name, res);
        },
    };
}

module.exports = { hold };

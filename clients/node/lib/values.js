'use strict';

/* Keys, options and results, to the protocol and back. Nothing leaves that the server could
 * not parse, or that would not come back as what it was. */

const crypto = require('node:crypto');
const fs = require('node:fs');
const { performance } = require('node:perf_hooks');
const { types } = require('node:util');
const { Invalid, MissingKey, NotKept } = require('./errors.js');

const JSON_TYPE = 'application/json';
const BYTES_TYPE = 'application/octet-stream';
const DEPTH_MAX = 190; /* Of JSON in a request. */
const UPTIME_STEP = 10; /* Milliseconds. */
const ASKED_STEP = 20;

/* The words of the options, and the parameters that they are; a duration is in milliseconds. */
const CLAIM = {
    scope: 'scope',
    fingerprint: 'fingerprint',
    onExpiredLease: 'on_expired_lease',
    lease: 'lease_ms',
    retention: 'retention_ms',
    expect: 'expect_ms',
    wait: 'wait_ms',
    waitThenRun: 'wait_then_run',
    attemptsMax: 'attempts_max',
    onDeath: 'on_death',
    maxTime: 'max_time_ms',
    owner: 'owner',
    traceparent: 'traceparent',
};
const LIMIT = {
    max: 'max',
    per: 'per_ms',
    cost: 'cost',
    atMs: 'at_ms',
    startMs: 'start_ms',
    late: 'late_ms',
};

/* Milliseconds that go on while the machine or this process is frozen, which no clock of
 * Node's does; NaN where they cannot be read. */
function bootTime() {
    try {
        return parseFloat(fs.readFileSync('/proc/uptime', 'utf8')) * 1000;
    } catch {
        return NaN;
    }
}

let nonces = Buffer.alloc(0);
let noncesAt = 0;
let readAt = -Infinity; /* When bootTime() gave lastRead. */
let lastRead;

/* A moment that is not later than now, for a lease that is counted from it: the file is not
 * read for each call. */
function askTime() {
    const now = performance.now();
    if (now - readAt >= ASKED_STEP) {
        readAt = now;
        lastRead = bootTime();
    }
    return lastRead;
}

/* Can the moment `until` not have come? Not known is no. */
function isBefore(until) {
    return until === Infinity || bootTime() + UPTIME_STEP < until;
}

function milliseconds(value, word) {
    if (value === null || value === Infinity) {
        return null; /* It does not end. */
    }
    if (typeof value !== 'number' || !Number.isFinite(value)) {
        throw new TypeError(`${word} is a number of milliseconds`);
    }
    return Math.round(value);
}

function hasHalfCharacter(text) {
    return /\p{Surrogate}/u.test(text);
}

/* Is it JSON that cannot change, or left out of JSON? */
function isSettled(value) {
    return typeof value === 'string'
        ? !hasHalfCharacter(value)
        : value === undefined || typeof value === 'boolean' || Number.isFinite(value);
}

/* For JSON.stringify(): throw where it would drop something without a word. */
function keeps(name, value) {
    if (hasHalfCharacter(name) || (typeof value === 'string' && hasHalfCharacter(value))) {
        throw new TypeError('a text has half of a character');
    }
    if (typeof value === 'number' && !Number.isFinite(value)) {
        throw new TypeError(`${value} is not JSON`);
    }
    if (typeof value === 'function' || typeof value === 'symbol') {
        throw new TypeError(`a ${typeof value} is not JSON`);
    }
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
        const parent = Object.getPrototypeOf(value);
        const isPlain = parent === null || Object.getPrototypeOf(parent) === null;
        if (types.isNativeError(value) || (!isPlain && Object.keys(value).length === 0)) {
            throw new TypeError(`a value of ${value.constructor?.name} is not JSON`);
        }
    }
    return value;
}

function jsonOf(value) {
    const text = JSON.stringify(value, keeps);
    if (text === undefined) {
        throw new TypeError('it is not JSON');
    }
    return text;
}

/* Does JSON go deeper than a line of the protocol may? */
function isDeep(value) {
    let level = [value];
    for (let n = 0; n < DEPTH_MAX && level.length > 0; n++) {
        level = level.flatMap((v) => (typeof v === 'object' && v ? Object.values(v) : []));
    }
    return level.length > 0;
}

/* The parameters for the words of CLAIM or LIMIT. */
function wordsOf(options, words) {
    const params = {};
    for (const [word, value] of Object.entries(options)) {
        const name = Object.hasOwn(words, word) && words[word];
        if (!name) {
            throw new TypeError(`unexpected option ${word}`);
        }
        if (value !== undefined) {
            params[name] = name.endsWith('_ms') ? milliseconds(value, word) : value;
        }
    }
    return params;
}

/* The same as plain JSON, which the caller cannot change afterwards. */
function settled(params) {
    if (Object.values(params).every(isSettled)) {
        return { ...params };
    }
    try {
        const plain = JSON.parse(jsonOf(params));
        if (!isDeep(plain)) {
            return plain;
        }
    } catch (error) {
        const invalid = new Invalid(`the request is not JSON: ${error.message}`);
        throw Object.assign(invalid, { cause: error });
    }
    throw new Invalid('the request is too deep');
}

/* 16 random bytes for one claim. Many are drawn at once, as Node does for randomUUID():
 * alone a draw takes as long as reading the answer. */
function nonceOf() {
    if (noncesAt === nonces.length) {
        nonces = crypto.randomBytes(64 * 16);
        noncesAt = 0;
    }
    noncesAt += 16;
    return nonces.toString('hex', noncesAt - 16, noncesAt);
}

function checkKey(key) {
    const parts = typeof key === 'string' ? [key] : key;
    const isMissing = (part) => part === null || part === undefined;
    if (isMissing(key) || key === '') {
        throw new MissingKey('a key is missing, and without one nothing is protected');
    }
    if (!Array.isArray(parts)) {
        throw new Invalid('a key is text, or a list');
    }
    if (parts.length === 0 || [...parts].some(isMissing)) {
        throw new MissingKey('a part of a key is missing, and without it nothing is protected');
    }
    if (!parts.every((part) => ['string', 'number', 'boolean'].includes(typeof part))) {
        throw new Invalid('the parts of a key are texts, numbers and booleans');
    }
}

/* The parameters of begin. */
function claimOf(key, options) {
    checkKey(key);
    const params = { key, nonce: nonceOf(), ...wordsOf(options, CLAIM) };
    if (params.fingerprint === null) {
        delete params.fingerprint;
    }
    return settled(params);
}

/* The parameters of http.begin. */
function exchangeOf(request, options) {
    return { ...request, nonce: nonceOf(), ...settled(wordsOf(options, CLAIM)) };
}

/* A result of the protocol, and the value as a replay will have it. */
function encode(value) {
    if (value === undefined) {
        return { back: undefined };
    }
    if (typeof value === 'string') {
        keeps('', value);
        return { result: { text: value }, back: value };
    }
    if (ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value)) {
        const back = ArrayBuffer.isView(value)
            ? Buffer.from(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))
            : Buffer.from(new Uint8Array(value));
        return { result: { base64: back.toString('base64'), content_type: BYTES_TYPE }, back };
    }
    const text = jsonOf(value);
    return { result: { text, content_type: JSON_TYPE }, back: JSON.parse(text) };
}

/* The value of a recorded result. */
function decode(result = {}) {
    if (result.not_kept || result.too_long) {
        throw new NotKept('the work is done, and its result is not on record');
    }
    if (result.base64 !== undefined) {
        return Buffer.from(result.base64, 'base64');
    }
    if (result.json !== undefined) {
        return result.json;
    }
    const { text, content_type: type } = result;
    if (text === undefined || (type === undefined && text === '')) {
        return undefined;
    }
    if (type === JSON_TYPE) {
        return JSON.parse(text); /* Too deep for the protocol. */
    }
    return type === BYTES_TYPE ? Buffer.from(text) : text;
}

module.exports = {
    LIMIT, askTime, claimOf, decode, encode, exchangeOf, isBefore, milliseconds, settled, wordsOf,
};

// Operations from Node.js, for bench/door: door.js idem URL, or door.js redis SOCKET,
// which are the calls that express-idempotency makes of its adapter for a request.
//
// Reads lines "WHAT IN-FLIGHT FROM KEYS OPS", as bench/powertools/worker.mjs does, and
// prints what they took. WHAT is new (begin and complete), once
// (the same by once()), or dup (by once()).
const { monitorEventLoopDelay } = require('node:perf_hooks');
const { createInterface } = require('node:readline');

const [kind, where] = process.argv.slice(2);
const result = 'x'.repeat(1024);
const nameOf = (n) => `order-${String(n).padStart(40, '0')}`;
const idle = () => {
    throw new Error('a duplicate was executed');
};

function ofIdem() {
    const store = require('../clients/node').open(where);
    return {
        new: async (key) => (await store.begin(key)).complete(result),
        once: (key) => store.once(key, () => result),
        dup: (key) => store.once(key, idle),
    };
}

async function ofRedis() {
    const Adapter = require('express-idempotency-redis-adapter').default;
    const adapter = new Adapter({ connectionConfig: { socket: { path: where } } });
    await adapter.connect();
    const request = { method: 'POST', url: '/charge', headers: {}, body: { amount: 42 } };
    const dup = async (idempotencyKey) =>
        (await adapter.findByIdempotencyKey(idempotencyKey))?.response.body;
    const once = async (idempotencyKey) => {
        if (await dup(idempotencyKey)) {
            throw new Error('a new key was found');
        }
        await adapter.create({ idempotencyKey, request });
        const response = { statusCode: 201, headers: {}, body: result };
        await adapter.update({ idempotencyKey, request, response });
        return result;
    };
    return { new: once, once, dup, end: () => adapter.disconnect() };
}

async function main() {
    const operations = kind === 'idem' ? ofIdem() : await ofRedis();
    for await (const line of createInterface({ input: process.stdin })) {
        const [what, ...numbers] = line.split(' ');
        const [inFlight, from, keys, ops] = numbers.map(Number);
        const operate = operations[what];
        const took = [];
        let begun = 0;
        const caller = async () => {
            while (begun < ops) {
                const key = nameOf(from + (begun++ % keys));
                const start = process.hrtime.bigint();
                const seen = await operate(key);
                took.push(Number(process.hrtime.bigint() - start) / 1000);
                if (seen !== result) {
                    throw new Error(`${what}: another result`);
                }
            }
        };
        const delay = monitorEventLoopDelay({ resolution: 1 });
        delay.enable();
        const start = process.hrtime.bigint();
        await Promise.all(Array.from({ length: inFlight }, caller));
        const wall = Number(process.hrtime.bigint() - start) / 1000;
        delay.disable();
        took.sort((a, b) => a - b);
        const at = (part) => took[Math.floor(part * (ops - 1))];
        const loop = delay.percentile(99) / 1e6;
        console.log(JSON.stringify({ wall_us: wall, p50_us: at(0.5), p99_us: at(0.99), loop_ms: loop }));
    }
    operations.end?.();
}

main();

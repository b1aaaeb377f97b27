// Operations from Node.js, for bench/door: door.js URL.
//
// Reads lines "WHAT IN-FLIGHT FROM KEYS OPS", as bench/powertools/worker.mjs does, and
// prints what they took, and what a timer of a millisecond took meanwhile. WHAT is new
// (begin and complete), once (the same by once()), or dup (by once()).
const { monitorEventLoopDelay } = require('node:perf_hooks');
const { createInterface } = require('node:readline');

const store = require('../clients/node').open(process.argv[2]);
const result = 'x'.repeat(1024);
const nameOf = (n) => `order-${String(n).padStart(40, '0')}`;
const idle = () => {
    throw new Error('a duplicate was executed');
};

const operations = {
    new: async (key) => (await store.begin(key)).complete(result),
    once: (key) => store.once(key, () => result),
    dup: (key) => store.once(key, idle),
};

async function main() {
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
        const loop = delay.percentile(99) / 1000;
        console.log(JSON.stringify({ wall_us: wall, p50_us: at(0.5), p99_us: at(0.99), loop_us: loop }));
    }
}

main();

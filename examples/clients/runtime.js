/* runtime.js FILE: call the handler of a file for each event, one on each line of input.
 *
 * Prints a line of JSON for each: the response or the error, as Lambda would get it. */
'use strict';
const { randomUUID } = require('node:crypto');
const path = require('node:path');
const { createInterface } = require('node:readline');

const { handler } = require(path.resolve(process.argv[2]));

/* The members of a function's context that the handlers read. */
function context() {
    const end = Date.now() + 30_000;
    const getRemainingTimeInMillis = () => end - Date.now();
    return { functionName: 'example', awsRequestId: randomUUID(), getRemainingTimeInMillis };
}

async function main() {
    for await (const line of createInterface({ input: process.stdin })) {
        let told;
        try {
            told = { answer: (await handler(JSON.parse(line), context())) ?? null };
        } catch (error) {
            told = { error: error.name };
        }
        console.log(JSON.stringify(told));
    }
}

main();

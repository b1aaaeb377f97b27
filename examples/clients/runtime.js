/* runtime.js FILE: call the handler of a file for each event, a line of standard input each.
 *
 * Prints a line of JSON for each, as Lambda would be told. */
'use strict';
const { randomUUID } = require('node:crypto');
const path = require('node:path');
const { createInterface } = require('node:readline');

const { handler } = require(path.resolve(process.argv[2]));

/* As much of the context of a function as is read. */
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

'use strict';

/* A Lambda function: a line of standard input is {"event": ..., "left": MS, "bare": ...}, and
 * each is answered on a line. */

const fs = require('node:fs');
const idem = require(process.env.PACKAGE);
const store = idem.open(process.env.STORE);

async function work(event) {
    fs.appendFileSync('ledger', 'effect\n');
    if (JSON.stringify(event).includes('broken')) {
        throw new Error('broken');
    }
    return { statusCode: 201, headers: { Location: '/1', 'Set-Cookie': 's=1' }, body: `"${process.pid}"` };
}

/* The samples have one key. */
const scope = (event) => `client ${JSON.stringify(event).length}`;
const protectedWork = idem.lambdaHandler(work, { store, scope });

async function main() {
    for await (const line of require('node:readline').createInterface({ input: process.stdin })) {
        const { event, left, bare, function: functionName = 'f' } = JSON.parse(line);
        const context = { functionName, awsRequestId: 'r', getRemainingTimeInMillis: () => left };
        const answer = (bare ? work : protectedWork)(event, context);
        const said = await answer.then((value) => ({ value }), (error) => ({ error: error.message }));
        console.log(JSON.stringify(said));
    }
}

main();

/* A consumer of a queue of orders: each is booked once, however often its message comes and
 * whichever message it comes in.
 *
 * The service takes keys: what died is run again, with the same key, and is answered as
 * before. An order that kills the function is tried twice. */
'use strict';
const idem = require('idem');

const store = idem.open(process.env.IDEM_STORE ?? 'sqlite:orders.db');

/* The event has one message in it. */
async function consume({ Records: [{ body }] }, context, { key }) {
    const headers = { 'Idempotency-Key': encodeURIComponent(key) };
    const answer = await fetch(process.env.SERVICE_URL, { method: 'POST', headers, body });
    if (answer.status === 422) {
        throw new idem.Failed('the order is wrong'); // Not tried again.
    }
    if (!answer.ok) {
        throw new Error(`the service answered ${answer.status}`);
    }
}

exports.handler = idem.lambdaHandler(consume, {
    store,
    key: '.body | fromjson | .orderId',
    attemptsMax: 2,
    onDeath: 'now', // This process alone calls the service: the next need not wait for the lease.
});

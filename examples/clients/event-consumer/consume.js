/* A consumer of a queue of orders: each is booked once, however often the queue delivers its
 * message, and if several messages name it.
 *
 * The service takes keys: after a death the next delivery sends the same key, and gets the
 * same answer. An order that kills the function is tried twice. */
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
    onDeath: 'now', // Only this process calls the service: its successor need not await the lease.
});

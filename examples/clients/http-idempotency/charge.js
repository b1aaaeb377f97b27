/* A payment with API Gateway in front, once for each Idempotency-Key of a client:
 * store.idempotent() wraps the function that pays.
 *
 * rerun: the bank takes keys. After a death the next request sends the same key, and the bank
 * answers as before. */
'use strict';
const idem = require('idem');

const store = idem.open(process.env.IDEM_STORE ?? 'sqlite:payments.db');
const keyOf = (event) => event.headers['idempotency-key'];
const clientOf = (event) => event.requestContext.authorizer.principalId;

async function charge(event) {
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': bankKeyOf(event) };
    const answer = await fetch(process.env.SERVICE_URL, { method: 'POST', headers, body: event.body });
    if (!answer.ok) {
        throw new Error(`the bank answered ${answer.status}`);
    }
    return { statusCode: 201, body: await answer.text() };
}

/* The keys of one client are not those of another, at the bank too. */
function bankKeyOf(event) {
    return encodeURIComponent(clientOf(event)) + '/' + encodeURIComponent(keyOf(event));
}

const chargeOnce = store.idempotent(charge, {
    key: keyOf,
    scope: clientOf,
    fingerprint: (event) => JSON.parse(event.body),
    onExpiredLease: 'rerun',
    onDeath: 'now', // Only this process calls the bank: its successor need not await the lease.
});

const STATUS = new Map([
    [idem.MissingKey, 400],
    [idem.Busy, 409],
    [idem.Mismatch, 422],
]);

exports.handler = async (event) => {
    try {
        return await chargeOnce(event);
    } catch (error) {
        const statusCode = STATUS.get(error.constructor);
        if (!statusCode) {
            throw error; // Lambda answers 5xx, and the same key tries again.
        }
        return { statusCode, body: error.message };
    }
};

/* One call of an API that takes no keys, for each order: the steps of Locker. */
'use strict';
const idem = require('idem');

const locker = idem.open(process.env.IDEM_STORE ?? 'sqlite:orders.db');

async function call(orderId) {
    const body = JSON.stringify({ orderId });
    const answer = await fetch(process.env.SERVICE_URL, { method: 'POST', body });
    return { status: answer.status, receipt: answer.ok && (await answer.json()) };
}

exports.handler = async ({ orderId }) => {
    let lock;
    try {
        lock = await locker.begin(`order/create/${orderId}`, { expect: 60_000 });
    } catch (error) {
        if (error instanceof idem.Failed) {
            return { error: error.message }; // The text that fail() recorded.
        }
        throw error; // Busy: another process makes the call. Unknown: a person must look.
    }
    if (lock.replayed) {
        return lock.result;
    }
    let answer;
    try {
        answer = await call(orderId);
    } catch (error) {
        if (error.cause?.code === 'ECONNREFUSED') {
            await lock.release('the API was not reached'); // The next delivery calls it.
        } else {
            await lock.unknown(error.message); // The order may have been made.
        }
        throw error;
    }
    if (!answer.receipt) {
        const error = `the API answered ${answer.status}`;
        await lock.fail(error);
        return { error };
    }
    return lock.complete(answer.receipt);
};

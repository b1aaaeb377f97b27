/* The control: a payment, without idem. */
'use strict';

async function charge(event) {
    const headers = { 'Content-Type': 'application/json' };
    const answer = await fetch(process.env.SERVICE_URL, { method: 'POST', headers, body: event.body });
    if (!answer.ok) {
        throw new Error(`the bank answered ${answer.status}`);
    }
    return { statusCode: 201, body: await answer.text() };
}

exports.handler = (event) => charge(event);

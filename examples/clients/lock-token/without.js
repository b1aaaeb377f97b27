/* The control: an order, without idem. */
'use strict';

exports.handler = async ({ orderId }) => {
    const body = JSON.stringify({ orderId });
    const answer = await fetch(process.env.SERVICE_URL, { method: 'POST', body });
    return answer.ok ? answer.json() : { error: `the API answered ${answer.status}` };
};

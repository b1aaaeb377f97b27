/* The control: a consumer of orders, without idem. */
'use strict';

exports.handler = async ({ Records }) => {
    for (const { body } of Records) {
        const answer = await fetch(process.env.SERVICE_URL, { method: 'POST', body });
        if (!answer.ok) {
            throw new Error(`the service answered ${answer.status}`);
        }
    }
    return null;
};

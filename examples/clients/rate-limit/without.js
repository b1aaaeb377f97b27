/* The control: a rate limit that counts calls, without idem. */
'use strict';

const calls = new Map();

exports.handler = async ({ user, timestamp }) => {
    const id = `${user}/${new Date(timestamp).toISOString().slice(0, 10)}`;
    calls.set(id, (calls.get(id) ?? 0) + 1);
    return { limited: calls.get(id) > 8 };
};

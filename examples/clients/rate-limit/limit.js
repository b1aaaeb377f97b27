/* Eight requests of a user per day: a request counts once, however often the handler is asked.
 *
 * The caller chooses its id, and the time of the event gives its day: a retry after midnight
 * has the same ones. */
'use strict';
const idem = require('idem');

const DAY_MS = 86_400_000;
const store = idem.open(process.env.IDEM_STORE ?? 'sqlite:limits.db');

exports.handler = async ({ user, request, timestamp }) => {
    const limit = { max: 8, per: DAY_MS, atMs: timestamp };
    const { admitted } = await store.limit('requests', user, request, limit);
    return { limited: !admitted };
};

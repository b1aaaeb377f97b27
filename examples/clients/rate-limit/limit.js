/* Eight requests of a user on a day: a request counts once, however often it is asked about.
 *
 * Its id comes from the one who sends it, and its day from the time of the event: both are
 * the same for a retry after midnight. */
'use strict';
const idem = require('idem');

const DAY_MS = 86_400_000;
const store = idem.open(process.env.IDEM_STORE ?? 'sqlite:limits.db');

exports.handler = async ({ user, request, timestamp }) => {
    const limit = { max: 8, per: DAY_MS, atMs: timestamp };
    const { admitted } = await store.limit('requests', user, request, limit);
    return { limited: !admitted };
};

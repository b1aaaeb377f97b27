'use strict';

/* One recorded outcome for each idempotency key:
 *
 *     const store = open('sqlite:/var/lib/app/idem.db');
 *     const receipt = await store.once('order-42', () => charge(42));
 *
 * In this form import finds the names too. */
module.exports = {
    ...require('./lib/store.js'),
    ...require('./lib/errors.js'),
    ...require('./lib/middleware.js'),
    ...require('./lib/lambda.js'),
};

'use strict';

/* A handler of AWS Lambda with idem around it. The program knows the sources of events, as
 * `idem lambda` does: which units an event has, their keys, and what Lambda is told. */

const { Guard } = require('./http.js');
const { bytesOf, pairsOf, requestOf, responseOf } = require('./lambda_http.js');
const { Unavailable } = require('./errors.js');

const START_MIN = 1000; /* With less time than this no unit is started. */
const MARGIN = 2000; /* How long a lease outlives the function. */

function lambdaHandler(handler, { store, key, source, scope = () => null, ...options }) {
    const { required, replayHeaders, outcome, ...claim } = options;

    function claimed(context) {
        const lease = context.getRemainingTimeInMillis() + MARGIN;
        return { onExpiredLease: 'rerun', lease, ...claim };
    }

    async function http(event, context) {
        const own = { required, replayHeaders, outcome, ...claimed(context) };
        const guard = new Guard({ store, scope, ...own });
        const request = requestOf(event);
        if (!guard.takes(request)) {
            return handler(event, context);
        }
        const { answer, attempt } = await guard.begin(request, request.target, request.body, event);
        if (answer) {
            return responseOf(answer, event);
        }
        let value;
        try {
            value = await handler(event, context, attempt);
        } catch (error) {
            await attempt.constructor.endAs(attempt, error, /* hasBegun= */ true);
            throw error;
        }
        if (typeof value !== 'object' || value?.statusCode === undefined) {
            const headers = { 'Content-Type': 'application/json' };
            value = { statusCode: 200, headers, body: JSON.stringify(value) };
        }
        const response = {
            http_status: Number(value.statusCode),
            headers: pairsOf({ ...value.headers, ...value.multiValueHeaders }),
            body: bytesOf(value).toString('base64'),
        };
        const isRecorded = await attempt.respond({ ...response, ...guard.rules });
        const mark = value.multiValueHeaders ? ['false'] : 'false';
        const place = value.multiValueHeaders ? 'multiValueHeaders' : 'headers';
        return isRecorded
            ? value
            : { ...value, [place]: { ...value[place], 'Idempotency-Recorded': mark } };
    }

    /* One after the other: what follows a failure in its group has to wait for it. */
    async function batch(units, context) {
        const states = [];
        const failed = new Set();
        let first;
        for (const unit of units) {
            if (failed.has(unit.group)) {
                states.push('w');
                continue;
            }
            if (unit.first !== undefined) {
                states.push(states[unit.first]);
            } else {
                try {
                    await once(unit, unit.event, context);
                    states.push('d');
                } catch (error) {
                    first ??= error;
                    console.error(error);
                    states.push('f');
                }
            }
            if (states.at(-1) !== 'd' && unit.group !== undefined) {
                failed.add(unit.group);
            }
        }
        return { states: states.join(''), error: first };
    }

    async function once(unit, event, context) {
        if (unit.error) {
            throw new Error(unit.error);
        }
        if (context.getRemainingTimeInMillis() < START_MIN) {
            throw new Unavailable('there is too little time left to start');
        }
        const { scope: of, fingerprint } = unit;
        const own = { ...claimed(context), scope: of, fingerprint };
        return store.once(unit.key, (attempt) => handler(event, context, attempt), own);
    }

    return async function idempotent(event, context) {
        const of = { function: context.functionName, request_id: context.awsRequestId };
        const asked = { event, ...of, source, key_from: key };
        const { answer, units } = await store.event('event.begin', asked);
        if (answer === 'http') {
            return http(event, context);
        }
        if (answer === 'value') {
            return once(units[0], event, context);
        }
        const { states, error } = await batch(units, context);
        if (answer === 'failures') {
            return store.event('event.end', { ...asked, states });
        }
        if (error) {
            throw error;
        }
        return null;
    };
}

module.exports = { lambdaHandler };

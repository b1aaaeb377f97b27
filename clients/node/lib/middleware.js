'use strict';

/* The middleware for Express, Fastify and Koa, each after a parser of the body. */

const { Guard } = require('./http.js');
const { hold } = require('./hold.js');

const DELETED = Symbol('deleted');
const LEFT = Symbol('left');

/* Express gives each response another prototype. V8 then makes a hidden class for each
 * property that is added, and hold() adds seven. It stops after a property was deleted that
 * was not the last one. */
function dropHiddenClass(res) {
    res[DELETED] = true;
    res[LEFT] = true;
    delete res[DELETED];
}

function express(options) {
    const guard = new Guard(options);
    return async function idempotency(req, res, next) {
        if (!guard.takes(req)) {
            return next();
        }
        try {
            const { answer, attempt } = await guard.begin(req, req.originalUrl, req.body, req);
            if (answer) {
                res.statusCode = answer.status;
                answer.headers.forEach(([name, value]) => res.setHeader(name, value));
                return res.end(answer.body);
            }
            req.idempotency = attempt;
            dropHiddenClass(res);
            hold(res, attempt, guard.rules);
        } catch (error) {
            return next(error);
        }
        return next();
    };
}

/* A plugin, for the routes that are added after it. */
function fastify(options) {
    const guard = new Guard(options);
    async function idempotency(app) {
        app.addHook('preHandler', async (request, reply) => {
            if (!guard.takes(request.raw)) {
                return undefined;
            }
            const { answer, attempt } = await guard.begin(request.raw, request.raw.url, request.body, request);
            if (answer) {
                answer.headers.forEach(([name, value]) => reply.header(name, value));
                return reply.code(answer.status).send(answer.body);
            }
            request.idempotency = attempt;
            hold(reply.raw, attempt, guard.rules);
            return undefined;
        });
    }
    return Object.assign(idempotency, { [Symbol.for('skip-override')]: true });
}

function koa(options) {
    const guard = new Guard(options);
    return async function idempotency(ctx, next) {
        if (!guard.takes(ctx.req)) {
            return next();
        }
        const { body, rawBody } = ctx.request;
        const { answer, attempt } = await guard.begin(ctx.req, ctx.originalUrl, rawBody ?? body, ctx);
        if (answer) {
            ctx.status = answer.status;
            ctx.body = answer.body;
            ctx.remove('Content-Type');
            answer.headers.forEach(([name, value]) => ctx.set(name, value));
            return undefined;
        }
        ctx.state.idempotency = attempt;
        hold(ctx.res, attempt, guard.rules);
        return next();
    };
}

module.exports = { express, fastify, koa };

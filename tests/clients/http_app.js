'use strict';

/* The service of header_cases.py: node http_app.js express|fastify|koa [bare] */

const assert = require('node:assert');
const fs = require('node:fs');
const idem = require(process.env.PACKAGE);
const [framework, bare] = process.argv.slice(2);
let n = 0;

function work() {
    fs.appendFileSync('ledger', 'effect\n');
    return ++n;
}

function grouped(headers) {
    const names = [...new Set(headers.map(([name]) => name))];
    return names.map((name) => {
        const values = headers.filter((one) => one[0] === name).map((one) => one[1]);
        return [name, values.length > 1 ? values : values[0]];
    });
}

const options = {
    store: bare ? {} : idem.open(process.env.STORE),
    scope: (request) => (request.headers ?? request.raw.headers)['x-user'],
    replayHeaders: ['X-Order', 'Link'],
};

const apps = {
    express() {
        const app = require('express')();
        app.use(require('express').json());
        bare || app.use(idem.express(options));
        app.post('/pay', (req, res) => {
            const { status, headers, text } = req.body;
            grouped(headers).forEach(([name, values]) => res.setHeader(name, values));
            res.status(status).end(`${work()} ${text}`);
        });
        app.post('/pieces', (req, res) => {
            assert(!res.headersSent);
            res.writeHead(201, 'Done', { 'X-Order': '1' });
            res.write('a', () => {
                res.write(Buffer.from('b'));
                assert(res.headersSent && !res.writableEnded);
                res.end(`c${work()}`);
                assert(res.writableEnded); // As without idem, though not a byte has left.
            });
        });
        app.post('/large', (req, res) => {
            work();
            const piece = Buffer.alloc(1 << 20, 'x');
            for (let i = 0; i < 20; i++) {
                res.write(piece);
            }
            res.end('end');
        });
        app.post('/throw', () => {
            throw new Error(`${work()}`);
        });
        app.post('/gate', async (req, res) => {
            work();
            await fs.promises.readFile('gate');
            res.end('late');
        });
        app.post('/check', async (req, res) => {
            await req.idempotency.check();
            res.end(`${req.idempotency.fence} ${work()}`);
        });
        return app.listen(0, '127.0.0.1');
    },
    koa() {
        const Koa = require('koa');
        const app = new Koa();
        app.use(async (ctx, next) => {
            const pieces = [];
            for await (const piece of ctx.req) {
                pieces.push(piece);
            }
            ctx.request.body = Buffer.concat(pieces);
            return next();
        });
        bare || app.use(idem.koa(options));
        app.use((ctx) => {
            const { status, headers, text } = JSON.parse(ctx.request.body);
            ctx.status = status;
            ctx.body = Buffer.from(`${work()} ${text}`);
            grouped(headers).forEach(([name, values]) => ctx.set(name, values));
        });
        return app.listen(0, '127.0.0.1');
    },
    fastify() {
        const app = require('fastify')();
        bare || app.register(idem.fastify(options));
        app.after(() => {
            app.post('/pay', async (request, reply) => {
                const { status, headers, text } = request.body;
                grouped(headers).forEach(([name, values]) => reply.header(name, values));
                return reply.code(status).send(`${work()} ${text}`);
            });
        });
        app.listen({ port: 0, host: '127.0.0.1' });
        return app.server;
    },
};

const server = apps[framework]();
server.on('listening', () => console.log(server.address().port));

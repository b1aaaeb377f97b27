// A service in Express: service.js PORT [redis SOCKET | idem URL]. On its one route it has
// the middleware express-idempotency, as its page says, or that of idem, or none.
const express = require("express");
const { idempotency, getSharedIdempotencyService } = require("express-idempotency");
const RedisAdapter = require("express-idempotency-redis-adapter").default;

const [port, kind, where] = process.argv.slice(2);
const app = express();
let receipts = 0;

function charge(request, response) {
  if (kind === "redis" && getSharedIdempotencyService().isHit(request)) {
    return;
  }
  receipts++;
  response.status(201).json({ receipt: 1000 + receipts, note: "x".repeat(180) });
}

async function middleware() {
  if (kind === "redis") {
    const dataAdapter = new RedisAdapter({ connectionConfig: { socket: { path: where } } });
    await dataAdapter.connect();
    return [idempotency({ dataAdapter })];
  }
  if (kind === "idem") {
    const idem = require("../../clients/node");
    return [idem.express({ store: idem.open(where), scope: "bench" })];
  }
  return [];
}

async function main() {
  app.use(express.json());
  app.get("/receipts", (request, response) => response.json(receipts));
  app.post("/charge", ...(await middleware()), charge);
  // Whatever goes wrong is answered, and not printed.
  app.use((error, request, response, next) => {
    if (!response.headersSent) {
      response.status(response.statusCode < 400 ? 500 : response.statusCode).end();
    }
  });
  app.listen(Number(port), "127.0.0.1", 1024);
}

main();

// A service in Express: service.js PORT [SOCKET OF REDIS]. With Redis it has the
// middleware express-idempotency on its one route, as its page says.
const express = require("express");
const { idempotency, getSharedIdempotencyService } = require("express-idempotency");
const RedisAdapter = require("express-idempotency-redis-adapter").default;

const [port, redis] = process.argv.slice(2);
const app = express();
let receipts = 0;

function charge(request, response) {
  if (redis && getSharedIdempotencyService().isHit(request)) {
    return;
  }
  receipts++;
  response.status(201).json({ receipt: 1000 + receipts, note: "x".repeat(180) });
}

async function main() {
  app.use(express.json());
  app.get("/receipts", (request, response) => response.json(receipts));
  if (redis) {
    const dataAdapter = new RedisAdapter({ connectionConfig: { socket: { path: redis } } });
    await dataAdapter.connect();
    app.post("/charge", idempotency({ dataAdapter }), charge);
  } else {
    app.post("/charge", charge);
  }
  // Whatever goes wrong is answered, and not printed.
  app.use((error, request, response, next) => {
    if (!response.headersSent) {
      response.status(response.statusCode < 400 ? 500 : response.statusCode).end();
    }
  });
  app.listen(Number(port), "127.0.0.1", 1024);
}

main();

/* Operations by Powertools for AWS Lambda, for bench/dynamodb; see dynamodb.c.
 *
 * Usage: node worker.mjs URL TABLE RESULT
 */
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { DynamoDBPersistenceLayer } from '@aws-lambda-powertools/idempotency/dynamodb';

const [url, tableName, path] = process.argv.slice(2);
const result = JSON.parse(readFileSync(path, 'utf8'));
const text = JSON.stringify(result);
let executed = 0;

const operate = makeIdempotent(
  async () => {
    executed++;
    return result;
  },
  {
    persistenceStore: new DynamoDBPersistenceLayer({
      tableName,
      clientConfig: { endpoint: url },
    }),
    config: new IdempotencyConfig({ eventKeyJmesPath: 'id', expiresAfterSeconds: 3600 }),
  }
);

/* What Lambda hands to a function. */
const context = { getRemainingTimeInMillis: () => 60000 };

const nameOf = (n) => `order-${String(n).padStart(20, '0')}`;

/* Returns what the first answer is as text. */
const run = async (inFlight, from, keys, ops) => {
  let begun = 0;
  let seen;
  const caller = async () => {
    while (begun < ops) {
      const answer = await operate({ id: nameOf(from + (begun++ % keys)) }, context);
      seen ??= answer;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, caller));
  return seen;
};

for await (const line of createInterface({ input: process.stdin })) {
  const [what, ...numbers] = line.split(' ');
  const [inFlight, from, keys, ops] = numbers.map(Number);
  const wall = process.hrtime.bigint();
  const cpu = process.cpuUsage();
  executed = 0;
  const seen = await run(inFlight, from, keys, ops);
  const used = process.cpuUsage(cpu);
  const took = Number(process.hrtime.bigint() - wall) / 1000;
  const wanted = what === 'new' ? ops : 0;
  /* The table keeps members in an order of its own. */
  if (executed !== wanted || JSON.stringify(seen).length !== text.length) {
    throw new Error(`${what}: ${executed} of ${ops} were executed, or another result`);
  }
  console.log(JSON.stringify({ cpu_us: used.user + used.system, wall_us: took }));
}

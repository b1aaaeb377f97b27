/* Powertools for AWS Lambda, as a program that does what it is told. See
 * powertools.py.
 *
 * Usage: node powertools.mjs FOLDER, which has node_modules
 *
 * Each line of stdin is a JSON object, each is answered with a line.
 */
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(process.argv[2] + '/');
const { DynamoDBPersistenceLayer } = require('@aws-lambda-powertools/idempotency/dynamodb');
const { IdempotencyConfig } = require('@aws-lambda-powertools/idempotency');

console.warn = () => {};

const commands = {
  /* The keys of events, each a text as Lambda receives it. */
  keys: async ({ prefix, events }) => {
    const layer = new DynamoDBPersistenceLayer({
      tableName: 'none',
      clientConfig: { region: 'eu-west-1' },
    });
    layer.configure({ config: new IdempotencyConfig({}), keyPrefix: prefix });
    return events.map((text) => layer.getHashedIdempotencyKey(JSON.parse(text)));
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: what, ...rest } = JSON.parse(line);
  const answer = await commands[what](rest);
  console.log(JSON.stringify(answer ?? null));
}

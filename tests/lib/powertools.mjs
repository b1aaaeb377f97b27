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
const { IdempotencyConfig, makeIdempotent } = require('@aws-lambda-powertools/idempotency');

console.warn = () => {};

/* Invocations that were begun, by number. */
const invocations = [];

/* Resolves with what @promise came to: { result } or { error }. */
const settle = async (promise) => {
  try {
    return { result: await promise };
  } catch (error) {
    return { error: error.name };
  }
};

/* An invocation of a function with the payload { id }, whose Lambda has remainingMs
 * left: its body waits until finish(). attributes: keyAttr and the other names that
 * the persistence layer takes. */
const invoke = ({
  url,
  tableName,
  id,
  remainingMs,
  attributes = {},
  expiresAfterSeconds = 3600,
}) => {
  const invocation = { executed: false };
  const entered = new Promise((resolve) => {
    invocation.entered = resolve;
  });
  const finished = new Promise((resolve, reject) => {
    invocation.finish = resolve;
    invocation.fail = reject;
  });
  const operate = makeIdempotent(
    async () => {
      invocation.executed = true;
      invocation.entered({ executed: true });
      return await finished;
    },
    {
      persistenceStore: new DynamoDBPersistenceLayer({
        tableName,
        ...attributes,
        clientConfig: { endpoint: url, region: 'eu-west-1' },
      }),
      config: new IdempotencyConfig({ eventKeyJmesPath: 'id', expiresAfterSeconds }),
      keyPrefix: 'pay',
    }
  );
  const context = { getRemainingTimeInMillis: () => remainingMs };
  invocation.outcome = settle(operate({ id }, context));
  invocation.begun = Promise.race([
    entered,
    invocation.outcome.then((outcome) => ({ executed: false, ...outcome })),
  ]);
  return invocation;
};

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

  /* Begins an invocation; says whether its body runs, or what came of it. */
  begin: async (request) => {
    const invocation = invoke(request);
    invocations.push(invocation);
    return { number: invocations.length - 1, ...(await invocation.begun) };
  },

  /* Lets the body of an invocation return, or throw; says what came of it. */
  finish: async ({ number, result }) => {
    invocations[number].finish(result);
    return await invocations[number].outcome;
  },
  fail: async ({ number }) => {
    invocations[number].fail(new RangeError('no'));
    return await invocations[number].outcome;
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: what, ...rest } = JSON.parse(line);
  const answer = await commands[what](rest);
  console.log(JSON.stringify(answer ?? null));
}

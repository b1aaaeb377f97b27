/* A consumer of sqs-consumer with Powertools for AWS Lambda, for bench/consume.
 *
 * Usage: node consumer.mjs QUEUE SQS TABLE DYNAMODB AT_ONCE
 *
 * Ends when the queue is empty, and prints how many messages it has handled.
 */
import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { DynamoDBPersistenceLayer } from '@aws-lambda-powertools/idempotency/dynamodb';
import { SQSClient } from '@aws-sdk/client-sqs';
import { Consumer } from 'sqs-consumer';

const [queueUrl, sqs, tableName, dynamodb, atOnce] = process.argv.slice(2);
let handled = 0;

const handle = makeIdempotent(
  async () => {
    handled++;
    return { done: true };
  },
  {
    persistenceStore: new DynamoDBPersistenceLayer({
      tableName,
      clientConfig: { endpoint: dynamodb },
    }),
    config: new IdempotencyConfig({ eventKeyJmesPath: 'MessageId', expiresAfterSeconds: 3600 }),
  }
);

/* What Lambda hands to a function. */
const context = { getRemainingTimeInMillis: () => 30000 };

/* One consumer holds ten messages at most; several share the process. */
const consumers = Array.from({ length: Math.ceil(Number(atOnce) / 10) }, () =>
  Consumer.create({
    queueUrl,
    sqs: new SQSClient({ endpoint: sqs, useQueueUrlAsEndpoint: false }),
    batchSize: Math.min(10, Number(atOnce)),
    waitTimeSeconds: 1,
    pollingWaitTimeMs: 0,
    handleMessageBatch: async (messages) => {
      const ends = await Promise.allSettled(messages.map((m) => handle(m, context)));
      return messages.filter((_, i) => ends[i].status === 'fulfilled');
    },
  })
);

let running = consumers.length;
for (const consumer of consumers) {
  for (const event of ['error', 'processing_error']) {
    consumer.on(event, (error) => {
      console.error(error.message);
      process.exit(1);
    });
  }
  consumer.on('empty', () => consumer.stop());
  consumer.on('stopped', () => {
    running--;
    if (running === 0) {
      console.log(handled);
    }
  });
  consumer.start();
}

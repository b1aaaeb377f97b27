/* The same function as bench/lambda_handler.c, with Powertools for AWS Lambda. */
import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { DynamoDBPersistenceLayer } from '@aws-lambda-powertools/idempotency/dynamodb';

export const handler = makeIdempotent(async (event) => ({ charged: true, order: event.idempotencyKey }), {
  persistenceStore: new DynamoDBPersistenceLayer({
    tableName: process.env.TABLE,
    clientConfig: { endpoint: process.env.ENDPOINT },
  }),
  config: new IdempotencyConfig({ eventKeyJmesPath: 'idempotencyKey', expiresAfterSeconds: 3600 }),
});

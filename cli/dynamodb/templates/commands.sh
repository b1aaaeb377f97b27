aws dynamodb create-table --table-name @TABLE@@REGION@ \
    --billing-mode PAY_PER_REQUEST --deletion-protection-enabled \
    --key-schema AttributeName=id,KeyType=HASH \
@index|    --attribute-definitions AttributeName=id,AttributeType=S \
@index|        AttributeName=open,AttributeType=S AttributeName=since,AttributeType=N \
@index|    --global-secondary-indexes '[{"IndexName":"open","KeySchema":[{"AttributeName":"open","KeyType":"HASH"},{"AttributeName":"since","KeyType":"RANGE"}],"Projection":{"ProjectionType":"KEYS_ONLY"}}]'
@no-index|    --attribute-definitions AttributeName=id,AttributeType=S
aws dynamodb wait table-exists --table-name @TABLE@@REGION@
aws dynamodb update-time-to-live --table-name @TABLE@@REGION@ \
    --time-to-live-specification Enabled=true,AttributeName=ttl
aws dynamodb update-continuous-backups --table-name @TABLE@@REGION@ \
    --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true

variable "table_name" {
  type    = string
  default = "@TABLE@"
}

data "aws_region" "idem" {}

resource "aws_dynamodb_table" "idem" {
  name                        = var.table_name
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "id"
  deletion_protection_enabled = true

  attribute {
    name = "id"
    type = "S"
@index|  }
@index|
@index|  attribute {
@index|    name = "open"
@index|    type = "S"
@index|  }
@index|
@index|  attribute {
@index|    name = "since"
@index|    type = "N"
@index|  }
@index|
@index|  global_secondary_index {
@index|    name            = "open"
@index|    hash_key        = "open"
@index|    range_key       = "since"
@index|    projection_type = "KEYS_ONLY"
  }

  ttl {
    attribute_name = "ttl"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }
}

data "aws_iam_policy_document" "idem_use" {
  statement {
    actions = [
      "dynamodb:GetItem",
      "dynamodb:BatchGetItem",
      "dynamodb:PutItem",
      "dynamodb:BatchWriteItem",
    ]
    resources = [aws_dynamodb_table.idem.arn]
  }
}

resource "aws_iam_policy" "idem_use" {
  name_prefix = "idem_use-"
  description = "Runs operations once with idem, and replays them."
  policy      = data.aws_iam_policy_document.idem_use.json
}

data "aws_iam_policy_document" "idem_operate" {
  statement {
    actions = [
      "dynamodb:GetItem",
      "dynamodb:BatchGetItem",
      "dynamodb:PutItem",
      "dynamodb:BatchWriteItem",
      "dynamodb:Scan",
      "dynamodb:DeleteItem",
      "dynamodb:DescribeTable",
      "dynamodb:DescribeTimeToLive",
      "dynamodb:DescribeContinuousBackups",
    ]
    resources = [aws_dynamodb_table.idem.arn]
  }
@index|  statement {
@index|    actions = [
@index|      "dynamodb:Query",
@index|    ]
@index|    resources = ["${aws_dynamodb_table.idem.arn}/index/open"]
@index|  }
}

resource "aws_iam_policy" "idem_operate" {
  name_prefix = "idem_operate-"
  description = "Looks after the table of idem: lists, resolves, purges, checks."
  policy      = data.aws_iam_policy_document.idem_operate.json
}

output "idem_store" {
@index|  value = "dynamodb://${aws_dynamodb_table.idem.name}?region=${data.aws_region.idem.name}"
@no-index|  value = "dynamodb://${aws_dynamodb_table.idem.name}?region=${data.aws_region.idem.name}&index=off"
}

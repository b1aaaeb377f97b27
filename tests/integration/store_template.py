"""idem store template: what it prints makes the table that idem store create makes."""

import json
import re
import shlex

import counting
import dynamo
from checks import TABLE, aws_line, check, grades, pairs, server
from tap import PROGRAM, equal, main, run, skip, test

try:
    import yaml
except ImportError:
    yaml = None


def template(*options, url=f"dynamodb://{TABLE}"):
    done = run([PROGRAM, "store", "template", "--store", url, *options])
    equal((done.status, done.stderr), (0, b""))
    return done.stdout.decode()


def read_yaml(text):
    if yaml is None:
        skip("python3-yaml is not installed: see tools/deps")
    return yaml.safe_load(text)


# ---- Tables ----


def make(url, properties):
    """What CloudFormation would make of the @properties of a table."""
    properties = dict(properties)
    ttl = properties.pop("TimeToLiveSpecification")
    equal(properties.pop("PointInTimeRecoverySpecification"),
          {"PointInTimeRecoveryEnabled": True})
    equal(properties.pop("TableName"), {"Ref": "TableName"})
    dynamo.call(url, "CreateTable", {"TableName": TABLE, **properties})
    dynamo.call(url, "UpdateTimeToLive", {"TableName": TABLE, "TimeToLiveSpecification": ttl})


def shape(url):
    """What matters of the table."""
    table = dynamo.call(url, "DescribeTable", {"TableName": TABLE})["Table"]
    ttl = dynamo.call(url, "DescribeTimeToLive", {"TableName": TABLE})
    return {
        "key": table["KeySchema"],
        "attributes": sorted(table["AttributeDefinitions"], key=lambda a: a["AttributeName"]),
        "billing": table["BillingModeSummary"]["BillingMode"],
        "indexes": [{name: index[name] for name in ("IndexName", "KeySchema", "Projection")}
                    for index in table.get("GlobalSecondaryIndexes", [])],
        "ttl": ttl["TimeToLiveDescription"],
    }


def command_properties(text):
    """The properties of the table that the commands make."""
    lines = text.replace("\\\n", " ").splitlines()
    options = aws_line(lines[0], "create-table", region=None)
    properties = {
        "BillingMode": options["billing-mode"][0],
        "KeySchema": pairs(options["key-schema"]),
        "AttributeDefinitions": pairs(options["attribute-definitions"]),
        "DeletionProtectionEnabled": options.get("deletion-protection-enabled") == [],
    }
    if "global-secondary-indexes" in options:
        properties["GlobalSecondaryIndexes"] = json.loads(options["global-secondary-indexes"][0])
    equal(shlex.split(lines[1])[1:4], ["dynamodb", "wait", "table-exists"])
    assert all(TABLE in line for line in lines), lines
    ttl = shlex.split(lines[2])[-1:]
    equal(pairs(ttl), [{"Enabled": "true", "AttributeName": "ttl"}])
    equal(shlex.split(lines[3])[-1], "PointInTimeRecoveryEnabled=true")
    return properties


def same_table(kind, more=""):
    """The table of the template, and of create, are alike, and as they should be."""
    named = f"dynamodb://{TABLE}{more.replace('&', '?')}"
    stack = json.loads(template("--format", "json", url=named))
    properties = stack["Resources"]["IdemTable"]["Properties"]
    equal(stack["Parameters"]["TableName"]["Default"], TABLE)
    env = dynamo.environment()
    with server(kind) as (url, store):
        equal(run([PROGRAM, "store", "create", "--store", store + more], env).status, 0)
        wanted = shape(url)
    with server(kind) as (url, store):
        make(url, properties)
        equal(shape(url), wanted)
        status, findings = check(store + more, env)
        equal((status, set(grades(findings)) - {"backups", "protection"}), (0, set()))
    plain = {name: properties[name] for name in properties
             if name not in ("TableName", "TimeToLiveSpecification",
                             "PointInTimeRecoverySpecification")}
    equal(command_properties(template("--format", "cli", url=named)), plain)


@test
def the_table_is_that_of_create():
    """A table with the properties of the template is what create makes, on both servers,
    and a check finds nothing wrong with it."""
    same_table("local")
    same_table("dynoxide")


@test
def the_table_without_an_index_too():
    """Likewise without an index, where the URL says so."""
    same_table("local", more="&index=off")
    for name in ("cloudformation", "sam", "json", "terraform", "cli"):
        text = template("--format", name, url=f"dynamodb://{TABLE}?index=off")
        assert "since" not in text and "dynamodb:Query" not in text, text
        assert ("index=off" in text) == (name != "cli"), text


@test
def yaml_says_what_json_says():
    """The template in YAML is the one in JSON."""
    for url in (f"dynamodb://{TABLE}", f"dynamodb://{TABLE}?index=off"):
        stack = json.loads(template("--format", "json", url=url))
        equal(read_yaml(template(url=url)), stack)
        equal(read_yaml(template("--format", "cloudformation", url=url)), stack)
        equal(json.loads(template("--json", url=url)), stack)
    # Names that YAML could take for something else.
    for name in ("true", "123", "1e3", "off", "a.b", "x-1", "0x1f", "2026-11-21", "1.5", "-.-"):
        equal(read_yaml(template(url=f"dynamodb://{name}"))["Parameters"]["TableName"]["Default"],
              name)


@test
def sam_has_a_function_that_may_use_it():
    """The template for SAM has the same table, and a function that may use it."""
    plain = json.loads(template("--json"))["Resources"]
    stack = read_yaml(template("--format", "sam"))
    equal(stack["Transform"], "AWS::Serverless-2016-10-31")
    equal(stack["Resources"]["IdemTable"], plain["IdemTable"])
    equal(stack["Resources"]["IdemOperate"], plain["IdemOperate"])
    function = stack["Resources"]["Function"]["Properties"]
    equal(function["Policies"], [plain["IdemUse"]["Properties"]["PolicyDocument"]])
    equal(function["Environment"]["Variables"]["IDEM_STORE"],
          {"Fn::Sub": "dynamodb://${IdemTable}?region=${AWS::Region}"})


def actions(resources, name):
    document = resources[name]["Properties"]["PolicyDocument"]
    found = set()
    for statement in document["Statement"]:
        equal(statement["Effect"], "Allow")
        found |= set(statement["Action"])
    return found


@test
def terraform_says_the_same():
    """The template for Terraform has the same attributes, key, index and actions."""
    text = template("--format", "terraform")
    equal(text.count("{"), text.count("}"))
    equal(re.findall(r'attribute {\s+name = "(\w+)"\s+type = "(\w)"', text),
          [("id", "S"), ("open", "S"), ("since", "N")])
    for line in ('  hash_key                    = "id"', '    hash_key        = "open"',
                 '    range_key       = "since"', '    projection_type = "KEYS_ONLY"',
                 '    attribute_name = "ttl"', "  deletion_protection_enabled = true",
                 '  billing_mode                = "PAY_PER_REQUEST"'):
        assert line in text.splitlines(), line
    resources = json.loads(template("--json"))["Resources"]
    use, operate = text.split('data "aws_iam_policy_document" "idem_operate"')
    named = re.compile(r'"(dynamodb:\w+)"')
    equal(set(named.findall(use)), actions(resources, "IdemUse"))
    equal(set(named.findall(operate)), actions(resources, "IdemOperate"))


@test
def the_policies_are_what_is_needed():
    """What is asked of a server is what the policies allow, no less and no more."""
    resources = json.loads(template("--json"))["Resources"]
    env = dict(dynamo.environment(), IDEM_LIKELY_REPLAY="1")

    def asked(commands, counted):
        env["IDEM_STORE"] = f"dynamodb://{TABLE}?endpoint={counted.url}"
        counted.take()
        for command in commands:
            status = run([PROGRAM, *command], env, timeout=60).status
            equal((command, status in (0, 3)), (command, True))
        return {"dynamodb:" + each[0] for each in counted.take()}

    work = ("run", "-k", "a", "--", "sh", "-c", "head -c 5000 /dev/urandom")
    failing = ("run", "-k", "b", "--", "sh", "-c", "kill -9 $$")
    with server("local") as (url, store), counting.proxy(url) as counted:
        equal(run([PROGRAM, "store", "create", "--store", store], env).status, 0)
        equal(asked([work, work, ("show", "a")], counted), actions(resources, "IdemUse"))
        env["IDEM_STORE"] = store
        run([PROGRAM, *failing], env)
        item = dynamo.call(url, "Scan", {"TableName": TABLE})["Items"]
        assert any("open" in each for each in item), item
        got = asked([("store", "check"), ("list",), ("list", "--status", "unknown"),
                     ("purge",), ("stats",), work, work], counted)
        equal(got, actions(resources, "IdemOperate"))


@test
def limits_need_one_right_more():
    """Small and large limits ask for what the policy of users has, and UpdateItem."""
    plain = json.loads(template("--json"))["Resources"]
    more = {"dynamodb:UpdateItem"}
    env = dynamo.environment()
    with server("local") as (url, store), counting.proxy(url) as counted:
        equal(run([PROGRAM, "store", "create", "--store", store], env).status, 0)
        env["IDEM_STORE"] = f"dynamodb://{TABLE}?endpoint={counted.url}"
        counted.take()
        for most in ("8", "5000"):
            for request in ("r1", "r2", "r1"):
                done = run([PROGRAM, "limit", "-n", f"n{most}", "-u", "u1", "-r", request,
                            "--max", most, "--per", "day"], env, timeout=60)
                equal((most, request, done.status), (most, request, 0))
        asked = {"dynamodb:" + each[0] for each in counted.take()}
        # A transaction is allowed by the rights of what it writes.
        asked.discard("dynamodb:TransactWriteItems")
        assert more <= asked <= actions(plain, "IdemUse") | more, asked


@test
def commands_name_the_region():
    """The commands name the region where the URL does."""
    url = f"dynamodb://{TABLE}?index=off&region=eu-north-1"
    lines = template("--format", "cli", url=url).replace("\\\n", " ").splitlines()
    equal([line.count(" --region eu-north-1 ") for line in lines if "wait" not in line], [1, 1, 1])
    assert lines[1].endswith(" --region eu-north-1"), lines
    for more in ("", "?xregion=a", "?region=$(id)", "?region=" + 64 * "a"):
        assert "--region" not in template("--format", "cli", url=f"dynamodb://{TABLE}{more}")


@test
def tables_have_names():
    """The name is the URL's, or "idem"; what is no table is a usage error."""
    equal(read_yaml(template(url="dynamodb://my.table-1_x?region=eu-west-1"))
          ["Parameters"]["TableName"]["Default"], "my.table-1_x")
    plain = run([PROGRAM, "store", "template"])
    equal(plain.status, 0)
    equal(read_yaml(plain.stdout.decode())["Parameters"]["TableName"]["Default"], "idem")
    env = {"IDEM_STORE": "dynamodb://elsewhere"}
    assert b"elsewhere" in run([PROGRAM, "store", "template"], env).stdout
    env = {"IDEM_STORE": "sqlite:/x"}
    assert b'Default: "idem"' in run([PROGRAM, "store", "template"], env).stdout
    for url in ("sqlite:/x", "dynamodb:x", "dynamodb://", "dynamodb://ab", "dynamodb://a b c",
                'dynamodb://x"x', "dynamodb://" + 256 * "x"):
        equal((url, run([PROGRAM, "store", "template", "--store", url]).status), (url, 64))
    equal(run([PROGRAM, "store", "template", "--format", "xml"]).status, 64)


if __name__ == "__main__":
    main()

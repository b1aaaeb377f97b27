"""The SAM templates of the examples: well-formed, complete, and in agreement with idem."""

import copy
import glob
import json
import os
import re

from files import read
import sam
from tap import PROGRAM, TOP, equal, main, note, run, skip, test

EXAMPLES = os.path.join(TOP, "examples", "lambda")
# What follows a table's name in the label of its metrics; lock-token/try compares.
WHERE = "?region=${AWS::Region}"
LEASE_MARGIN = 2  # Seconds; as in aws/lambda/unit.c.


def templates():
    """Each template with its folder."""
    paths = sorted(glob.glob(os.path.join(EXAMPLES, "*", "template.yaml")))
    assert paths
    try:
        return [(os.path.dirname(path), sam.load(path)) for path in paths]
    except ImportError:
        skip("there is no PyYAML")


def of_type(template, kind):
    return {
        name: resource["Properties"]
        for name, resource in template["Resources"].items()
        if resource["Type"] == kind
    }


def functions(template):
    return of_type(template, "AWS::Serverless::Function")


def variables(function):
    return function.get("Environment", {}).get("Variables", {})


def told(*options):
    """What idem store template prints."""
    done = run([PROGRAM, "store", "template", "--json", "--store", "dynamodb://idem", *options])
    equal(done.status, 0)
    return json.loads(done.stdout)["Resources"]


def rights(resources):
    """What whoever runs and replays may do."""
    return resources["IdemUse"]["Properties"]["PolicyDocument"]["Statement"][0]["Action"]


@test
def templates_are_well_formed():
    """Each resource is of a known type, has what is required, and refers to what exists."""
    for folder, template in templates():
        equal((folder, sam.problems(template)), (folder, []))
        note(f"{os.path.basename(folder)}: {len(template['Resources'])} resources")


def without(name):
    return lambda template: template["Resources"].pop(name)


def changed(name, **properties):
    return lambda t: t["Resources"][name]["Properties"].update(properties)


@test
def the_check_sees_mistakes():
    """A resource that is gone, misspelt, incomplete or of the wrong kind is reported."""
    folder = os.path.join(EXAMPLES, "event-consumer")
    template = dict(templates())[folder]
    for spoil, wanted in (
        (without("ConsumerLog"), "nothing is named ConsumerLog"),
        (without("DeadOrders"), "no resource DeadOrders"),
        (changed("Orders", VisibilityTimeOut=1), "unknown property VisibilityTimeOut"),
        (changed("Orders", VisibilityTimeout="1m"), "'1m' is not of kind integer"),
        (changed("Orders", RedrivePolicy={"maxReceiveCount": 3}),
         "deadLetterTargetArn is missing"),
        (changed("Watch", Role={"Fn::GetAtt": ["Orders", "Name"]}),
         "Orders has no attribute Name"),
        (changed("Watch", CodeUri={"Fn::Sub": "${Bucket}/watch.zip"}),
         "nothing is named Bucket"),
    ):  # fmt: skip
        spoiled = copy.deepcopy(template)
        spoil(spoiled)
        found = sam.problems(spoiled)
        assert any(wanted in line for line in found), (wanted, found)


@test
def tables_are_those_of_idem():
    """A table of records is the one that idem store template prints, kept when the stack
    goes, and its users have the rights that it grants."""
    wanted = dict(told()["IdemTable"]["Properties"])
    wanted.pop("TableName")
    use = rights(told())
    limits = [*use, "dynamodb:UpdateItem"]
    for folder, template in templates():
        tables = of_type(template, "AWS::DynamoDB::Table")
        assert tables, folder
        stores = set(re.findall(r"dynamodb://\$\{(\w+)\}", json.dumps(template)))
        assert stores <= set(tables), folder
        for name, table in tables.items():
            if name in stores:
                equal((folder, name, table), (folder, name, wanted))
            equal(template["Resources"][name]["DeletionPolicy"], "Retain")
        for name, function in functions(template).items():
            given = variables(function)
            counts = "LIMIT_STORE" in given
            if given["IDEM_STORE"] != "memory:":
                statements = function["Policies"][0]["Statement"]
                wanted_rights = limits if counts else use
                equal((folder, name, statements[0]["Action"]), (folder, name, wanted_rights))
            elif counts:
                only = set(function["Policies"][0]["Statement"][0]["Action"])
                assert set(limits) - set(use) <= only <= set(limits), (folder, name, only)
            elif "STREAM_STORE" in given:
                only = set(function["Policies"][0]["Statement"][0]["Action"])
                assert {"GetItem", "PutItem"} <= {a.split(":")[1] for a in only}, (folder, name)
                assert only <= set(use), (folder, name, only)


@test
def logs_are_made_before_they_are_read():
    """Each function writes to a log group of its template, and no filter names another."""
    for folder, template in templates():
        groups = set(of_type(template, "AWS::Logs::LogGroup"))
        for name, function in functions(template).items():
            at = function.get("LoggingConfig", {}).get("LogGroup", {}).get("Ref")
            assert at in groups, (folder, name, at)
        for name, found in of_type(template, "AWS::Logs::MetricFilter").items():
            assert found["LogGroupName"].get("Ref") in groups, (folder, name)


@test
def queues_fit_leases():
    """A message comes again when its lease is over; it is tried as often as idem allows
    before it goes to the dead-letter queue, which keeps it for longer."""
    seen = 0
    for folder, template in templates():
        queues = of_type(template, "AWS::SQS::Queue")
        for function in functions(template).values():
            for event in function.get("Events", {}).values():
                if event["Type"] != "SQS":
                    continue
                seen += 1
                mapping = event["Properties"]
                equal((folder, mapping["FunctionResponseTypes"]), (folder, ["ReportBatchItemFailures"]))
                queue = queues[mapping["Queue"]["Fn::GetAtt"][0]]
                assert queue["VisibilityTimeout"] >= 6 * function["Timeout"], folder
                assert queue["VisibilityTimeout"] > function["Timeout"] + LEASE_MARGIN
                redrive = queue["RedrivePolicy"]
                attempts = int(variables(function).get("IDEM_LAMBDA_MAX_ATTEMPTS", 5))
                assert redrive["maxReceiveCount"] > attempts, folder
                dead = queues[redrive["deadLetterTargetArn"]["Fn::GetAtt"][0]]
                assert dead["MessageRetentionPeriod"] > queue.get("MessageRetentionPeriod", 345600)
    assert seen


@test
def streams_are_read_whole():
    """A stream has the new image of its items."""
    seen = 0
    for folder, template in templates():
        tables = of_type(template, "AWS::DynamoDB::Table")
        for function in functions(template).values():
            for event in function.get("Events", {}).values():
                if event["Type"] == "DynamoDB":
                    seen += 1
                    mapping = event["Properties"]
                    name, attribute = mapping["Stream"]["Fn::GetAtt"]
                    stream = tables[name]["StreamSpecification"]
                    equal((attribute, stream), ("StreamArn", {"StreamViewType": "NEW_IMAGE"}))
    assert seen


@test
def somebody_is_told():
    """Each template has the poller of overdue work, alarms on what it finds, and an
    address that every alarm goes to."""
    for folder, template in templates():
        watch = functions(template)["Watch"]
        store = variables(watch)["WATCH_STORE"]["Fn::Sub"]
        equal([e["Type"] for e in watch["Events"].values()], ["Schedule"])
        alarms = of_type(template, "AWS::CloudWatch::Alarm")
        for name, alarm in alarms.items():
            equal((folder, name, alarm["AlarmActions"]), (folder, name, [{"Ref": "Alarms"}]))
            if alarm["Namespace"] == "idem":
                label = {"Fn::Sub": store + WHERE}
                equal((name, alarm["Dimensions"]), (name, [{"Name": "store", "Value": label}]))
        metrics = {alarm["MetricName"] for alarm in alarms.values()}
        wanted = {"overdue", "unknownRecords", "up", "Errors", "NotRecorded"}
        assert wanted <= metrics, metrics


@test
def packages_have_their_handlers():
    """What the first lines of a template pack is what its functions run, in the places
    that it names, with the settings that the handler's own first lines ask for."""
    for folder, template in templates():
        head = read(os.path.join(folder, "template.yaml"))
        packed = dict(re.findall(r"^#  *zip -\w (\S+) (.*)$", head, re.M))
        compiled = re.findall(r"^#  *cc -o bootstrap (\S+) .*\n#  *zip -r (\S+) ", head, re.M)
        for name, function in functions(template).items():
            files = packed[function["CodeUri"]].split()
            if files == ["bootstrap", "lib"]:
                (source,) = [source for source, made in compiled if made == function["CodeUri"]]
                assert os.path.exists(os.path.join(folder, source)), name
                continue
            equal((folder, name, files[1:]), (folder, name, ["../bootstrap", '"$IDEM"']))
            equal((folder, name, function["Handler"]), (folder, name, os.path.basename(files[0])))
            source = os.path.join(folder, files[0])
            check_settings(source, variables(function))


@test
def sources_are_known():
    """IDEM_LAMBDA_SOURCE names a source that idem knows."""
    done = run([PROGRAM, "lambda", "sources"])
    known = {line.split()[0] for line in done.stdout.decode().splitlines()}
    for folder, template in templates():
        for name, function in functions(template).items():
            source = variables(function)["IDEM_LAMBDA_SOURCE"]
            assert source in known, (folder, name, source)


def check_settings(source, given):
    wanted = re.findall(r"^#     (\w+)=('[^']*'|\S*)", read(source), re.M)
    assert wanted, source
    for name, value in wanted:
        assert name in given, (source, name)
        if name.startswith("IDEM_"):
            equal((source, name, given[name]), (source, name, value.strip("'")))


if __name__ == "__main__":
    main()

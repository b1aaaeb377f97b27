"""Check a SAM template: types of resources, their properties and which of these they
require, and that every reference leads somewhere.

    template = sam.load("template.yaml")
    sam.problems(template)          # sentences; none: it is well-formed

The types are those of tests/lambda/template_types.json. A value that a function of
CloudFormation computes counts as one of any kind.
"""

import json
import os
import re

TYPES = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    "lambda",
    "template_types.json",
)
SECTIONS = {
    *("AWSTemplateFormatVersion", "Transform", "Description", "Parameters"),
    *("Conditions", "Resources", "Outputs"),
}
BESIDE = {
    *("Type", "Properties", "Condition", "DependsOn"),
    *("DeletionPolicy", "UpdateReplacePolicy"),
}
PSEUDO = {
    "AWS::" + name
    for name in ("AccountId", "NoValue", "Partition", "Region", "StackName", "URLSuffix")
}
FUNCTIONS = {"Ref", "Fn::GetAtt", "Fn::Sub", "Fn::If", "Fn::Equals", "Fn::Not"}
KINDS = {
    "string": (str, int, float),
    "integer": int,
    "double": (int, float),
    "long": int,
    "boolean": bool,
    "json": object,
}


def load(path):
    """Read the template at @path, with the short forms of functions written out."""
    import yaml  # pylint: disable=import-outside-toplevel

    class Loader(yaml.SafeLoader):
        """Knows !Ref and its like."""

    def function(loader, name, node):
        if isinstance(node, yaml.ScalarNode):
            value = loader.construct_scalar(node)
        else:
            value = loader.construct_sequence(node, deep=True)
        if name == "GetAtt" and isinstance(value, str):
            value = value.split(".", 1)
        return {name if name == "Ref" else "Fn::" + name: value}

    Loader.add_multi_constructor("!", function)
    with open(path, encoding="utf-8") as f:
        return yaml.load(f, Loader)


def is_function(value):
    return isinstance(value, dict) and len(value) == 1 and set(value) <= FUNCTIONS


class Check:
    """One template, and its problems."""

    def __init__(self, template):
        with open(TYPES, encoding="utf-8") as f:
            self.types = json.load(f)
        self.template = template
        self.resources = template.get("Resources", {})
        self.found = []

    def say(self, where, what):
        self.found.append(f"{where}: {what}")

    def run(self):
        for name in set(self.template) - SECTIONS:
            self.say(name, "no such section")
        for name, resource in self.resources.items():
            self.resource(name, resource)
        self.refer("template", self.template)
        for name, parameter in self.template.get("Parameters", {}).items():
            if not self.used(name):
                self.say(name, "a parameter that nothing uses")
            if "Type" not in parameter:
                self.say(name, "a parameter without a type")
        return self.found

    def used(self, name):
        text = json.dumps([self.resources, self.template.get("Conditions")])
        return f'"Ref": "{name}"' in text or "${" + name + "}" in text

    def resource(self, name, resource):
        kind = self.types.get(resource.get("Type"))
        if kind is None:
            self.say(name, f"unknown type {resource.get('Type')}")
            return
        for other in set(resource) - BESIDE:
            self.say(name, f"{other} is in the wrong place")
        self.value(name, resource.get("Properties", {}), kind)

    def value(self, where, value, kind):
        if is_function(value):
            return
        if isinstance(kind, str):
            if not isinstance(value, KINDS[kind]) or (
                isinstance(value, bool) and kind not in ("boolean", "json")
            ):
                self.say(where, f"{value!r} is not of kind {kind}")
        elif "list" in kind:
            if not isinstance(value, list):
                self.say(where, "not a list")
                return
            for i, item in enumerate(value):
                self.value(f"{where}[{i}]", item, kind["list"])
        elif not isinstance(value, dict):
            self.say(where, "not a mapping")
        elif "map" in kind:
            for name, item in value.items():
                self.value(f"{where}.{name}", item, kind["map"])
        elif "events" in kind:
            self.event(where, value, kind["events"])
        else:
            self.members(where, value, kind)

    def event(self, where, value, kinds):
        kind = kinds.get(value.get("Type"))
        if kind is None or set(value) != {"Type", "Properties"}:
            self.say(where, f"not an event: {value!r}")
            return
        self.members(where, value["Properties"], kind)

    def members(self, where, value, kind):
        for name in set(kind["required"]) - set(value):
            self.say(where, f"{name} is missing")
        for name, item in value.items():
            if name not in kind["properties"]:
                self.say(where, f"unknown property {name}")
            else:
                self.value(f"{where}.{name}", item, kind["properties"][name])

    # ---- What is referred to ----

    def refer(self, where, value):
        if isinstance(value, list):
            for item in value:
                self.refer(where, item)
        elif is_function(value):
            ((name, given),) = value.items()
            self.function(where, name, given)
        elif isinstance(value, dict):
            for name, item in value.items():
                self.refer(f"{where}.{name}", item)
                if name == "Condition" and isinstance(item, str):
                    self.condition(where, item)

    def function(self, where, name, given):
        if name == "Ref":
            self.named(where, given)
        elif name == "Fn::GetAtt":
            self.attribute(where, *given)
        elif name == "Fn::Sub":
            self.sub(where, given)
        else:
            if name == "Fn::If":
                self.condition(where, given[0])
            self.refer(where, given)

    def sub(self, where, text):
        for name in re.findall(r"\$\{([^!}][^}]*)\}", text):
            if "." in name:
                self.attribute(where, *name.split(".", 1))
            else:
                self.named(where, name)

    def condition(self, where, name):
        if name not in self.template.get("Conditions", {}):
            self.say(where, f"no condition {name}")

    def named(self, where, name):
        if name not in {*self.resources, *self.template.get("Parameters", {}), *PSEUDO}:
            self.say(where, f"nothing is named {name}")

    def attribute(self, where, name, attribute):
        if name not in self.resources:
            self.say(where, f"no resource {name}")
            return
        kind = self.types.get(self.resources[name].get("Type"), {"attributes": []})
        if attribute not in kind["attributes"]:
            self.say(where, f"{name} has no attribute {attribute}")


def problems(template):
    """Return the problems of @template, as sentences."""
    return Check(template).run()

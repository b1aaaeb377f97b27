"""The manifests of packaging/kubernetes, checked against Kubernetes' own API: each field
is one that it has, with its type and one of its values, and none that must be is missing.

The npm package kubernetes-models has the OpenAPI schemas of Kubernetes as declarations of
TypeScript, one for each object; they are read here."""

import glob
import os
import re

import yaml
from files import read
from tap import PROGRAM, TOP, equal, main, note, skip, test

MANIFESTS = os.path.join(TOP, "packaging", "kubernetes")
MODELS = os.path.join(os.path.dirname(PROGRAM), "servers/node_modules/kubernetes-models")

_declared = {}


def declaration(path):
    """Return ({field: (whether it must be, type)}, {name of a type: its file})."""
    if path not in _declared:
        text = re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)
        imports = dict(re.findall(r'^import \{ (\w+) \} from "(.*)";$', text, re.M))
        whole = re.search(r"^export interface \w+(?: extends TypeMeta)? \{(.*?)^\}", text, re.M | re.S)
        fields = re.findall(r'^    "(.*?)"(\??): ([^;]+);$', whole[1] if whole else "", re.M)
        alias = re.search(r"^export type \w+ = ([^;{]+);", text, re.M)
        _declared[path] = (
            {name: (not may, kind) for name, may, kind in fields} if whole else alias[1],
            {name: place(path, file) for name, file in imports.items()},
        )
    return _declared[path]


def place(importer, file):
    """Return the path of a declaration that another imports as @file."""
    if file.startswith("."):
        path = os.path.join(os.path.dirname(importer), file)
    else:
        path = os.path.join(MODELS, "..", file)
    return os.path.normpath(re.sub(r"\.js$", "", path) + ".d.ts")


PLAIN = {"string": str, "boolean": bool}


def complaints(value, kind, imports, where):
    """Return what is wrong with @value, which is to be of the type @kind."""
    if kind.startswith("Array<"):
        if not isinstance(value, list):
            return [f"{where}: not a list"]
        inner = kind[len("Array<") : -1]
        return [c for i, v in enumerate(value) for c in complaints(v, inner, imports, f"{where}[{i}]")]
    if kind in imports:
        return object_complaints(value, imports[kind], where)
    if kind == "number":
        return [] if isinstance(value, int) and not isinstance(value, bool) else [f"{where}: no number"]
    if kind in PLAIN:
        return [] if isinstance(value, PLAIN[kind]) else [f"{where}: no {kind}: {value!r}"]
    if kind.startswith('"'):
        return [] if value in re.findall(r'"(.*?)"', kind) else [f"{where}: {value!r} is none of {kind}"]
    if kind.startswith("{"):  # A map: "[key: string]: TYPE".
        inner = re.search(r"\]: (\w+)", kind)[1]
        return [c for k, v in value.items() for c in complaints(v, inner, imports, f"{where}.{k}")]
    if "|" in kind:
        found = [complaints(value, one.strip(), imports, where) for one in kind.split("|")]
        return [] if [] in found else found[0]
    raise AssertionError(f"{where}: the type {kind} is unknown here")


def object_complaints(value, path, where):
    fields, imports = declaration(path)
    if isinstance(fields, str):
        return complaints(value, fields, imports, where)
    if not isinstance(value, dict):
        return [f"{where}: not an object"]
    bad = [f"{where}.{name} must be" for name, (must, _) in fields.items() if must and name not in value]
    for name, inner in value.items():
        if name not in fields:
            bad.append(f"{where}.{name}: Kubernetes has no such field")
        else:
            bad += complaints(inner, fields[name][1], imports, f"{where}.{name}")
    return bad


def check(manifest):
    version, kind = manifest.get("apiVersion", "?"), manifest.get("kind", "?")
    path = f"{MODELS}/{version}/{kind}.d.ts"
    if not os.path.exists(path):
        return [f"Kubernetes has no {kind} of {version}"]
    return object_complaints(manifest, path, kind)


def manifests():
    if not os.path.isdir(MODELS):
        skip("kubernetes-models is not installed: tools/deps servers")
    found = {}
    for path in sorted(glob.glob(f"{MANIFESTS}/*.yaml")):
        with open(path, encoding="utf-8") as f:
            found[os.path.basename(path)] = list(yaml.safe_load_all(f))
    assert found
    return found


@test
def manifests_are_what_kubernetes_takes():
    """Each manifest fits the schema of its kind."""
    there = manifests()
    for name, documents in there.items():
        for document in documents:
            equal((name, check(document)), (name, []))
    kinds = sorted({d["kind"] for documents in there.values() for d in documents})
    note(f"{len(there)} files: {', '.join(kinds)}")


@test
def a_mistake_is_found():
    """The control: a field that there is not, one of another type, a value that is none
    of those that there are, and a field that is missing."""
    (cron,) = manifests()["cronjob.yaml"]
    spec = cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    for change, undo, word in (
        (lambda: spec.update(restartpolicy="Never"), lambda: spec.pop("restartpolicy"), "no such"),
        (lambda: spec.update(terminationGracePeriodSeconds="60"),
         lambda: spec.update(terminationGracePeriodSeconds=60), "no number"),
        (lambda: cron["spec"].update(concurrencyPolicy="Forbidden"),
         lambda: cron["spec"].update(concurrencyPolicy="Forbid"), "none of"),
        (lambda: cron["spec"].pop("schedule"),
         lambda: cron["spec"].update(schedule="0 3 * * *"), "must be"),
    ):
        change()
        (found,) = check(cron)
        assert word in found, found
        undo()
    equal(check(cron), [])


def containers():
    """Each container of each manifest, with the specification of its pod."""
    for name, documents in manifests().items():
        for document in documents:
            spec = document.get("spec", {})
            spec = spec.get("jobTemplate", {}).get("spec", spec)
            pod = spec.get("template", {}).get("spec", {})
            for container in pod.get("containers", []) + pod.get("initContainers", []):
                yield name, pod, container


@test
def every_pod_is_an_ordinary_user():
    """Each container runs as the user of the images, with a root that is read-only and no
    capability, mounts a directory where the store is, and never a file alone."""
    for name, pod, container in containers():
        equal((name, pod["securityContext"]["runAsUser"]), (name, 65532))
        tight = container["securityContext"]
        equal((name, tight["readOnlyRootFilesystem"], tight["allowPrivilegeEscalation"],
               tight["capabilities"]), (name, True, False, {"drop": ["ALL"]}))
        for mount in container.get("volumeMounts", []):
            assert "subPath" not in mount, (name, mount)
            assert not mount["mountPath"].endswith(".db"), (name, mount)


@test
def a_pod_stops_after_its_requests():
    """A service beside a gateway outlasts requests in flight (--max-time, 60 s), and the
    pod has time for both."""
    pods = {}
    for name, pod, container in containers():
        pods.setdefault(name, (pod, {}))[1][container["name"]] = container
    beside = {name: both for name, both in pods.items() if "gateway" in both[1]}
    equal(sorted(beside), ["sidecar-dynamodb.yaml", "sidecar.yaml"])
    for pod, there in beside.values():
        (_, seconds) = there["shop"]["lifecycle"]["preStop"]["exec"]["command"]
        assert 60 < int(seconds) < pod["terminationGracePeriodSeconds"], pod


if __name__ == "__main__":
    main()

"""axe-core, which finds what keeps people from using a page (WCAG).

Only the tests use this package: tests/servers/package.json.
"""

import os

import dynamo
from files import read
from tap import skip

# The rules of WCAG 2.2, levels A and AA, and what axe counts as good practice.
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def _path():
    return os.path.join(dynamo.SERVERS, "node_modules", "axe-core", "axe.min.js")


def look(page):
    """Return (the violations, how many rules held) of @page as it is now."""
    if not os.path.exists(_path()):
        skip("axe-core is not installed: tools/deps servers")
    source = read(_path())
    found = page.eval(source + f""";
        axe.run(document, {{runOnly: {TAGS}, resultTypes: ['violations', 'incomplete']}}).then(r => ({{
            wrong: r.violations.concat(r.incomplete).flatMap(v => v.nodes
                .map(n => [n.html.slice(0, 120), n.any[0] || n.all[0] || n.none[0] || {{}}])
                .filter(([, why]) => why.data?.messageKey != 'shortTextContent')  // A digit alone: "3".
                .map(([html, why]) => v.id + ': ' + html + ' ' + why.message)),
            held: r.passes.length}}))""")
    return found["wrong"], found["held"]

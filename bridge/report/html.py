"""The funnel as one HTML file: no script, no font, no image from elsewhere."""

from __future__ import annotations

from jinja2 import Environment

from bridge.planner.report import PruneReport
from bridge.report.text import human_bytes, human_millis

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ reports[0].table }} - skipbridge explain</title>
<style>
:root { color-scheme: light dark; --bar: #2f6f4f; --rest: #8884; --ink: #1a1a1a; --bg: #fdfdfb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e4; --bg: #161816; --bar: #6fbf94; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--bg);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .3rem; }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
.meta { opacity: .75; margin: 0 0 .6rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid var(--rest); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; }
td.bar { width: 40%; } .track { background: var(--rest); height: .8rem; border-radius: .4rem; overflow: hidden; }
.fill { background: var(--bar); height: 100%; min-width: 2px; }
.note { border-left: 3px solid var(--bar); padding: .1rem .7rem; margin: .5rem 0; }
details { margin: .6rem 0; } li { overflow-wrap: anywhere; font: 12px ui-monospace, monospace; }
</style></head><body>
<h1>What was read, and why</h1>
{% for r in reports %}
<h2><code>{{ r.predicate }}</code></h2>
<p class="meta">{{ r.table }}, {% if r.generation >= 0 %}index generation {{ r.generation }}{% else %}no index{% endif %},
freshness {{ r.freshness }}, asked by {{ r.engine }}{% if r.dropped %}; not translated: {{ r.dropped | join("; ") }}{% endif %}</p>
<table><thead><tr><th>stage</th><th></th><th>of</th><th>kept</th><th>bytes</th><th>time</th></tr></thead><tbody>
{% for s in r.stages %}<tr><td>{{ s.name }}{% if s.index != "values" %} {{ s.index }}{% endif %}{% if s.columns %} ({{ s.columns | join(", ") }}){% endif %}</td>
<td class="bar"><div class="track"><div class="fill" style="width: {{ '%.2f' % (100 * s.kept / s.total if s.total else 0) }}%"></div></div></td>
<td>{{ "{:,}".format(s.total) }}</td><td>{{ "{:,}".format(s.kept) }}</td>
<td>{{ "-" if s.name == "partitions" else s.bytes | size }}</td><td>{{ s.millis | millis }}</td></tr>
{% endfor %}<tr><td>splits</td><td></td><td>{{ "{:,}".format(r.files_kept) }}</td><td>{{ "{:,}".format(r.splits.count) }}</td>
<td>{{ r.splits.bytes | size }}</td><td>{{ r.splits.millis | millis }}</td></tr></tbody></table>
{% for n in r.not_used %}<p class="note">not used: {{ n.index }}, <b>{{ n.reason }}</b>: {{ n.detail }}{% if n.mend %}<br><code>{{ n.mend }}</code>{% endif %}</p>
{% endfor %}{% if r.paths is not none and r.paths | length %}<details><summary>{{ "{:,}".format(r.paths | length) }} files kept</summary>
<ol>{% for p in r.paths.slice(0, 1000).to_pylist() %}<li>{{ p }}</li>{% endfor %}</ol>
{% if r.paths | length > 1000 %}<p>the first 1,000 are shown</p>{% endif %}</details>{% endif %}
{% endfor %}</body></html>
"""


def page(*reports: PruneReport) -> str:
    """One page over one or more reports; everything that came from a user is escaped."""
    environment = Environment(autoescape=True)
    environment.filters |= {"size": human_bytes, "millis": human_millis}
    return environment.from_string(_PAGE).render(reports=reports)

"""How the HTML pages look: light or dark as the reader prefers, from a phone to a wide screen."""

STYLE = """
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1c2330; --soft: #5b6472; --line: #d9dee5; --code: #f1f3f6;
  --good: #14703a; --good-back: #e3f4e8; --bad: #a5232b; --bad-back: #fbe7e7; --mark: #24569c; --mark-back: #e6eefa; }
@media (prefers-color-scheme: dark) { :root {
  --page: #12161c; --card: #1a2029; --ink: #e4e8ee; --soft: #9aa5b4; --line: #313a47; --code: #12171e;
  --good: #7fd6a0; --good-back: #14301f; --bad: #f29a9a; --bad-back: #3a1a1d; --mark: #9dbff2; --mark-back: #1b2b44; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 70rem; margin: 0 auto; padding: 1rem; }
main.wide { max-width: 110rem; }
h1 { font-size: 1.35rem; margin: .5rem 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 0 0 .6rem; }
h3 { font-size: .92rem; margin: 1rem 0 .3rem; color: var(--soft); font-weight: 600; overflow-wrap: anywhere; }
section, .card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .9rem 1rem;
  margin: 0 0 .9rem; min-width: 0; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 6px; padding: .6rem .7rem; margin: .3rem 0;
  font: 12.5px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; overflow: auto;
  max-height: 28rem; unicode-bidi: isolate; tab-size: 4; }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; unicode-bidi: isolate; }
p { margin: .3rem 0; }
a { color: var(--mark); }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .15rem .9rem; margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
ul { margin: .3rem 0; padding-left: 1.1rem; }
ul.conditions { list-style: none; padding: 0; }
ul.conditions li { padding: .15rem 0; overflow-wrap: anywhere; }
.badge { display: inline-block; border-radius: 5px; padding: 0 .5rem; font-weight: 600; background: var(--mark-back);
  color: var(--mark); }
.passed { background: var(--good-back); color: var(--good); }
.failed, .error { background: var(--bad-back); color: var(--bad); }
.soft { color: var(--soft); }
.step { border-left: 4px solid var(--mark); }
.task { border-left: 4px solid var(--soft); }
pre.fault { border-color: var(--bad); }
pre.diff { padding: .4rem 0; white-space: pre; }
pre.diff span { display: block; padding: 0 .7rem; white-space: pre-wrap; unicode-bidi: isolate; }
.minus { background: var(--bad-back); color: var(--bad); }
.plus { background: var(--good-back); color: var(--good); }
.hunk { color: var(--mark); }
.scroll { overflow-x: auto; }
section > h3:first-child { margin-top: 0; }
table { border-collapse: collapse; min-width: min(100%, 36rem); font-size: .87rem; }
th, td { text-align: left; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
  white-space: nowrap; }
td.long { white-space: normal; overflow-wrap: anywhere; min-width: 12rem; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
details summary { cursor: pointer; color: var(--soft); }
.pair { display: grid; grid-template-columns: minmax(0, 1fr); gap: .9rem; align-items: start; margin-bottom: 2.5rem;
  border-top: 3px solid var(--line); padding-top: .9rem; }
.pair > h2 { grid-column: 1 / -1; margin: 0; font-size: 1.15rem; overflow-wrap: anywhere; }
.pair > .judged { order: 1; }
.pair > .told { order: 2; }
@media (min-width: 62rem) {
  .pair { grid-template-columns: minmax(0, 1.25fr) minmax(0, 1fr); }
  .pair > .told { order: 1; }
  .pair > .judged { order: 2; position: sticky; top: .6rem; max-height: calc(100vh - 1.2rem); overflow-y: auto; } }
@media print { pre { max-height: none; } .pair > .judged { position: static; max-height: none; } }
"""

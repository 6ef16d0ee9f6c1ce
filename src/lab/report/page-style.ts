/** The style of the page; figures take their colours from the same variables. */
export const PAGE_STYLE: string = `
:root { --ground: #ffffff; --panel: #f6f7f9; --ink: #16191d; --quiet: #5b6470; --line: #d8dde3; --strong: #0b57d0; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14171b; --panel: #1c2026; --ink: #e8eaed; --quiet: #9aa4b0; --line: #343b44; --strong: #8ab4f8; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 2rem 1.25rem 5rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
nav ol { columns: 3 14rem; padding-left: 1.5rem; font-size: .9rem; } a { color: var(--strong); text-decoration: none; } a:hover { text-decoration: underline; }
.table { overflow-x: auto; margin: 1rem 0; } table { border-collapse: collapse; font-size: .85rem; }
caption { text-align: left; font-weight: 600; padding: .25rem 0; white-space: nowrap; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--quiet); font-weight: 600; } th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.k { white-space: nowrap; } th.n { white-space: normal; min-width: 5rem; }
tbody tr:hover { background: var(--panel); } code { font-size: .85em; background: var(--panel); padding: .1em .3em; border-radius: 3px; overflow-wrap: anywhere; }
figure { margin: 1.25rem 0; } figure svg { max-width: 100%; height: auto; } figcaption { color: var(--quiet); font-size: .85rem; }
section:first-of-type strong { font-size: 1.05em; }
`.trim();

/** The page that both measurements write, each its own part of it. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const PATH = fileURLToPath(new URL("../../docs/several-gateways.md", import.meta.url));

const EMPTY = `# Several gateways before one fleet

All gateways hear every worker's KV events, so all know what is cached. What they do not know by themselves is what the others have
just placed: until a worker's events and load reports tell, each finds the same worker idle. Gateways that share (\`--peer-plane\`) tell
each other of placements, first tokens, growth and ends, best effort; a peer's requests count as load, and its prompts as expected in
caches. [How it is set up](operations.md#several-gateways), [what goes over the wire](reference/planes.md#gateways-among-themselves).

Requests go to gateways at random, as behind a balancer that knows nothing. TTFT is over all requests offered in the window. The tables
are written by \`node --import tsx scripts/several-gateways.mjs\`, with \`--live\` for the second; not edited by hand.

What is found in caches hardly depends on the number of gateways, or on whether they share: events tell all of them. What suffers
without sharing is the tail of TTFT, when two have just chosen the same worker, and that is what sharing mends.

<!-- twin -->
<!-- /twin -->

<!-- live -->
<!-- /live -->
`;

/** Replaces one part of the page and returns its path. */
export function writePart(name, text) {
  const page = existsSync(PATH) ? readFileSync(PATH, "utf8") : EMPTY;
  const part = new RegExp(`<!-- ${name} -->[^]*<!-- /${name} -->`);
  if (!part.test(page)) throw new Error(`${PATH} has no part ${name}`);
  writeFileSync(
    PATH,
    page.replace(part, () => `<!-- ${name} -->\n\n${text.trim()}\n\n<!-- /${name} -->`),
  );
  return PATH;
}

/** Over all requests offered: one that did not complete is +∞. */
export function percentile(latencies, share) {
  const sorted = Float64Array.from(latencies).sort();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

export function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

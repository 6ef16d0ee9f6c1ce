/**
 * Queries of dashboards and alerts against what a running fleet really exposes: every metric and label in them exists, and every
 * panel's query returns data.
 */
import { setTimeout as pause } from "node:timers/promises";
import { dashboardsIn } from "./dashboards.mjs";
import { startLiveFleet } from "./live-fleet.mjs";
import { namesIn } from "./promql.mjs";
import { rulesIn } from "./rules.mjs";

/** Long enough for the first request to end and to be scraped twice, on a busy machine. */
const DATA_MS = 90_000;
const LOOK_MS = 1000;
const ENOUGH_REQUESTS = 20;
/** What Grafana puts in place of its variables. */
const RATE_INTERVAL = "20s";

export async function checkQueries(folder) {
  const panels = dashboardsIn(folder).flatMap(({ name, dashboard }) => panelQueries(name, dashboard));
  const alerts = rulesIn(folder).rules.map(({ alert, expr }) => ({ of: `alert ${alert}`, query: expr, legend: "" }));
  const { prometheusUrl, close } = await startLiveFleet();
  try {
    const problems = await nameProblems(prometheusUrl, [...panels, ...alerts]);
    if (problems.length === 0) problems.push(...(await emptyPanels(prometheusUrl, panels)));
    return { problems, note: `${panels.length} queries of panels, ${alerts.length} of alerts` };
  } finally {
    await close();
  }
}

function panelQueries(name, { panels }) {
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({
      of: `${name}: "${title}"`,
      query: expr.replaceAll("$__rate_interval", RATE_INTERVAL).replaceAll(/\$(policy|worker)\b/g, ".*"),
      legend: legendFormat,
    })),
  );
}

async function nameProblems(url, queries) {
  const used = queries.map(({ of, query, legend }) => ({ of, ...namesIn(query, legend) }));
  const deadlineMs = performance.now() + DATA_MS;
  let enoughSince = Infinity;
  for (;;) {
    const known = await exposed(url);
    if (known.ended >= ENOUGH_REQUESTS) enoughSince = Math.min(enoughSince, known.at);
    const problems = used.flatMap(({ of, metrics, labels }) => [
      ...metrics.filter((name) => !known.metrics.has(name)).map((name) => `${of}: nobody exposes ${name}`),
      ...labels.filter((name) => !known.labels.has(name)).map((name) => `${of}: nothing has the label ${name}`),
    ]);
    // What no program shows after so many requests does not exist. Each is scraped at its own moment within the interval, so the
    // gateway may be seen to have ended them before a worker has been looked at for the first time.
    const done = known.allScrapedAt > enoughSince;
    if (problems.length === 0 || done || performance.now() > deadlineMs) return problems;
    await pause(LOOK_MS);
  }
}

/** Names from the headers too: a counter that has not counted yet is exposed all the same. */
async function exposed(url) {
  // First, so that what it says of each scrape is in the answers that follow.
  const { activeTargets } = await ask(url, "targets?state=active");
  const [names, labels, metadata, ended] = await Promise.all([
    ask(url, "label/__name__/values"),
    ask(url, "labels"),
    ask(url, "metadata"),
    ask(url, "query?query=sum(warmpath_requests_ended_total)"),
  ]);
  const scrapedAt = activeTargets.map(({ health, lastScrape }) => (health === "up" ? Date.parse(lastScrape) : 0));
  return {
    at: Math.max(...scrapedAt),
    allScrapedAt: Math.min(...scrapedAt),
    metrics: new Set([...names, ...Object.entries(metadata).flatMap(seriesOf)]),
    labels: new Set(labels),
    ended: Number(ended.result[0]?.value[1] ?? 0),
  };
}

function seriesOf([name, [{ type }]]) {
  return type === "histogram" ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];
}

async function emptyPanels(url, queries) {
  let empty = queries;
  const deadlineMs = performance.now() + DATA_MS;
  for (;;) {
    const results = await Promise.all(empty.map(({ query }) => hasData(url, query)));
    empty = empty.filter((_, i) => results[i] !== true);
    if (empty.length === 0) return [];
    const wrong = results.filter((result) => typeof result === "string");
    if (wrong.length > 0 || performance.now() > deadlineMs) {
      return empty.map(({ of, query }) => `${of}: no data for ${query} ${wrong.join(" ")}`.trim());
    }
    await pause(LOOK_MS);
  }
}

/** True, false, or what is wrong with the query. A number that is none counts as no data. */
async function hasData(url, query) {
  try {
    const { result } = await ask(url, `query?query=${encodeURIComponent(query)}`);
    return result.length > 0 && result.every(({ value }) => value[1] !== "NaN");
  } catch (error) {
    return error.message;
  }
}

async function ask(url, path) {
  const { status, data, error } = await (await fetch(`${url}/api/v1/${path}`)).json();
  if (status !== "success") throw new Error(error);
  return data;
}

/** Dashboards: Grafana's published types, and what no type says: unique ids, no two panels in one place. */
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { typeProblems } from "./typed.mjs";

/** Every dashboard by its name. */
export function dashboardsIn(folder) {
  const place = join(folder, "deploy", "grafana");
  return readdirSync(place)
    .filter((file) => file.endsWith(".json"))
    .map((file) => ({
      name: basename(file, ".json"),
      dashboard: JSON.parse(readFileSync(join(place, file), "utf8")),
    }));
}

export async function checkDashboards(folder) {
  const dashboards = dashboardsIn(folder);
  const problems = typeProblems(
    dashboards.map(({ name, dashboard }) => ({ name, value: dashboard, type: "Dashboard", from: "@grafana/schema" })),
  );
  // What is no dashboard has no layout.
  if (problems.length > 0) return { problems, note: "" };
  for (const { name, dashboard } of dashboards) problems.push(...layoutProblems(name, dashboard.panels));
  const uids = dashboards.map(({ dashboard }) => dashboard.uid);
  if (new Set(uids).size < uids.length) problems.push("two dashboards have the same uid");
  const count = dashboards.reduce((sum, { dashboard }) => sum + dashboard.panels.length, 0);
  return { problems, note: `${dashboards.length} dashboards, ${count} panels` };
}

function layoutProblems(name, panels) {
  const problems = [];
  for (const [i, panel] of panels.entries()) {
    if (panels.findIndex(({ id }) => id === panel.id) < i) problems.push(`${name}: two panels have id ${panel.id}`);
    const other = panels.slice(0, i).find(({ gridPos }) => overlap(gridPos, panel.gridPos));
    if (other !== undefined) problems.push(`${name}: "${panel.title}" lies on "${other.title}"`);
  }
  return problems;
}

function overlap(a, b) {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

/** Alerts: promtool reads them and runs their tests, and there is an alert that fires and one that does not for each. */
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { prometheusProgram, run, temporaryFolder } from "./tools.mjs";

const TESTS = "alerts.test.yaml";

/** All rules, as the operator's object has them. */
export function rulesIn(folder) {
  const { spec } = parse(readFileSync(join(folder, "deploy", "prometheus", "alerts.yaml"), "utf8"));
  return { spec, rules: spec.groups.flatMap((group) => group.rules) };
}

export async function checkRules(folder) {
  const promtool = prometheusProgram("promtool");
  const source = join(folder, "deploy", "prometheus");
  const place = temporaryFolder();
  const { spec, rules } = rulesIn(folder);
  writeFileSync(join(place, "alerts.rules.yaml"), stringify(spec));
  copyFileSync(join(source, TESTS), join(place, TESTS));
  const problems = [];
  for (const words of [
    ["check", "rules", "alerts.rules.yaml"],
    ["test", "rules", TESTS],
    ["check", "config", join(source, "scrape.yaml")],
  ]) {
    const { ok, output } = run(promtool, words, { cwd: place });
    if (!ok) problems.push(...output.split("\n").filter((line) => line.trim() !== ""));
  }
  const { tests } = parse(readFileSync(join(source, TESTS), "utf8"));
  const expectations = tests.flatMap((test) => test.alert_rule_test);
  for (const { alert } of rules) {
    const own = expectations.filter(({ alertname }) => alertname === alert);
    if (!own.some(({ exp_alerts }) => exp_alerts.length > 0)) problems.push(`no test sees ${alert} fire`);
    if (!own.some(({ exp_alerts }) => exp_alerts.length === 0)) problems.push(`no test sees ${alert} stay quiet`);
  }
  return { problems, note: `${rules.length} alerts, ${expectations.length} tests` };
}

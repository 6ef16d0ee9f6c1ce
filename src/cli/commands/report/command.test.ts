import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import pc from "picocolors";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { requireData } from "../../../../test/support/required-component.ts";
import { parseBaselines } from "../../../lab/results/baselines.ts";
import { runCli } from "../../program.ts";
import type { Terminal } from "../../terminal.ts";
import { sectionOf, tablesOf } from "./markdown-tables.test-support.ts";

interface Said {
  readonly code: number;
  readonly out: string;
  readonly errors: readonly string[];
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "warmpath-report-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

async function warmpath(...words: readonly string[]): Promise<Said> {
  const out: string[] = [];
  const errors: string[] = [];
  const terminal: Terminal = {
    colours: pc.createColors(false),
    debug: false,
    print: (line) => void out.push(line),
    printError: (line) => void errors.push(line),
    readStdin: () => Promise.resolve(""),
  };
  const code = await runCli(words, terminal);
  return { code, out: out.join("\n"), errors };
}

async function reportOf(
  ...words: readonly string[]
): Promise<Said & { readonly markdown: string; readonly folder: string }> {
  const folder = temporaryFolder();
  const said = await warmpath("report", ...words, "--out", folder);
  const files = readdirSync(folder);
  return {
    ...said,
    folder,
    markdown: files.includes("report.md") ? readFileSync(join(folder, "report.md"), "utf8") : "",
  };
}

function expectNoNonsense(markdown: string): void {
  expect(markdown).not.toMatch(/NaN|undefined|\[object|Infinity/);
}

const SMALL = `
name: small
fleet: { model: qwen3-8b, gpu: h100, workers: 2, engine: { profile: vllm }, blockTokens: 64, kvPoolTokens: 40000 }
workload:
  conversations: { starters: 2, starterTokens: [600, 700], outputTokensByTurn: [40], tailShare: 0 }
load: { concurrency: [4, 8] }
arms:
  - { name: rr, policy: round-robin }
  - { name: again, policy: round-robin }
warmUpSeconds: 2
windowSeconds: 15
drainSeconds: 5
snapshots: 2
runs: 2
slo: { ttftMs: 50 }
`;

let pristine = "";

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), "warmpath-report-run-"));
  writeFileSync(join(folder, "experiment.yaml"), SMALL);
  pristine = join(folder, "results");
  const said = await warmpath("run", join(folder, "experiment.yaml"), "--out", pristine, "--threads", "1");
  if (said.code !== 0) throw new Error(said.errors.join("\n"));
}, 60_000);

afterAll(() => rmSync(dirname(pristine), { recursive: true }));

/** The results of the small experiment, in a folder that a test may spoil. */
function smallRun(): string {
  const folder = join(temporaryFolder(), "results");
  cpSync(pristine, folder, { recursive: true });
  return folder;
}

describe("warmpath report on real runs of AIPerf with real 503s", () => {
  test("counts, means, run p50s and the verdict are right", async (context) => {
    const off = dirname(dirname(requireData(context, "aiperf-runs/a100-n2/off/run_1/profile_export_aiperf.json")));
    const { markdown, code, errors, out } = await reportOf(off, join(dirname(off), "on"));
    expect({ code, errors }).toEqual({ code: 0, errors: [] });
    expect(out).toMatch(/on against off: not comparable: completeness traded for latency/);
    expectNoNonsense(markdown);
    const [accounts, refusals] = tablesOf(sectionOf(markdown, "Accounting"));
    expect(accounts.rows.map((row) => [row["Arm"], row["Offered"], row["Completed"], row["Shed"]])).toEqual([
      ["off", "3,000", "3,000", "0"],
      ["on", "3,000", "2,571", "429"],
    ]);
    expect(refusals.rows).toHaveLength(1);
    expect(refusals.rows[0]).toMatchObject({ "HTTP status": "503", Requests: "429" });
    const populations = tablesOf(sectionOf(markdown, "Time to first token")).find(({ title }) =>
      /both populations/.test(title),
    );
    const of = (arm: string, population: string): Record<string, string> | undefined =>
      populations?.rows.find((row) => row["Arm"] === arm && row["Population"] === population);
    expect(of("off", "completed")?.["Mean (ms)"]).toBe("16,946");
    expect(of("on", "completed")?.["Mean (ms)"]).toBe("4,541");
    for (const name of ["p90", "p95", "p99"]) expect(of("on", "offered")?.[name]).toBe("not reached");
    expect(of("on", "offered")?.["p50"]).toBe("1,490–11,183");
    const [runs] = tablesOf(sectionOf(markdown, "Each run"));
    expect(runs.rows.map((row) => row["p50, completed"])).toEqual([
      "10,994",
      "12,337",
      "13,265",
      "5,033",
      "1,490",
      "3,100",
    ]);
    expect(runs.rows.slice(3).map((row) => row["p90, offered"])).toEqual(["not reached", "not reached", "not reached"]);
    expect(sectionOf(markdown, "Verdict")).not.toMatch(/faster/);
    const [summary] = tablesOf(sectionOf(markdown, "Results summary"));
    const gains = summary.rows.filter((row) => /improvement|change|advantage/.test(row["Metric"]));
    expect(new Set(gains.map((row) => row["Value"]))).toEqual(new Set(["–, completeness traded"]));
    const [beside] = tablesOf(sectionOf(markdown, "Time to first token"));
    expect(beside.rows[0]).toMatchObject({ "p50 Δ": "–, completeness traded", "p95 Δ": "–, completeness traded" });
    expect(sectionOf(markdown, "Verdict")).toMatch(/429 of 3,000 requests \(14\.3 %\), all HTTP 503/);
    expect(sectionOf(markdown, "Each run")).toMatch(/the share that did not complete rises with every run/);
    for (const title of [
      "Stationarity: TTFT by arrival",
      "Latency anatomy",
      "Paired: the same request in both arms",
      "Client health",
    ]) {
      expect(sectionOf(markdown, title).trim().split("\n\n").slice(1).join("")).toMatch(
        /^Needs a record of each request[^\n]*$/,
      );
    }
  });

  test("a single run with fewer records than its summary counts is reported from the summary, and says so", async (context) => {
    const folder = dirname(requireData(context, "aiperf-runs/sample-records/profile_export.jsonl"));
    const { markdown, code, errors } = await reportOf(folder);
    expect(code).toBe(0);
    expect(errors).toEqual([expect.stringMatching(/has 10 of 64 requests; tables are of the summary alone/)]);
    expectNoNonsense(markdown);
    expect(markdown).toMatch(/There is one arm, sample-records: nothing to compare it with/);
    const [gpus] = tablesOf(sectionOf(markdown, "What the GPUs did"));
    expect(gpus.rows[0]["Busy, mean"]).toMatch(/^\d+\.\d %$/);
  });

  test("arms, workers and runs are told by folders of other studies too", async (context) => {
    const source = dirname(dirname(requireData(context, "aiperf-runs/a100-n2/off/run_1/profile_export_aiperf.json")));
    const root = temporaryFolder();
    for (const workers of ["N4", "N8"]) {
      for (const [arm, run] of ["off", "on"].flatMap((name) =>
        ["run_1", "run_2", "run_3"].map((number) => [name, number] as const),
      )) {
        const folder = join(root, workers, arm, run);
        mkdirSync(folder, { recursive: true });
        const file = "profile_export_aiperf.json";
        const summary = JSON.parse(readFileSync(join(source, run, file), "utf8")) as Record<
          string,
          Record<string, number>
        >;
        // The arm "on" is slower by half, in every run.
        const factor = arm === "on" ? 1.5 : 1;
        for (const [key, value] of Object.entries(summary["time_to_first_token"])) {
          if (typeof value === "number" && key !== "count") summary["time_to_first_token"][key] = value * factor;
        }
        writeFileSync(join(folder, file), JSON.stringify(summary));
      }
    }
    const { markdown, out } = await reportOf(root);
    expectNoNonsense(markdown);
    expect(out).toMatch(/on against off: worse at 4, 8/);
    const [accounts] = tablesOf(sectionOf(markdown, "Accounting"));
    expect(accounts.rows.map((row) => [row["Workers"], row["Arm"], row["Runs"]])).toEqual([
      ["4", "off", "3"],
      ["4", "on", "3"],
      ["8", "off", "3"],
      ["8", "on", "3"],
    ]);
    expect(sectionOf(markdown, "Accounting")).toMatch(/Every offered request completed, in every arm/);
    expect(sectionOf(markdown, "Scaling and crossover")).toMatch(/No crossover in the tested range/);
  });
});

describe("warmpath report on our own results", () => {
  test("an A/A experiment yields no difference shown", async () => {
    const { markdown, out, code } = await reportOf(smallRun());
    expect(code).toBe(0);
    expect(out).toMatch(
      /again against rr: no difference shown at 4, 8\. Both arms have the same settings: this is an A\/A comparison/,
    );
    expectNoNonsense(markdown);
    expect(sectionOf(markdown, "Noise floor")).toMatch(/A\/A: again and rr have the same settings/);
  });

  test("says the same of a trace without chance, however often it is repeated", async () => {
    const folder = temporaryFolder();
    const rows = Array.from({ length: 120 }, (_, at) =>
      JSON.stringify({
        timestamp: 300 * Math.floor(at / 3),
        input_length: 1000,
        output_length: 40,
        hash_ids: [at % 7, 100 + at],
      }),
    );
    writeFileSync(join(folder, "trace.jsonl"), `${rows.join("\n")}\n`);
    const traced = SMALL.replace(/workload:\n.*\n/, "workload:\n  trace: { files: [trace.jsonl] }\n")
      .replace("concurrency: [4, 8]", "speed: [1]")
      .replace("{ name: again, policy: round-robin }", "{ name: kv, policy: kv-cost }")
      .replace(/warmUpSeconds.*\nwindowSeconds.*\n/, "");
    writeFileSync(join(folder, "experiment.yaml"), traced);
    const said = await Promise.all(
      ["1", "6"].map(async (runs) => {
        const out = join(folder, `of-${runs}`);
        await warmpath("run", join(folder, "experiment.yaml"), "--out", out, "--threads", "1", "--runs", runs);
        const halves = ["rr", "kv"].map((arm) => join(folder, `${arm}-${runs}`));
        for (const half of halves) {
          const arm = half.slice(folder.length + 1, -2);
          await warmpath("run", join(folder, "experiment.yaml"), "--out", half, "--runs", runs, "--arms", arm);
        }
        return { ...(await reportOf(out)), compared: await warmpath("compare", ...halves, "--json") };
      }),
    );
    const [once, often] = said.map(({ markdown }) => markdown);
    for (const title of ["Verdict", "Accounting", "Paired: the same request in both arms"])
      expect(sectionOf(often, title)).toBe(sectionOf(once, title));
    const line = /^(- )?of-6: runs 2 to 6 repeat run 1 exactly and are counted once$/m;
    expect(said[1].errors.join("\n")).toMatch(line);
    expect(sectionOf(often, "What could not be used")).toMatch(line);
    const levels = said.map(
      ({ compared }) => (JSON.parse(compared.out) as { arms: { levels: object[] }[] }).arms[0].levels,
    );
    expect(levels[0]).toHaveLength(1);
    expect(levels[1]).toEqual(levels[0]);
  });

  test("writes a page, a table of the sweep, baselines and AIPerf's files, which can be reported again", async () => {
    const results = smallRun();
    const baselines = join(temporaryFolder(), "baselines.json");
    const { folder, markdown } = await reportOf(results, "--baselines", baselines, "--aiperf");
    const html = readFileSync(join(folder, "report.html"), "utf8");
    expect(html).toMatch(/prefers-color-scheme:\s?dark/);
    expect(html).not.toMatch(/(?:src|href)="(?:http|\/)/);
    for (const name of readdirSync(join(folder, "figures")))
      expect(readFileSync(join(folder, "figures", name), "utf8")).not.toMatch(/NaN|undefined/);
    const tsv = readdirSync(folder).find((name) => /^benchmark-sweep-\d{8}-\d{6}\.tsv$/.test(name)) ?? "";
    const lines = readFileSync(join(folder, tsv), "utf8").trim().split("\n");
    expect(lines[0].split("\t").slice(0, 8)).toEqual([
      "mode",
      "concurrency",
      "snapshot",
      "p50",
      "p95",
      "hit_rate",
      "rps",
      "tokens_per_s",
    ]);
    expect(lines).toHaveLength(1 + 2 * 2 * 2 * 2);
    const { content, problems } = parseBaselines(readFileSync(baselines, "utf8"), baselines);
    expect(problems).toEqual([]);
    expect(content?.points.map(({ arm, level }) => [arm, level.concurrency])).toEqual([
      ["rr", 4],
      ["rr", 8],
      ["again", 4],
      ["again", 8],
    ]);
    const again = await reportOf(join(folder, "aiperf"));
    expect(again.errors).toEqual([]);
    expectNoNonsense(again.markdown);
    const completed = (text: string): string[] =>
      tablesOf(sectionOf(text, "Accounting"))[0].rows.map((row) => row["Completed"]);
    expect(completed(again.markdown)).toEqual(completed(markdown));
    const p50 = (text: string): string[] =>
      (
        tablesOf(sectionOf(text, "Time to first token")).find(({ title }) => /both populations/.test(title))?.rows ?? []
      ).map((row) => row["p50"]);
    expect(p50(again.markdown)).toEqual(p50(markdown));
  });
});

describe("bad input is said in one line and the rest is reported", () => {
  test("a truncated results file, a foreign one and a missing folder", async () => {
    const good = smallRun();
    const truncated = join(temporaryFolder(), "cut");
    cpSync(good, truncated, { recursive: true });
    truncateSync(join(truncated, "results.json"), 500);
    const foreign = join(temporaryFolder(), "foreign");
    mkdirSync(foreign);
    writeFileSync(join(foreign, "results.json"), '{"rows":[]}');
    const { code, errors, markdown } = await reportOf(good, truncated, foreign, join(foreign, "nowhere"));
    expect(code).toBe(0);
    expect(errors).toEqual([
      expect.stringMatching(/nowhere: cannot be read \(ENOENT\)/),
      expect.stringMatching(/cut\/results\.json: is not complete JSON/),
      expect.stringMatching(/foreign\/results\.json: is not a results file of Warmpath/),
    ]);
    expect(sectionOf(markdown, "What could not be used").match(/^- /gm)).toHaveLength(3);
    expectNoNonsense(markdown);
    expect(markdown).toMatch(/again against rr: no difference shown/);
  });

  test("a run that is not finished: what is missing is not taken for what nobody asked for", async () => {
    const results = smallRun();
    const [file, provenance] = [join(results, "results.json"), join(results, "provenance.json")];
    const written = JSON.parse(readFileSync(file, "utf8")) as { cells: { arm: string }[] };
    const cells = written.cells.filter(({ arm }) => arm === "rr");
    writeFileSync(file, JSON.stringify({ ...written, cells }));
    const known = JSON.parse(readFileSync(provenance, "utf8")) as object;
    writeFileSync(provenance, JSON.stringify({ ...known, finishedAt: null }));
    const { errors, markdown } = await reportOf(results);
    expect(errors).toEqual([`${results}: the run is not finished: it has 4 cells so far, and none of again`]);
    expect(sectionOf(markdown, "What could not be used")).toContain("it has 4 cells so far, and none of again");
  });

  test("records that break off: tables come from the results, and sections that need records say so", async () => {
    const results = smallRun();
    truncateSync(join(results, "records.jsonl.gz"), 2000);
    const { code, errors, markdown } = await reportOf(results);
    expect(code).toBe(0);
    expect(errors).toEqual([expect.stringMatching(/records\.jsonl\.gz: cannot be read after line \d+/)]);
    expectNoNonsense(markdown);
    expect(sectionOf(markdown, "Paired: the same request in both arms")).toMatch(/Needs a record of each request/);
    expect(tablesOf(sectionOf(markdown, "Accounting"))[0].rows).toHaveLength(4);
  });

  test("an arm without a completed request, an arm that is missing at a level, and another schema", async () => {
    const results = smallRun();
    const path = join(results, "results.json");
    const file = JSON.parse(readFileSync(path, "utf8")) as { cells: Record<string, unknown>[] };
    const nothing = (n: number): object => ({
      n,
      mean: null,
      p50: null,
      p90: null,
      p95: null,
      p99: null,
      states: { mean: "not-reached", p50: "not-reached", p90: "not-reached", p95: "not-reached", p99: "not-reached" },
    });
    const none = {
      n: 0,
      ...Object.fromEntries(["mean", "p50", "p90", "p95", "p99"].map((name) => [name, null])),
      states: Object.fromEntries(["mean", "p50", "p90", "p95", "p99"].map((name) => [name, "too-few"])),
    };
    file.cells = file.cells
      .filter(({ arm, level }) => !(arm === "again" && (level as { concurrency: number }).concurrency === 4))
      .map((cell) => {
        if (cell["arm"] !== "again") return cell;
        const { offered } = cell["accounting"] as { offered: number };
        const empty = { completed: none, offered: nothing(offered) };
        const accounting = {
          offered,
          completed: 0,
          shed: offered,
          rejected: 0,
          failed: 0,
          timedOut: 0,
          cancelled: 0,
          unfinished: 0,
        };
        return {
          ...cell,
          accounting,
          ttftMs: empty,
          tpotMs: empty,
          itlMs: empty,
          e2eMs: empty,
          outputTokensMean: null,
          goodputShare: 0,
        };
      });
    writeFileSync(path, JSON.stringify(file));
    rmSync(join(results, "records.jsonl.gz"));
    const newer = join(temporaryFolder(), "newer");
    mkdirSync(newer);
    writeFileSync(join(newer, "results.json"), '{"schemaVersion":99,"cells":[]}');
    const { markdown, errors, code } = await reportOf(results, newer);
    expect(code).toBe(0);
    expect(errors).toEqual([expect.stringMatching(/has schemaVersion 99, and this version of Warmpath reads up to 1/)]);
    expectNoNonsense(markdown);
    expect(sectionOf(markdown, "Verdict")).toMatch(/again against rr: not comparable/);
    expect(sectionOf(markdown, "Verdict")).toMatch(/again completed none of its \d+ requests/);
    expect(sectionOf(markdown, "Verdict")).toMatch(/again has no results at 4 conversations, 2 workers/);
  });

  test.each([
    ["a folder that is a file", ["--out", "FILE"], /--out .*results\.json: cannot be written \(EEXIST\)$/],
    ["a folder below a file", ["--out", "FILE/x"], /: cannot be written \(ENOTDIR\)$/],
    ["baselines below a file", ["--baselines", "FILE/x"], /--baselines .*x: cannot be written \((EEXIST|ENOTDIR)\)$/],
    ["baselines that are a folder", ["--baselines", "FOLDER"], /--baselines .*: cannot be written \(EISDIR\)$/],
  ])("ends with one line and exit code 2 for %s", async (_, words, complaint) => {
    const folder = smallRun();
    const places = words.map((word) => word.replace("FILE", join(folder, "results.json")).replace("FOLDER", folder));
    const { code, errors } = await warmpath("report", folder, "--out", join(folder, "report"), ...places);
    expect({ code, lines: errors.length }).toEqual({ code: 2, lines: 1 });
    expect(errors[0]).toMatch(complaint);
  });

  test("nothing to report, or options that mean nothing, is a usage error", async () => {
    const empty = temporaryFolder();
    expect(await reportOf(empty)).toMatchObject({
      code: 2,
      errors: [expect.stringMatching(/has neither results\.json nor/)],
    });
    expect(await reportOf(empty, "--slo", "ttft=fast")).toMatchObject({
      code: 2,
      errors: [expect.stringMatching(/--slo must be/)],
    });
    expect(await reportOf(empty, "--slo", "ttft=600,ttft=5")).toMatchObject({
      code: 2,
      errors: [expect.stringMatching(/--slo must have each limit once, got "ttft=600,ttft=5"/)],
    });
    expect(await reportOf(empty, "--format", "pdf")).toMatchObject({
      code: 2,
      errors: [expect.stringMatching(/--format must be/)],
    });
    const results = smallRun();
    expect(await reportOf(results, "--baseline", "kv")).toMatchObject({
      code: 2,
      errors: [expect.stringMatching(/there is no arm "kv"; there are rr, again/)],
    });
  });
});

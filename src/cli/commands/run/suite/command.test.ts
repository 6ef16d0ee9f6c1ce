import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pc from "picocolors";
import { describe, expect, onTestFinished, test } from "vitest";
import { runCli } from "../../../program.ts";

const SUITE = `
suite: tiny
seed: 3
loads: [0.5, 1.2]
workers: [2, 3]
parts: 2
full: &size { loads: [0.5, 1.2], workers: [2, 3], keep: 1, perturbedEach: 1, runs: 2, requests: 60 }
quick: { <<: *size, loads: [0.5] }
fleets:
  small:
    model: qwen3-8b
    gpu: h100
    workers: 2
    engine: { profile: vllm, maxSequences: 16 }
    blockTokens: 64
    kvPoolTokens: 40000
workloads:
  - name: groups
    fleet: small
    workload:
      prefixGroups: { groups: 4, prefixTokens: [640, 1280], suffixTokens: [10, 90], outputTokens: [5, 25] }
    slo: { ttftMs: 200 }
  - name: talks
    fleet: small
    workload:
      conversations: { starters: 2, starterTokens: [600, 700], outputTokensByTurn: [30], tailShare: 0 }
    sessionSeconds: 3
  - name: replay
    fleet: small
    workload:
      trace: { files: [trace.jsonl], blockTokens: 64 }
perturbations:
  - { name: all-at-once, routers: 2, kvPool: 0.8, prefillSpeed: 0.85, firstWorkerSpeed: 0.6, kvEventDelayMs: 200, kvEventLossShare: 0.01, speedPriorFactor: 2 }
perturbedShare: 0.2
tuning:
  cells: 2
  runs: 2
  requests: 40
  settings: 3
  finalists: 1
  rivals:
    - { policy: prefix-score, grids: [{ prefix_weight: [1, 4], kv_weight: [0, 2] }] }
`;
const TRACE = Array.from({ length: 120 }, (_, at) =>
  JSON.stringify({ timestamp: at * 50, input_length: 320, output_length: 10, hash_ids: [at % 5, 9, 8, 7, 100 + at] }),
).join("\n");
const POLICIES = ["--policies", "product,prefix-score", "--candidate", "product"];

interface Said {
  readonly code: number;
  readonly out: string;
  readonly errors: readonly string[];
}

function suiteFolder({ withTrace = true, content = SUITE } = {}): string {
  const folder = mkdtempSync(join(tmpdir(), "warmpath-suite-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "suite.yaml"), content);
  if (withTrace) writeFileSync(join(folder, "trace.jsonl"), `${TRACE}\n`);
  return folder;
}

async function run(folder: string, ...words: readonly string[]): Promise<Said> {
  const out: string[] = [];
  const errors: string[] = [];
  const code = await runCli(["run", join(folder, "suite.yaml"), "--out", join(folder, "out"), ...words], {
    colours: pc.createColors(false),
    debug: false,
    print: (line) => void out.push(line),
    printError: (line) => void errors.push(line),
    readStdin: () => Promise.resolve(""),
  });
  return { code, out: out.join("\n"), errors };
}

interface SuiteJson {
  readonly candidate: string;
  readonly cellsFinished: number;
  readonly skipped: readonly string[];
  readonly league: readonly { name: string; overallRegret: number }[];
  readonly cells: readonly {
    id: string;
    saturationRps: number;
    offeredRps: number;
    perturbation?: { name: string };
    arms: readonly {
      arm: string;
      offered: number;
      completed: number;
      ttftP95Ms: number;
      regret: { ttftP95Ms: number };
    }[];
  }[];
}

const journalOf = (folder: string): string => readFileSync(join(folder, "out", "finished.jsonl"), "utf8");

describe("warmpath run of a suite", () => {
  test("runs every arm in every cell and writes the league and the regrets", async () => {
    const folder = suiteFolder();
    const { code, out, errors } = await run(folder, ...POLICIES);
    expect({ code, errors }).toEqual({ code: 0, errors: [] });
    expect(out).toMatch(/^7 cells \(1 perturbed\) x 3 arms x 2 runs/m);
    expect(out).toMatch(/^product is worse than round-robin in \d on p95 TTFT and \d on mean E2E of 7 cells/m);
    const suite = JSON.parse(readFileSync(join(folder, "out", "suite.json"), "utf8")) as SuiteJson;
    expect(suite.cells.map(({ id }) => id.split("/")[0])).toEqual(
      expect.arrayContaining(["groups", "talks", "replay"]),
    );
    for (const { id, arms, saturationRps, offeredRps } of suite.cells) {
      expect(arms.map(({ arm }) => arm)).toEqual(["round-robin", "product", "prefix-score"]);
      expect(offeredRps / saturationRps).toBeCloseTo(id.includes("load-0.5") ? 0.5 : 1.2, 9);
      expect(Math.min(...arms.map(({ regret }) => regret.ttftP95Ms))).toBe(0);
      for (const { offered, completed } of arms) expect({ id, completed }).toEqual({ id, completed: offered });
    }
    const league = readFileSync(join(folder, "out", "league.md"), "utf8");
    expect(league).toMatch(/^## product by perturbation$/m);
    expect(league).toMatch(/^\| all-at-once \| 1 \|/m);
    expect(readFileSync(join(folder, "out", "regret.md"), "utf8")).toMatch(/^## goodput$/m);
  });

  test("judges behind another admission, or without KV events, by results of its own", async () => {
    const folder = suiteFolder();
    const asked = ["--only", "groups/load-1.2", "--policies", "product", "--candidate", "product"];
    await run(folder, ...asked);
    const before = journalOf(folder).trimEnd().split("\n");
    const { code, out } = await run(folder, ...asked, "--admission", "shed");
    expect(code).toBe(0);
    expect(out).toMatch(/admission shed/);
    expect(JSON.parse(readFileSync(join(folder, "out", "suite.json"), "utf8"))).toMatchObject({ admission: "shed" });
    const arms = before.filter((line) => !line.includes("saturation of")).length;
    expect(journalOf(folder).trimEnd().split("\n")).toHaveLength(before.length + arms);
    expect((await run(folder, ...asked, "--without-kv-events")).out).toMatch(/runs, no KV events, kept/);
    expect(JSON.parse(readFileSync(join(folder, "out", "suite.json"), "utf8"))).toMatchObject({ kvEvents: false });
    expect(journalOf(folder).trimEnd().split("\n")).toHaveLength(before.length + 2 * arms);
    const wrong = await run(folder, ...asked, "--admission", "none");
    expect(wrong.code).toBe(2);
    expect(wrong.errors).toEqual([expect.stringMatching(/--admission must be queue, shed, engine, got "none"/)]);
  });

  test.each([["--admission", "queue"], ["--without-kv-events"]])(
    "does not tune under other conditions: %s",
    async (...flags) => {
      const folder = suiteFolder();
      const { code, errors } = await run(folder, "--tune", ...flags);
      expect({ code, errors }).toEqual({ code: 2, errors: [expect.stringMatching(/do not go with --tune/)] });
      expect(existsSync(join(folder, "tuned-rivals.yaml"))).toBe(false);
    },
  );

  test("refuses to tune a suite that does not say how", async () => {
    const folder = suiteFolder({ content: SUITE.slice(0, SUITE.indexOf("tuning:")) });
    const { code, errors } = await run(folder, "--tune");
    expect(code).toBe(2);
    expect(errors).toEqual([expect.stringMatching(/suite\.yaml does not say how rivals are tuned: it has no tuning$/)]);
  });

  test("goes on where it was stopped, and gives the same tables as without a stop", async () => {
    const folder = suiteFolder();
    await run(folder, ...POLICIES);
    const whole = readFileSync(join(folder, "out", "suite.json"), "utf8");
    const lines = journalOf(folder).trimEnd().split("\n");
    // As a kill would leave it: some lines are missing, the last one is cut.
    const kept = lines.slice(0, 12);
    writeFileSync(join(folder, "out", "finished.jsonl"), `${kept.join("\n")}\n${lines[12].slice(0, 40)}`);
    await run(folder, ...POLICIES);
    const after = journalOf(folder).split("\n");
    expect(after.slice(0, 12)).toEqual(kept);
    expect(after.filter((line) => line.endsWith("}"))).toHaveLength(lines.length);
    expect(readFileSync(join(folder, "out", "suite.json"), "utf8")).toBe(whole);
    await run(folder, ...POLICIES);
    expect(journalOf(folder).split("\n")).toEqual(after);
  });

  test("runs a part of the cells, other knobs and further arms, and prints JSON for machines", async () => {
    const folder = suiteFolder();
    const { out } = await run(
      folder,
      ...POLICIES,
      "--quick",
      "--json",
      "--only=groups",
      "--set=prefix-score.kv_weight=0",
      "--also=prefix-score.prefix_weight=9",
    );
    const { cells, league, candidate, cellsFinished } = JSON.parse(out) as SuiteJson;
    expect({ candidate, cellsFinished }).toEqual({ candidate: "product", cellsFinished: cells.length });
    for (const { id } of cells) expect(id).toMatch(/^groups\/load-0\.5\//);
    expect(league).toMatchObject([
      { name: "round-robin" },
      { name: "product" },
      { name: "prefix-score", parameters: { kv_weight: 0 } },
      { name: "prefix-score prefix_weight=9", parameters: { prefix_weight: 9 } },
    ] as object[]);
  });

  test("names a workload whose trace is not there, and leaves it out", async () => {
    const { code, out } = await run(suiteFolder({ withTrace: false }), "--quick", ...POLICIES);
    expect(code).toBe(0);
    expect(out).toMatch(/^left out: replay: trace\.jsonl is neither beside/m);
    expect(out).not.toMatch(/^replay/m);
  });

  test("searches rivals for their best setting, which is then an arm of its own", async () => {
    const folder = suiteFolder();
    const tuning = await run(folder, "--tune");
    expect(tuning).toMatchObject({ code: 0, errors: [] });
    const written = readFileSync(join(folder, "tuned-rivals.yaml"), "utf8");
    expect(written).toMatch(/^ {2}- policy: prefix-score$/m);
    const { score, defaultScore } =
      /score: (?<score>\S+)\n.*defaultScore: (?<defaultScore>\S+)/.exec(written)?.groups ?? {};
    expect(Number(score)).toBeLessThanOrEqual(Number(defaultScore));
    const { out } = await run(folder, "--quick", "--only", "groups", "--json", ...POLICIES);
    const { league } = JSON.parse(out) as SuiteJson;
    expect(league.map(({ name }) => name)).toContain("prefix-score (tuned)");
  });

  test.each([
    ["an unknown policy", ["--policies", "none"], /"none" is not in the suite/],
    ["no cell at all", ["--only", "none"], /no cell of the suite has none/],
    ["an option of experiments", ["--levels", "3"], /--levels has no effect: .*suite\.yaml is a suite$/],
  ])("ends with one line and exit code 2 for %s", async (_, words, complaint) => {
    const folder = suiteFolder();
    const { code, errors } = await run(folder, ...words);
    expect({ code, lines: errors.length }).toEqual({ code: 2, lines: 1 });
    expect(errors[0]).toMatch(complaint);
    expect(existsSync(join(folder, "out", "suite.json"))).toBe(false);
  });

  test("refuses cells that could not run before it runs any", async () => {
    const large = SUITE.replace("blockTokens: 64", "blockTokens: 1")
      .replace("kvPoolTokens: 40000", "kvPoolTokens: 300000")
      .replaceAll("workers: [2, 3]", "workers: [2, 2000]");
    const folder = suiteFolder({ content: large });
    const { code, errors } = await run(folder, ...POLICIES);
    expect(code).toBe(2);
    expect(errors).toEqual([
      expect.stringMatching(/^warmpath run: groups\/load-[\d.]+\/workers-2000: fleet: 2000 workers with pools of/),
    ]);
    expect(existsSync(join(folder, "out"))).toBe(false);
  });

  test.each([
    ["suite.json", '{"suite":"other"}', /has the results of another suite, other; name another folder$/],
    ["suite.json", "mine", /has a suite\.json that no suite has written; name another folder$/],
    ["league.md", "# Football", /has a league\.md that no suite has written; name another folder$/],
    ["finished.jsonl", '{"done":1}\n', /has a finished\.jsonl that no suite has written; name another folder$/],
  ])("refuses a folder with %s of somebody else", async (name, content, complaint) => {
    const folder = suiteFolder();
    mkdirSync(join(folder, "out"));
    writeFileSync(join(folder, "out", name), content);
    const { code, errors } = await run(folder, "--quick", ...POLICIES);
    expect(code).toBe(2);
    expect(errors.at(-1)).toMatch(complaint);
    expect(readFileSync(join(folder, "out", name), "utf8")).toBe(content);
  });

  test("refuses a file with a mistake, and suite options for an experiment", async () => {
    const wrong = await run(suiteFolder({ content: SUITE.replace("fleet: small", "fleet: large") }));
    expect(wrong.errors.at(-1)).toMatch(/workloads\[0\]\.fleet is not one of the fleets/);
    const experiment = await runCli(["run", "h200-sweep", "--quick"], {
      colours: pc.createColors(false),
      debug: false,
      print: () => {},
      printError: (line) => expect(line).toMatch(/--quick has no effect: h200-sweep is not a suite$/),
      readStdin: () => Promise.resolve(""),
    });
    expect(experiment).toBe(2);
  });
});

import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import pc from "picocolors";
import { describe, expect, onTestFinished, test } from "vitest";
import { cellsOf } from "../../../lab/experiment/cells.ts";
import { readPublished } from "../../../lab/experiment/published.ts";
import type { CellResult } from "../../../lab/results/types.ts";
import { readRecords } from "../../../lab/results/records-file.ts";
import { readProvenance, readResults } from "../../../lab/results/store.ts";
import { runCli } from "../../program.ts";
import type { Terminal } from "../../terminal.ts";
import { presetNames, readExperimentFile } from "./experiment-file.ts";

const EXPERIMENT = `
name: small
fleet:
  model: qwen3-8b
  gpu: h100
  workers: 2
  engine: { profile: vllm }
  blockTokens: 64
  kvPoolTokens: 40000
workload:
  conversations: { starters: 2, starterTokens: [600, 700], outputTokensByTurn: [40], tailShare: 0 }
load:
  concurrency: [4, 8]
arms:
  - { name: rr, policy: round-robin }
  - { name: kv, policy: kv-cost }
warmUpSeconds: 2
windowSeconds: 10
drainSeconds: 5
`;
const TRACE = Array.from({ length: 60 }, (_, at) =>
  JSON.stringify({ timestamp: at * 100, input_length: 1000, output_length: 20, hash_ids: [at % 5, 100 + at] }),
).join("\n");

const FILE = fileURLToPath(import.meta.url);

interface Said {
  readonly code: number;
  readonly out: string;
  readonly errors: readonly string[];
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "warmpath-run-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

function fileOf(content: string, folder: string = temporaryFolder()): string {
  const path = join(folder, "experiment.yaml");
  writeFileSync(path, content);
  return path;
}

function terminalOf(out: string[], errors: string[]): Terminal {
  return {
    colours: pc.createColors(false),
    debug: false,
    print: (line) => void out.push(line),
    printError: (line) => void errors.push(line),
    readStdin: () => Promise.resolve(""),
  };
}

async function run(...words: readonly string[]): Promise<Said> {
  const out: string[] = [];
  const errors: string[] = [];
  const code = await runCli(["run", ...words], terminalOf(out, errors));
  return { code, out: out.join("\n"), errors };
}

describe("warmpath run", () => {
  test("prints a line for every arm and level", async () => {
    const { code, out, errors } = await run(fileOf(EXPERIMENT));
    expect({ code, errors }).toEqual({ code: 0, errors: [] });
    expect(out).toMatch(/^rr +4 conv on 2 +\d/m);
    expect(out).toMatch(/^kv +8 conv on 2 +\d/m);
    expect(out).toMatch(/^4 cells, \d+ requests in the windows, .* nothing was written/m);
  });

  test("writes equal bytes for equal seeds, and others for another seed", async () => {
    const folder = temporaryFolder();
    const file = fileOf(EXPERIMENT, folder);
    const outs = ["a", "b", "c"].map((name) => join(folder, name));
    await run(file, "--out", outs[0]);
    await run(file, "--out", outs[1]);
    await run(fileOf(`${EXPERIMENT}seed: 2\n`), "--out", outs[2]);
    const [first, second, other] = outs.map((out) => readFileSync(join(out, "results.json"), "utf8"));
    expect(second).toBe(first);
    expect(other).not.toBe(first);
    const { content, problems } = await readResults(outs[0]);
    expect(problems).toEqual([]);
    expect(content?.cells.map(({ id }) => id)).toEqual([
      "rr/concurrency-4-workers-2/run-1",
      "rr/concurrency-8-workers-2/run-1",
      "kv/concurrency-4-workers-2/run-1",
      "kv/concurrency-8-workers-2/run-1",
    ]);
    const cellsWithRecords = new Set<string>();
    for await (const { cell } of readRecords(join(outs[0], "records.jsonl.gz"))) cellsWithRecords.add(cell);
    expect(cellsWithRecords.size).toBe(4);
  });

  test("writes AIPerf's files of every cell if asked, and leaves none of an earlier run behind", async () => {
    const folder = temporaryFolder();
    const experiment = fileOf(EXPERIMENT, folder);
    const out = join(folder, "results");
    const narrow = ["--levels", "4", "--runs", "1"];
    const { code, errors } = await run(experiment, "--out", out, "--aiperf", ...narrow);
    expect({ code, errors }).toEqual({ code: 0, errors: [] });
    const { content } = await readResults(out);
    for (const { arm, accounting } of content?.cells ?? []) {
      const cell = join(out, "aiperf", arm, "concurrency-4-workers-2", "run-1");
      const summary = JSON.parse(readFileSync(join(cell, "profile_export_aiperf.json"), "utf8")) as {
        request_count: { avg: number };
      };
      expect(summary.request_count.avg).toBe(accounting.completed);
      const lines = readFileSync(join(cell, "profile_export.jsonl"), "utf8").trim().split("\n");
      expect(lines.length).toBeGreaterThanOrEqual(accounting.offered);
      expect(readFileSync(join(cell, "profile_export_aiperf.csv"), "utf8")).toContain("Time to First Token");
    }
    expect(content?.cells).toHaveLength(2);
    await run(experiment, "--out", out, "--fresh", ...narrow);
    expect(existsSync(join(out, "aiperf"))).toBe(false);
    const refused = await run(experiment, "--aiperf");
    expect(refused.code).toBe(2);
    expect(refused.errors.join()).toContain("--aiperf has no effect: nothing is written without --out");
  });

  test("notes the command that repeats it, also with a blank in a name and options in front", async () => {
    const out = join(temporaryFolder(), "my results");
    const file = fileOf(EXPERIMENT);
    expect(await run("--levels", "4", "--arms", "rr", file, "--out", out)).toMatchObject({ code: 0 });
    const { content } = await readProvenance(out);
    expect(content?.command).toBe(`warmpath run --levels 4 --arms rr ${file} --out '${out}'`);
  });

  test("writes a window that has the last request of a schedule in it", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "trace.jsonl"), TRACE);
    const schedule = EXPERIMENT.replace(/conversations: .*/, "trace: { files: [trace.jsonl], blockTokens: 512 }")
      .replace("concurrency: [4, 8]", "speed: [7]")
      .replace("warmUpSeconds: 2\nwindowSeconds: 10\n", "");
    const out = join(folder, "out");
    expect(await run(fileOf(schedule, folder), "--arms", "rr", "--out", out)).toMatchObject({ code: 0 });
    const { content } = await readResults(out);
    const { startSeconds = 0, endSeconds = 0 } = content?.cells[0].window ?? {};
    let found = 0;
    for await (const { record } of readRecords(join(out, "records.jsonl.gz"))) {
      if (record.intendedNs >= startSeconds * 1e9 && record.intendedNs < endSeconds * 1e9) found += 1;
    }
    expect({ found, offered: content?.cells[0].accounting.offered }).toEqual({ found: 60, offered: 60 });
  });

  test("can be narrowed, and prints JSON for machines", async () => {
    const { out } = await run(fileOf(EXPERIMENT), "--arms", "kv", "--levels", "8", "--runs", "2", "--json");
    const { cellsFinished, cells } = JSON.parse(out) as {
      cellsFinished: number;
      cells: { arm: string; run: number }[];
    };
    expect(cellsFinished).toBe(2);
    expect(cells).toMatchObject([
      { arm: "kv", run: 1, accounting: { unfinished: 0 } },
      { arm: "kv", run: 2 },
    ] as object[]);
  });

  test("replays a trace beside its file and says where it comes from", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "trace.jsonl"), `${TRACE}\n`);
    const traced = EXPERIMENT.replace(
      /workload:\n.*\n/,
      "workload:\n  trace: { files: [missing.jsonl, trace.jsonl] }\n",
    )
      .replace("concurrency: [4, 8]", "speed: [1]")
      .replace(/warmUpSeconds.*\nwindowSeconds.*\n/, "");
    const { code, out, errors } = await run(fileOf(traced, folder));
    expect({ code, errors }).toEqual({ code: 0, errors: [] });
    expect(out).toMatch(/^trace: trace\.jsonl sha256:[0-9a-f]{12} \(60 rows\)/m);
    expect(out).toMatch(/^kv +1x on 2 +60 +60 +0 /m);
    expect(out).not.toContain("repetitions");
    const again = await run(fileOf(traced, folder), "--runs", "3");
    expect(again.out).toMatch(
      /^repetitions did not differ, .*: runs 2 and 3 repeat run 1 exactly and are counted once$/m,
    );
  });

  test.each(["poisson", "constant", "gamma, gammaShape: 0.5", "burst, burstSize: 4"])(
    "offers prefix groups in an open loop with arrivals of the kind %s",
    async (arrivals) => {
      const groups = "{ groups: 3, prefixTokens: [640, 640], suffixTokens: [10, 20], outputTokens: [5, 9] }";
      const open = EXPERIMENT.replace(/workload:\n.*\n/, `workload:\n  prefixGroups: ${groups}\n`).replace(
        "  concurrency: [4, 8]",
        `  rateRps: [20]\n  arrivals: ${arrivals.replace(", ", "\n  ")}`,
      );
      const { out } = await run(fileOf(open), "--arms", "kv", "--json");
      const [cell] = (JSON.parse(out) as { cells: CellResult[] }).cells;
      expect(cell.level).toEqual({ rateRps: 20, workers: 2 });
      expect(cell.accounting.completed).toBe(cell.accounting.offered);
      expect(Math.abs(cell.offeredPerSecond - 20)).toBeLessThan(8);
      expect(cell.cache.observed).toBeGreaterThan(0.8);
    },
  );

  test("accounts for requests that are larger than the KV pool", async () => {
    const tailed = EXPERIMENT.replace("tailShare: 0", "tailShare: 0.3, tailTokens: [3000, 3000]");
    const { out } = await run(
      fileOf(tailed.replace("PoolTokens: 40000", "PoolTokens: 3000")),
      "--json",
      "--levels",
      "4",
    );
    const { cells } = JSON.parse(out) as { cells: { accounting: Record<string, number> }[] };
    for (const { accounting } of cells) {
      const { offered, ...accounts } = accounting;
      expect(Object.values(accounts).reduce((sum, count) => sum + count, 0)).toBe(offered);
      expect(accounts["rejected"]).toBeGreaterThan(0);
    }
  });

  test("runs with a draft model, late and lossy signals, and a queue in the router", async () => {
    const demanding = EXPERIMENT.replace(
      "  kvPoolTokens: 40000",
      "  kvPoolTokens: 40000\n  speculation: { model: llama-3.1-8b, weights: bf16, kv: bf16 }",
    )
      .replace(
        "policy: kv-cost }",
        "policy: kv-cost, admission: { mode: queue, watermarks: { batchSlotsFraction: 0.002 } } }",
      )
      .concat("signals: { kvEvents: { delayMs: 50, batchMs: 20, lossShare: 0.1 }, ended: { delayMs: 20 } }\n");
    const { code, out } = await run(fileOf(demanding), "--arms", "kv", "--levels", "8", "--json");
    expect(code).toBe(0);
    const [cell] = (JSON.parse(out) as { cells: CellResult[] }).cells;
    expect(cell.accounting.completed).toBeGreaterThan(0);
    for (const { draftAcceptance, inFlightMax } of cell.workers) {
      expect(draftAcceptance).toBeGreaterThan(0.3);
      // Two of the 1,024 slots are 0.2 %: a third request waits in the router.
      expect(inFlightMax).toBeLessThanOrEqual(3);
    }
  });

  test("says what share of the drafts was accepted where h100-brief speculates, in results.json and in the table", async () => {
    const folder = temporaryFolder();
    const brief = readFileSync(new URL("../../../../presets/h100-brief.yaml", import.meta.url), "utf8");
    const short = brief
      .replace("cacheState: carried-over\nwarmUpSeconds: 60\nwindowSeconds: 300", "warmUpSeconds: 5\nwindowSeconds: 30")
      .concat("drainSeconds: 20\n");
    const out = join(folder, "out");
    const said = await run(fileOf(short, folder), "--levels", "40", "--runs", "1", "--arms", "kv", "--out", out);
    expect(said).toMatchObject({ code: 0, errors: [] });
    const { content } = await readResults(out);
    const shares = content?.cells[0].workers.map(({ draftAcceptance }) => draftAcceptance as number) ?? [];
    expect(shares).toHaveLength(4);
    // Three drafts of a chance of 0.7 each, counted until the first that is refused.
    for (const share of shares) expect(share).toBeCloseTo((0.7 + 0.7 ** 2 + 0.7 ** 3) / 3, 1);
    const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
    const [header, , row] = said.out.split("\n");
    expect(header).toContain("drafts accepted %");
    expect(row).toContain(` ${(100 * mean).toFixed(1)} `);
    expect((await run(fileOf(EXPERIMENT), "--arms", "kv", "--levels", "4")).out).not.toContain("drafts accepted");
  });

  test("holds prompts back by the engine's batch wait, and refuses half of its settings", async () => {
    const withEngine = (settings: string): string =>
      fileOf(EXPERIMENT.replace("{ profile: vllm }", `{ profile: trtllm, ${settings} }`));
    const ttftMs = async (settings: string): Promise<number> => {
      const { out } = await run(withEngine(settings), "--arms", "rr", "--levels", "8", "--json");
      const [cell] = (JSON.parse(out) as { cells: CellResult[] }).cells;
      return cell.ttftMs.completed.p50 ?? 0;
    };
    const atOnce = await ttftMs("maxSequences: 64");
    expect(await ttftMs("maxSequences: 64, batchWaitSteps: 20, batchWaitTokensRatio: 0.9")).toBeGreaterThan(2 * atOnce);
    const { code, errors } = await run(withEngine("batchWaitSteps: 20"));
    expect(code).toBe(2);
    expect(errors[0]).toContain(
      "fleet.engine: batchWaitSteps and batchWaitTokensRatio have no effect without each other",
    );
  });

  test.each([
    ["a file that is not there", ["none.yaml"], /none\.yaml: no such file$/],
    ["a preset that is not there", ["none"], /there is no preset "none"; there are a100-scaling, /],
    ["a target that is not there", ["h200-sweep", "--on", "moon"], /--on moon is not available/],
    ["an address that is none", ["h200-sweep", "--on", "http://"], /--on http:\/\/ is not available/],
    ["a level that is not there", ["h200-sweep", "--levels", "61"], /level 61 is not in the experiment/],
    ["a window without length", ["h200-sweep", "--window", "1e-9"], /--window must be .* 0\.001 to 86400, got "1e-9"$/],
    ["a window without end", ["h200-sweep", "--window", "1e300"], /--window must be .*, got "1e300"$/],
    ["runs without end", ["h200-sweep", "--runs", "1e9"], /--runs must be a whole number, 1 to 10000, got "1e9"$/],
    [
      "a folder that is a file",
      ["h200-sweep", "--out", FILE],
      /--out .*command\.test\.ts: cannot be written \(EEXIST\)$/,
    ],
    ["a folder below a file", ["h200-sweep", "--out", `${FILE}/x`], /: cannot be written \(ENOTDIR\)$/],
    ["a suite's folder that is a file", ["policy-suite", "--json", "--out", FILE], /: cannot be written \(EEXIST\)$/],
    ["a number that is none", ["h200-sweep", "--runs", "many"], /--runs must be a whole number/],
  ])("ends with one line and exit code 2 for %s", async (_, words, complaint) => {
    const { code, out, errors } = await run(...words);
    expect({ code, out, lines: errors.length }).toEqual({ code: 2, out: "", lines: 1 });
    expect(errors[0]).toMatch(complaint);
  });

  test("ends at once with one line and exit code 2 on an endpoint that wants a key", async () => {
    const endpoint = createServer((_, response) => response.writeHead(401).end()).listen(0, "127.0.0.1");
    await once(endpoint, "listening");
    onTestFinished(() => void endpoint.close());
    const url = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}`;
    const { code, errors } = await run(fileOf(EXPERIMENT), "--on", url, "--arms", "rr");
    expect(code).toBe(2);
    expect(errors).toEqual([`warmpath run: ${url}/v1/models cannot be asked for its models: answered with 401`]);
  });

  test.each([
    ["is not YAML", "name: [", /^warmpath run: .*experiment\.yaml line \d+: /],
    ["has an unknown key", `${EXPERIMENT}speed: 1\n`, /experiment\.yaml: speed is not a known field$/],
    [
      "has a model that does not fit",
      EXPERIMENT.replace("qwen3-8b", "llama-3.1-70b").replace(/ {2}kvPool.*\n/, ""),
      /does not fit/,
    ],
    [
      "has steps too small for its batch",
      EXPERIMENT.replace("{ profile: vllm }", "{ profile: vllm, maxTokensPerStep: 8 }"),
      /fleet\.engine: maxTokensPerStep is 8, less than/,
    ],
  ])("refuses a file that %s before anything is run", async (_, content, complaint) => {
    const { code, out, errors } = await run(fileOf(content));
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(errors.at(-1)).toMatch(complaint);
  });

  test("has no published table for a file of one's own, and says so", async () => {
    const { code, errors } = await run(fileOf(EXPERIMENT), "--compare-published");
    expect(code).toBe(2);
    expect(errors).toEqual([expect.stringContaining("has no published table")]);
  });

  test("says in one line that a published table is not JSON", async () => {
    const path = fileOf(EXPERIMENT);
    const published = join(dirname(path), "published");
    mkdirSync(published);
    writeFileSync(join(published, "small.json"), "{");
    const { code, errors } = await run(path, "--compare-published");
    expect(code).toBe(2);
    expect(errors).toEqual([expect.stringMatching(/^warmpath run: published\/small\.json: is not JSON: /)]);
  });
});

describe("warmpath run --plan", () => {
  test("prints the memory budget of the published brief", async () => {
    const { code, out } = await run("h100-brief", "--plan");
    expect(code).toBe(0);
    const gigabytes = Array.from(out.matchAll(/ (\d+\.\d) GB$/gm), ([, amount]) => amount);
    expect(gigabytes).toEqual(["68.0", "35.0", "4.0", "5.0", "24.0"]);
    expect(out).toContain("concurrent sequences: 53, at 3930 tokens each");
  });

  test("shows the arithmetic of what cannot fit, with the next fraction to try, and fails", async () => {
    const tight = EXPERIMENT.replace("qwen3-8b", "llama-3.1-70b").replace(/ {2}kvPool.*\n/, "  weights: fp8\n");
    const { code, out, errors } = await run(fileOf(tight), "--plan");
    expect(code).toBe(2);
    expect(out).toMatch(/next memory fraction to try: 0\.95/);
    expect(errors).toEqual([expect.stringMatching(/try memoryFraction 0\.95$/)]);
  });
});

describe("every preset", () => {
  const STUDIES = [
    "a100-scaling",
    "h100-brief",
    "h100-tp2-sweep",
    "h100-tp4-vs-tp2",
    "h200-crossover",
    "h200-sweep",
    "toolagent-ab",
  ];

  test("can be read, and has a published table whose cells it runs if it stands for a study", async () => {
    const names = await presetNames();
    expect(names.filter((name) => STUDIES.includes(name))).toEqual(STUDIES);
    for (const name of names) {
      const { experiment, folder } = await readExperimentFile(name, terminalOf([], []));
      expect(experiment.name).toBe(name);
      const path = join(folder, "published", `${name}.json`);
      expect({ name, isStudy: existsSync(path) }).toEqual({ name, isStudy: STUDIES.includes(name) });
      if (!existsSync(path)) continue;
      const { study, problems } = readPublished(JSON.parse(readFileSync(path, "utf8")));
      expect(problems).toEqual([]);
      const runs = cellsOf(experiment).map(({ arm, level }) => JSON.stringify([arm.name, level]));
      for (const { arm, level } of study?.cells ?? []) expect(runs).toContain(JSON.stringify([arm, level]));
    }
  });

  test("has as many cells as the guide says", async () => {
    const guide = readFileSync(new URL("../../../../docs/guides/experiments.md", import.meta.url), "utf8");
    const said = Array.from(guide.matchAll(/run (\S+) .*# all (\d+) cells/g), ([, name, cells]) => [
      name,
      Number(cells),
    ]);
    expect(said).toHaveLength(1);
    for (const [name, cells] of said) {
      const { experiment } = await readExperimentFile(String(name), terminalOf([], []));
      expect([name, cellsOf(experiment).length]).toEqual([name, cells]);
    }
  });

  test("prints its published table beside one of its cells", async () => {
    const { code, out } = await run("h200-sweep", "--levels", "60", "--runs", "1", "--compare-published");
    expect(code).toBe(0);
    expect(out).toContain("fitted to this study: new tokens per turn");
    expect(out).toMatch(/^round-robin +60 conv on 3 +tokens\/s +2147 +\d+ +[+-]\d+\.\d % +fitted$/m);
    expect(out).toMatch(/^hitShare: kv - round-robin +60 conv on 3 +\+0\.7 pp +\+\d/m);
    expect(out).toContain("published but not run: round-robin at 80 conv on 3");
  });
});

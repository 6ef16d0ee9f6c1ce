import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pc from "picocolors";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RequestRecord } from "../../../core/request-record.ts";
import { readRecords } from "../../../lab/results/records-file.ts";
import { runCli } from "../../program.ts";

/** Small pools and a queue that sheds, so that requests wait, move and are refused. */
const EXPERIMENT = `
name: small
fleet:
  model: qwen3-8b
  gpu: h100
  workers: 3
  engine: { profile: vllm, maxSequences: 4 }
  blockTokens: 64
  kvPoolTokens: 40000
workload:
  conversations: { starters: 2, starterTokens: [600, 700], outputTokensByTurn: [40], tailShare: 0 }
load:
  concurrency: [24]
arms:
  - { name: warm, policy: warmpath }
  - { name: random, policy: random }
  - { name: refusing, policy: kv-cost, admission: { mode: shed } }
warmUpSeconds: 1
windowSeconds: 4
drainSeconds: 5
`;

interface Replayed {
  readonly attempts: readonly {
    readonly decision: { readonly chosen: string | null; readonly decision: number };
    readonly explanation: { readonly candidates: readonly { readonly worker: string; readonly cost: number }[] };
  }[];
}

let folder = "";
let results = "";

async function warmpath(...words: readonly string[]): Promise<{ code: number; out: string; errors: string }> {
  const out: string[] = [];
  const errors: string[] = [];
  const code = await runCli([...words], {
    colours: pc.createColors(false),
    debug: false,
    print: (line) => void out.push(line),
    printError: (line) => void errors.push(line),
    readStdin: () => Promise.resolve(""),
  });
  return { code, out: out.join("\n"), errors: errors.join("\n") };
}

const explain = (...words: readonly string[]): ReturnType<typeof warmpath> =>
  warmpath("explain", "--run", results, ...words);

async function recordsOf(arm: string): Promise<RequestRecord[]> {
  const records: RequestRecord[] = [];
  for await (const { cell, record } of readRecords(join(results, "records.jsonl.gz"))) {
    if (cell.startsWith(`${arm}/`)) records.push(record);
  }
  return records;
}

/** Some of many, from the first to the last. */
function spread<Item>(items: readonly Item[], count: number): Item[] {
  return Array.from({ length: count }, (_, at) => items[Math.floor((at * (items.length - 1)) / (count - 1))]);
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "warmpath-replay-"));
  const file = join(folder, "experiment.yaml");
  results = join(folder, "results");
  writeFileSync(file, EXPERIMENT);
  await warmpath("run", file, "--out", results);
});

afterAll(() => rmSync(folder, { recursive: true }));

describe("warmpath explain --run", () => {
  test.each(["warm", "random"])("takes apart what was decided, and the lowest cost was chosen: arm %s", async (arm) => {
    const records = (await recordsOf(arm)).filter(({ placedNs }) => placedNs !== undefined);
    for (const { id, worker, decision } of spread(records, 12)) {
      const { code, out } = await explain("--cell", `${arm}/concurrency-24-workers-3/run-1`, "--request", id, "--json");
      expect(code).toBe(0);
      const last = (JSON.parse(out) as Replayed).attempts.at(-1);
      expect(last?.decision).toMatchObject({ chosen: worker, decision: Number(decision) });
      const costs = last?.explanation.candidates ?? [];
      expect(costs).toHaveLength(3);
      const cheapest = Math.min(...costs.map(({ cost }) => cost));
      expect(costs.find((candidate) => candidate.worker === worker)?.cost).toBeCloseTo(cheapest, 6);
    }
  });

  test("says why a request was turned away", async () => {
    const shed = (await recordsOf("refusing")).find(({ account }) => account === "shed");
    expect(shed).toBeDefined();
    const { out } = await explain("--cell", "refusing/concurrency-24-workers-3/run-1", "--request", shed?.id ?? "");
    expect(out).toContain(`refused ${shed?.shedReason?.message}`);
    expect(out).toContain("chosen  nobody");
  });

  test("says what another policy would have done there", async () => {
    const [first] = await recordsOf("warm");
    const words = ["--cell", "warm/concurrency-24-workers-3/run-1", "--request", first.id, "--policy", "product"];
    const { code, out } = await explain(...words);
    expect(code).toBe(0);
    expect(out).toContain("policy  product");
    expect(out).toContain(`the run sent it to ${first.worker}`);
  });

  test.each([
    [["--request", "0"], "name one of 3 with --cell"],
    [["--request", "0", "--cell", "warm"], 'there is no cell "warm"'],
    [["--request", "no", "--cell", "warm/concurrency-24-workers-3/run-1"], 'there is no request "no"'],
    [[], "--run needs --request"],
    [["--request", "0", "--example"], "give either --run, a file or --example"],
  ])("refuses %j in one line", async (words, problem) => {
    const { code, errors } = await explain(...words);
    expect(code).toBe(2);
    expect(errors).toContain(problem);
    expect(errors).not.toContain("\n");
  });

  test("refuses --request without a run", async () => {
    expect(await warmpath("explain", "--request", "0")).toMatchObject({ code: 2 });
  });

  test("runs a trace again, and notices that it is another", async () => {
    const rows = (output: number): string =>
      Array.from({ length: 40 }, (_, at) =>
        JSON.stringify({ timestamp: at * 50, input_length: 1000, output_length: output, hash_ids: [at % 5, 100 + at] }),
      ).join("\n");
    const trace =
      "workload: { trace: { files: [trace.jsonl] } }\nload: { speed: [1] }\narms: [{ name: kv, policy: kv-cost }]\n";
    const replayed = join(folder, "of-a-trace");
    writeFileSync(join(folder, "trace.yaml"), `${EXPERIMENT.slice(0, EXPERIMENT.indexOf("workload:"))}${trace}`);
    writeFileSync(join(folder, "trace.jsonl"), rows(20));
    expect(await warmpath("run", join(folder, "trace.yaml"), "--out", replayed)).toMatchObject({ code: 0, errors: "" });
    const words = ["explain", "--run", replayed, "--request", "7"];
    expect(await warmpath(...words)).toMatchObject({ code: 0, errors: "" });
    rmSync(join(folder, "trace.jsonl"));
    expect((await warmpath(...words)).errors).toContain("trace.jsonl is neither beside the experiment");
    writeFileSync(join(replayed, "trace.jsonl"), rows(20));
    expect(await warmpath(...words)).toMatchObject({ code: 0, errors: "" });
    writeFileSync(join(replayed, "trace.jsonl"), rows(30));
    expect((await warmpath(...words)).errors).toContain("was made with another trace.jsonl");
  });

  test("notices results that are not of this version", async () => {
    const file = join(results, "results.json");
    const written = readFileSync(file, "utf8");
    writeFileSync(file, written.replace('"kvPoolTokens": 40000', '"kvPoolTokens": 7000'));
    const records = (await recordsOf("warm")).filter(({ placedNs }) => placedNs !== undefined);
    const { code, errors } = await explain(
      "--cell",
      "warm/concurrency-24-workers-3/run-1",
      "--request",
      records.at(-1)?.id ?? "",
    );
    writeFileSync(file, written);
    expect(code).toBe(2);
    expect(errors).toContain("went another way when it was run again");
  });
});

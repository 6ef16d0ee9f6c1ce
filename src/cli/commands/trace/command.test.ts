import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pc from "picocolors";
import { describe, expect, test } from "vitest";
import { fileTree } from "../../../../test/support/file-tree.ts";
import { requireData } from "../../../../test/support/required-component.ts";
import { runCli } from "../../program.ts";

const LINES = [
  '{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}',
  '{"timestamp": 1000, "input_length": 1024, "output_length": 6, "hash_ids": [0, 2]}',
  '{"timestamp": 4000, "input_length": 1500, "output_length": 7, "hash_ids": [0, 2, 3]}',
];

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly errors: readonly string[];
}

async function run(words: readonly string[], stdin = ""): Promise<Outcome> {
  const out: string[] = [];
  const errors: string[] = [];
  const code = await runCli(["trace", ...words], {
    colours: pc.createColors(false),
    debug: false,
    print: (line) => void out.push(line),
    printError: (line) => void errors.push(line),
    readStdin: () => Promise.resolve(stdin),
  });
  return { code, out: out.join("\n"), errors };
}

function traceFile(lines: readonly string[] = LINES): string {
  return join(fileTree({ "trace.jsonl": lines.map((line) => `${line}\n`).join("") }), "trace.jsonl");
}

async function runJson(words: readonly string[]): Promise<Record<string, unknown>> {
  const { code, out, errors } = await run([...words, "--json"]);
  expect({ code, errors }).toEqual({ code: 0, errors: [] });
  return JSON.parse(out) as Record<string, unknown>;
}

describe("warmpath trace inspect", () => {
  test("prints what there is to know, and the ceiling in an engine's blocks", async () => {
    const { code, out } = await run(["inspect", traceFile(), "--engine-block", "64"]);
    expect(code).toBe(0);
    expect(out).toMatchInlineSnapshot(`
      "trace.jsonl: not a public trace
      sha256      f864d8e8b619cc64b4b332ea629e3fa9f98e81283cc1713085e1aa58bd4af06b
      rows        3
      duration    4.000 s, 0.75 rows per second
      grid        none: rows have times of their own
      sessions    1 (reconstructed from shared blocks)

      tokens   mean  min   p5    p50    p95    p99    max
      ──────  ─────  ───  ───  ─────  ─────  ─────  ─────
      input   1,041  600  642  1,024  1,452  1,490  1,500
      output      6    5    5      6      7      7      7

      ceiling     42.9 % of blocks (3 of 7 512-token ids, 4 distinct), 49.2 % of tokens
      ceiling     50.0 % of blocks (24 of 48 full 64-token blocks, 24 distinct), 49.2 % of tokens"
    `);
  });

  test("prints the same as JSON", async () => {
    expect(await runJson(["inspect", traceFile()])).toMatchObject({
      file: "trace.jsonl",
      publicTrace: null,
      rows: 3,
      inputTokens: { p50: 1024 },
      infiniteCache: { hitBlockShare: 3 / 7, hitBlocks: 3, blocks: 7 },
      sessions: { sessions: 1, from: "shared-blocks" },
      provenance: { sourceRows: 3, steps: [] },
    });
  });

  for (const [file, blockPercent, inputP50, name] of [
    ["conversation_trace.jsonl", "36.6", "6,909", "the public conversation trace"],
    ["synthetic_trace.jsonl", "64.0", "11,587", "the public synthetic trace"],
    ["toolagent_head_1000.jsonl", "38.0", "6,558", "not a public trace"],
  ] as const) {
    test(`knows ${file} by its sha256 and prints its ceiling and lengths`, async (context) => {
      const { out } = await run(["inspect", requireData(context, `traces/${file}`)]);
      expect(out).toContain(`${file}: ${name}`);
      expect(out).toContain(`ceiling     ${blockPercent} % of blocks`);
      expect(out).toMatch(new RegExp(`^input .* ${inputP50} `, "m"));
    });
  }
});

describe("warmpath trace filter, slice, scale, jitter and tile", () => {
  test("write the trace to stdout and what was done to stderr", async () => {
    const { code, out, errors } = await run(["filter", traceFile(), "--max-input", "1024"]);
    expect([code, out.split("\n")]).toEqual([0, LINES.slice(0, 2)]);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatch(/^trace\.jsonl sha256:[0-9a-f]{12} \(3 rows\) → filter maxInputTokens=1024 \(2 rows\)$/);
  });

  test("read stdin, so that they can be piped", async () => {
    const { out } = await run(["slice", "-", "--from", "1", "--to", "5"], LINES.join("\n"));
    expect(out.split("\n").map((line) => (JSON.parse(line) as { timestamp: number }).timestamp)).toEqual([0, 3000]);
  });

  test("keep the whole way from the first file in the provenance", async () => {
    const file = traceFile();
    const [filtered, scaled] = [`${file}.filtered`, `${file}.scaled`];
    await run(["filter", file, "--min-input", "1000", "--out", filtered]);
    const record = await runJson(["scale", filtered, "--speed", "0.8", "--out", scaled]);
    const steps = [
      { step: "filter", minInputTokens: 1000, rows: 2 },
      { step: "scale", speed: 0.8, rows: 2 },
    ];
    expect(record).toMatchObject({ rows: 2, provenance: { source: "trace.jsonl", sourceRows: 3, steps } });
    expect(readFileSync(scaled, "utf8").split("\n")[1]).toContain('"timestamp": 5000,');
    expect(await runJson(["inspect", scaled])).toMatchObject({ sha256: record["sha256"], provenance: { steps } });
    writeFileSync(scaled, LINES.join("\n"));
    expect(await runJson(["inspect", scaled])).toMatchObject({ provenance: { steps: [] } });
  });

  test("jitter inside the grid by seed, and tile", async () => {
    const grid = Array.from({ length: 60 }, (_, at) =>
      JSON.stringify({ timestamp: Math.floor(at / 10) * 3000, input_length: 9, output_length: 1, hash_ids: [at] }),
    );
    const file = traceFile(grid);
    const [first, again, other] = await Promise.all(
      ["1", "1", "2"].map((seed) => run(["jitter", file, "--seed", seed])),
    );
    expect(first.out).toBe(again.out);
    expect(first.out).not.toBe(other.out);
    expect((await run(["tile", file, "--copies", "3"])).out.split("\n")).toHaveLength(180);
  });
});

describe("warmpath trace synth", () => {
  test("prints the generated lengths beside the published ones", async () => {
    const out = join(fileTree({}), "synth.jsonl");
    const result = await run(["synth", "--sessions", "400", "--out", out]);
    expect([result.code, result.errors]).toEqual([0, []]);
    expect(result.out).toMatch(/^multi-turn, seed 1: 400 sessions, \d+ rows, sha256 [0-9a-f]{64}$/m);
    expect(result.out).toMatch(/^ +5 .* 7,000 +[+−]\d+\.\d % +888$/m);
    expect(result.out).toMatch(/input p95 over all requests +\d\d,\d{3} \(published about 12,700, [+−]\d+\.\d %\)/);
    expect(await runJson(["inspect", out])).toMatchObject({ sessions: { sessions: 400, from: "session-id" } });
  });

  test("gives the same trace for the same seed, with parameters that may be set", async () => {
    const words = [
      "synth",
      "--preset",
      "rag",
      "--set",
      "turns=1",
      "--set",
      "outputTokensByTurn=40,50",
      "--sessions",
      "9",
    ];
    const first = await run(words);
    expect(first.out.split("\n")).toHaveLength(9);
    expect((await run(words)).out).toBe(first.out);
    expect((await run([...words, "--seed", "2"])).out).not.toBe(first.out);
  });

  test("writes prefix groups, whose prefixes are the ceiling", async () => {
    const out = join(fileTree({}), "groups.jsonl");
    const words = ["--groups", "4", "--prefix", "1024", "--suffix", "512", "--output", "10-20", "--sessions", "100"];
    const record = await runJson(["synth", ...words, "--arrivals", "burst", "--burst-size", "5", "--out", out]);
    expect(record).toMatchObject({ rows: 100, workload: { kind: "prefix-groups", arrivals: { burstSize: 5 } } });
    expect(await runJson(["inspect", out])).toMatchObject({ infiniteCache: { blocks: 300, hitBlocks: 2 * 96 } });
  });
});

describe("warmpath trace with what cannot be used", () => {
  const broken = [LINES[0], '{"timestamp": 0, "input_length": -600, "output_length": 5, "hash_ids": [0, 1]}'];

  test.each([
    [[], /^warmpath trace: name an action: inspect, filter, .* \(see warmpath trace --help\)$/],
    [["explode"], /^warmpath trace: unknown action "explode": inspect, /],
    [["inspect"], "warmpath trace inspect: missing required argument 'file' (see warmpath trace inspect --help)"],
    [["inspect", "/no/such.jsonl"], "warmpath trace inspect: /no/such.jsonl: no such file"],
    [["inspect", "/"], "warmpath trace inspect: /: is a folder, not a file"],
    [["inspect", "-", "--engine-block", "0"], /--engine-block must be a whole number, 1 or more, got "0"$/],
    [["filter", "FILE"], "warmpath trace filter: give at least one bound, such as --max-input 16384"],
    [["filter", "FILE", "--max-input", "5"], "warmpath trace filter: no row of trace.jsonl is left (it has 3)"],
    [["slice", "FILE"], "warmpath trace slice: give at least one end, such as --to-row 1000 or --to 600"],
    [["slice", "FILE", "--from", "-1"], 'warmpath trace slice: --from must be a number, 0 or more, got "-1"'],
    [["scale", "FILE"], /required option '--speed <factor>' not specified \(see warmpath trace scale --help\)$/],
    [["scale", "FILE", "--speed", "x"], 'warmpath trace scale: --speed must be a number, 0.000001 to 1000000, got "x"'],
    [["scale", "FILE", "--speed", "1e-320"], /--speed must be a number, 0\.000001 to 1000000, got "1e-320"$/],
    [["tile", "FILE", "--copies", "1e9"], /--copies must be a whole number, 1 to 10000000, got "1e9"$/],
    [["tile", "FILE", "--copies", "9999999"], /--copies: 9999999 copies of 3 rows are more than 10000000$/],
    [["synth", "--sessions", "1e12"], /--sessions must be a whole number, 1 to 10000000, got "1e12"$/],
    [
      ["scale", "FILE", "--speed", "2", "--out", "/no/x"],
      "warmpath trace scale: /no/x: cannot be written (no such folder)",
    ],
    [["jitter", "FILE"], /the timestamps have no grid/],
    [["synth", "--preset", "x"], /^warmpath trace synth: unknown preset "x"; there are multi-turn, rag, /],
    [["synth", "--preset", "rag", "--groups", "2"], "warmpath trace synth: give either --preset or --groups, not both"],
    [["synth", "--suffix", "10"], "warmpath trace synth: --suffix needs --groups"],
    [["synth", "--groups", "2", "--set", "turns=1"], /--set is for presets/],
    [["synth", "--set", "turns"], 'warmpath trace synth: --set must be name=value, got "turns"'],
    [["synth", "--set", "turn=1"], /--set turn: unknown parameter; there are starters, /],
    [["synth", "--set", "turns=5-3"], /--set turns must be a whole number or a range such as 100-200, got "5-3"/],
    [["synth", "--set", "tailShare=2"], "warmpath trace synth: tailShare must be between 0 and 1, got 2"],
    [["synth", "--set", "tailShare=a"], 'warmpath trace synth: --set tailShare must be a number, got "a"'],
    [["synth", "--arrivals", "tidal"], /argument 'tidal' is invalid/],
    [["fetch", "bible"], 'warmpath trace fetch: unknown trace "bible"; there are conversation, synthetic, toolagent'],
  ] as [string[], string | RegExp][])("answers %j with one line and exit code 2", async (words, expected) => {
    const file = traceFile();
    const { code, out, errors } = await run(
      words.map((word) => (word === "FILE" ? file : word)),
      LINES.join("\n"),
    );
    expect([code, out]).toEqual([2, ""]);
    expect(errors).toEqual([typeof expected === "string" ? expected : expect.stringMatching(expected)]);
    expect(errors[0]).not.toContain("\n");
  });

  test("names file and line of a malformed row", async () => {
    expect(await run(["inspect", traceFile(broken)])).toEqual({
      code: 2,
      out: "",
      errors: ["warmpath trace inspect: trace.jsonl line 2: input_length must be a whole number, 1 or more, got -600"],
    });
  });

  test("shows help with an example for every action", async () => {
    for (const action of ["inspect", "filter", "slice", "scale", "jitter", "tile", "synth", "fetch"]) {
      const { code, out } = await run([action, "--help"]);
      expect(code).toBe(0);
      expect(out).toContain("--json");
      expect(out).toContain(`$ warmpath trace ${action}`);
    }
  });
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fileTree } from "../support/file-tree.ts";
import { REPOSITORY, runWarmpath } from "../support/run-program.ts";

interface Explained {
  readonly policy: string;
  readonly parameters: Record<string, unknown>;
  readonly rule: string;
  readonly unit: string;
  readonly chosen: string | null;
  readonly runnerUp: string | null;
  readonly margin: number | null;
  readonly candidates: readonly {
    readonly worker: string;
    readonly prefillBlocks: number;
    readonly cost: number;
    readonly terms: readonly { readonly name: string; readonly value: number }[];
  }[];
}

const DECISION = {
  request: { promptBlocks: 10, blockTokens: 16 },
  candidates: [
    { worker: "a", cachedBlocks: 8, decodeBlocks: 30 },
    { worker: "b", cachedBlocks: 0, decodeBlocks: 4 },
  ],
};

async function explainJson(words: readonly string[], stdin?: string): Promise<Explained> {
  const options = stdin === undefined ? {} : { stdin };
  const { status, stdout, stderr } = await runWarmpath(["explain", "--json", ...words], options);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return JSON.parse(stdout) as Explained;
}

describe("warmpath explain", () => {
  test("prints the worked example as a table in which worker 2 is chosen", async () => {
    const { status, stdout, stderr } = await runWarmpath(["explain", "--example"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatchInlineSnapshot(`
      "policy  kv-cost  form=mission  overlap_score_weight=1
      prompt  100 blocks of 64 tokens

      worker    cached  to prefill  decode blocks  prefill  decode  cost
      ────────  ──────  ──────────  ─────────────  ───────  ──────  ────  ────────
      worker 1      20          80             10       80      10    90
      worker 2      75          25              5       25       5    30  ◀ chosen
      worker 3      10          90              9       90       9    99

      rule    1 × prefill blocks + decode blocks
      chosen  worker 2
      margin  60 blocks before the runner-up, worker 1

      Try: npx warmpath explain --example --policy round-robin, or your own numbers: npx warmpath explain --help
      "
    `);
  });

  test("prints a record whose terms add up to each candidate's cost", async () => {
    const record = await explainJson(["--example"]);
    expect(record).toMatchObject({
      policy: "kv-cost",
      unit: "blocks",
      chosen: "worker 2",
      runnerUp: "worker 1",
      margin: 60,
    });
    expect(record.parameters).toMatchObject({ overlap_score_weight: 1, router_temperature: 0 });
    expect(record.candidates.map(({ worker, cost }) => [worker, cost])).toEqual([
      ["worker 1", 90],
      ["worker 2", 30],
      ["worker 3", 99],
    ]);
    for (const { cost, terms } of record.candidates) {
      expect(terms.reduce((sum, term) => sum + term.value, 0)).toBe(cost);
    }
  });

  test("explains a file, and the same from stdin", async () => {
    const written = JSON.stringify(DECISION);
    const fromFile = await explainJson([join(fileTree({ "decision.json": written }), "decision.json")]);
    expect(fromFile).toMatchObject({ policy: "kv-cost", chosen: "b", runnerUp: "a", margin: 18 });
    expect(await explainJson(["-"], written)).toEqual(fromFile);
  });

  test("lets options override the file's policy and knobs", async () => {
    const written = JSON.stringify({ ...DECISION, policy: "kv-cost", parameters: { overlap_score_weight: 1 } });
    expect(await explainJson(["-", "--set", "overlap_score_weight=10"], written)).toMatchObject({
      chosen: "a",
      parameters: { overlap_score_weight: 10 },
    });
    const other = await explainJson(["-", "--policy", "least-loaded"], written);
    expect(other.policy).toBe("least-loaded");
    expect(other.parameters).not.toHaveProperty("overlap_score_weight");
  });

  test("ends quietly when its reader has seen enough", async () => {
    const child = spawn(process.execPath, [join(REPOSITORY, "dist/cli/main.js"), "explain", "--example", "--json"]);
    child.stdout.destroy();
    let complaints = "";
    child.stderr.on("data", (chunk: Buffer) => (complaints += chunk.toString()));
    await once(child, "close");
    expect(complaints).toBe("");
  });

  test("prints no colour codes into a pipe", async () => {
    const { stdout } = await runWarmpath(["explain", "--example"], { environment: { FORCE_COLOR: "1" } });
    expect(stdout).not.toContain("\u001b");
  });
});

/** A change to the decision, and the one line that it must give. */
const BAD_FILES: readonly [what: string, content: unknown, line: string][] = [
  ["a missing request", { candidates: DECISION.candidates }, "request is missing (bad.json)"],
  ["a missing field", withCandidate({ cachedBlocks: undefined }), "candidates[1].cachedBlocks is missing (bad.json)"],
  [
    "negative blocks",
    withCandidate({ cachedBlocks: -5 }),
    "candidates[1].cachedBlocks must be 0 or more, got -5 (bad.json)",
  ],
  [
    "half a block",
    withCandidate({ decodeBlocks: 2.5 }),
    "candidates[1].decodeBlocks must be a whole number, got 2.5 (bad.json)",
  ],
  [
    "a text for a number",
    withCandidate({ decodeBlocks: "many" }),
    'candidates[1].decodeBlocks must be a number, got "many" (bad.json)',
  ],
  [
    "more cached than asked for",
    withCandidate({ cachedBlocks: 11 }),
    "candidates[1].cachedBlocks must be at most request.promptBlocks (10), got 11 (bad.json)",
  ],
  [
    "more confirmed than cached",
    withCandidate({ cachedBlocks: 2, confirmedBlocks: 3 }),
    "candidates[1].confirmedBlocks must be at most cachedBlocks (2), got 3 (bad.json)",
  ],
  ["an unknown field", withCandidate({ cachedBlock: 1 }), "candidates[1].cachedBlock is not a known field (bad.json)"],
  [
    "no candidates",
    { ...DECISION, candidates: [] },
    "candidates must be a list with at least one entry, got [] (bad.json)",
  ],
  [
    "two workers of one name",
    withCandidate({ worker: "a" }),
    'candidates[1].worker must be unique, "a" is also candidates[0] (bad.json)',
  ],
  ["a list instead of an object", [], "the input must be an object, got [] (bad.json)"],
  [
    "tokens that do not fit the blocks",
    { ...DECISION, request: { ...DECISION.request, promptTokens: 10 } },
    "request.promptTokens must be 160 to 175 for 10 blocks of 16, got 10 (bad.json)",
  ],
];

function withCandidate(change: Readonly<Record<string, unknown>>): unknown {
  return { ...DECISION, candidates: [DECISION.candidates[0], { ...DECISION.candidates[1], ...change }] };
}

describe("a usage error is one clear line and exit code 2", () => {
  test.each(BAD_FILES)("for %s", async (_, content, line) => {
    const folder = fileTree({ "bad.json": JSON.stringify(content) });
    const { status, stdout, stderr } = await runWarmpath(["explain", "bad.json"], { folder });
    expect({ status, stdout, stderr }).toEqual({ status: 2, stdout: "", stderr: `warmpath explain: ${line}\n` });
  });

  test.each([
    ["no command", [], /^warmpath: name a command: .*explain/],
    ["an unknown command", ["explian"], /^warmpath: unknown command 'explian'/],
    [
      "nothing to explain",
      ["explain"],
      /^warmpath explain: give a JSON file, - for stdin, --example, or --run with a results folder/,
    ],
    ["an unknown option", ["explain", "--exmple"], /^warmpath explain: unknown option '--exmple'/],
    ["too many files", ["explain", "a.json", "b.json"], /^warmpath explain: too many arguments/],
    ["a file and the example", ["explain", "a.json", "--example"], /either --example or a file/],
    ["a file that is not there", ["explain", "absent.json"], /^warmpath explain: absent\.json: no such file\n/],
    ["a folder", ["explain", "src"], /^warmpath explain: src: is a folder, not a file\n/],
    ["a file that is not JSON", ["explain", "LICENSE"], /^warmpath explain: the input is not JSON: .*\(LICENSE\)\n/],
    ["an empty stdin", ["explain", "-"], /^warmpath explain: the input is not JSON: it is empty \(stdin\)\n/],
    [
      "an unknown policy",
      ["explain", "--example", "--policy", "warmest"],
      /unknown policy "warmest"; known: round-robin/,
    ],
    ["an unknown knob", ["explain", "--example", "--set", "weight=1"], /parameter weight is not a parameter/],
    [
      "a knob out of range",
      ["explain", "--example", "--set", "overlap_score_weight=-1"],
      /overlap_score_weight must be/,
    ],
    [
      "a knob that is no number",
      ["explain", "--example", "--set", "overlap_score_weight=x"],
      /must be a number.*got "x"/,
    ],
    ["a malformed setting", ["explain", "--example", "--set", "weight"], /--set must be name=value, got "weight"/],
    ["an option without its value", ["explain", "--example", "--policy"], /'--policy <name>' argument missing/],
  ])("for %s", async (_, words, line) => {
    const { status, stdout, stderr } = await runWarmpath(words);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(line);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  test("shows where it came from only when asked to", async () => {
    const { stderr } = await runWarmpath(["explain", "absent.json"], { environment: { WARMPATH_DEBUG: "1" } });
    expect(stderr).toMatch(/\n\s+at /);
  });
});

describe("help", () => {
  test.each([[["--help"]], [["explain", "--help"]], [["help", "explain"]]])("%j has an example", async (words) => {
    const { status, stdout, stderr } = await runWarmpath(words);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(/Examples?:\n {2}\$ warmpath /);
  });

  test("names every field of the file, every policy and its knobs", async () => {
    const { stdout } = await runWarmpath(["explain", "--help"]);
    for (const name of [
      "request.promptBlocks",
      "candidates[].cachedBlocks",
      "kv-cost",
      "product",
      "load_factor=1.25",
    ]) {
      expect(stdout).toContain(name);
    }
  });

  test("--version prints the package's version", async () => {
    const { stdout } = await runWarmpath(["--version"]);
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

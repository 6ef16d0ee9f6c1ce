import { z } from "zod";
import type { PolicyParameters } from "../../../core/policy/types.ts";
import { inputProblem } from "../../input-problem.ts";

/** One decision to explain: a request and what was known of each worker when it came. */
export interface DecisionInput {
  readonly policy?: string | undefined;
  readonly parameters?: PolicyParameters | undefined;
  readonly request: RequestInput;
  readonly candidates: readonly CandidateInput[];
  readonly chance: number;
}

export interface RequestInput {
  readonly promptBlocks: number;
  readonly blockTokens: number;
  readonly promptTokens: number;
  readonly expectedOutputTokens: number;
  readonly session?: string;
}

export interface CandidateInput {
  readonly worker: string;
  readonly cachedBlocks: number;
  readonly confirmedBlocks: number;
  readonly hostBlocks: number;
  readonly diskBlocks: number;
  readonly activePrefixBlocks: number;
  readonly decodeBlocks: number;
  readonly inFlight: number;
  readonly decoding: number;
  readonly pendingPrefillTokens: number;
  readonly contextTokens: number;
  readonly batchSlots: number;
  readonly kvBlocks: number;
  readonly lastChosen: number;
}

const DEFAULT_BLOCK_TOKENS = 64;
const LARGEST_COUNT = 2 ** 31 - 1;
const LARGEST_CHANCE = 2 ** 32 - 1;

const count = z.int().min(0).max(LARGEST_COUNT);

const requestSchema = z.strictObject({
  promptBlocks: count.describe("full KV blocks of the prompt"),
  blockTokens: z.int().min(1).max(LARGEST_COUNT).default(DEFAULT_BLOCK_TOKENS).describe("tokens in a block"),
  promptTokens: count.optional().describe("prompt tokens; promptBlocks × blockTokens unless told"),
  expectedOutputTokens: count.default(0).describe("output length to plan for"),
  session: z.string().optional().describe("conversation the request belongs to"),
});

const candidateSchema = z.strictObject({
  worker: z.string().min(1).describe("name of the worker"),
  cachedBlocks: count.describe("leading prompt blocks in its KV cache"),
  decodeBlocks: count.describe("KV blocks of the requests it is working on"),
  confirmedBlocks: count.optional().describe("of cachedBlocks, those an engine event confirmed; all unless told"),
  hostBlocks: count.default(0).describe("further leading blocks in host memory"),
  diskBlocks: count.default(0).describe("further leading blocks on disk"),
  activePrefixBlocks: count.default(0).describe("leading prompt blocks that requests in flight hold"),
  inFlight: count.default(0).describe("requests placed and not ended"),
  decoding: count.optional().describe("of inFlight, those past their first token; all unless told"),
  pendingPrefillTokens: count.default(0).describe("prompt tokens placed and not yet computed"),
  contextTokens: count.default(0).describe("prompt and output tokens being decoded"),
  batchSlots: count.default(0).describe("requests decoded at once; 0 is unknown"),
  kvBlocks: count.default(0).describe("KV blocks of the device pool; 0 is unknown"),
  lastChosen: count.default(0).describe("number of the decision that last chose it; 0 is never"),
});

const decisionSchema = z
  .strictObject({
    policy: z.string().min(1).optional().describe("kv-cost unless told"),
    parameters: z
      .record(z.string(), z.union([z.number(), z.string()]))
      .optional()
      .describe("knobs of the policy"),
    request: requestSchema,
    candidates: z.array(candidateSchema).min(1),
    chance: z.int().min(0).max(LARGEST_CHANCE).default(0).describe("32 random bits, for policies that draw"),
  })
  .check((context) => {
    const problem = firstContradiction(context.value);
    if (problem === undefined) return;
    context.issues.push({ code: "custom", path: problem.path, message: problem.message, input: context.value });
  });

/** Checks a parsed JSON file and fills in what may be left out; throws with one line that names the field. */
export function parseDecisionInput(json: unknown, source: string): DecisionInput {
  const result = decisionSchema.safeParse(json);
  if (!result.success) throw inputProblem(result.error, json, source);
  const { policy, parameters, request, candidates, chance } = result.data;
  return {
    policy,
    parameters,
    request: completeRequest(request),
    candidates: candidates.map((candidate) => ({
      ...candidate,
      confirmedBlocks: candidate.confirmedBlocks ?? candidate.cachedBlocks,
      decoding: candidate.decoding ?? candidate.inFlight,
    })),
    chance,
  };
}

/** The fields of the file with what each means, for `--help`; made from the schema that checks them. */
export function inputFieldLines(): string[] {
  return [
    ...fieldLines("", decisionSchema),
    ...fieldLines("request.", requestSchema),
    ...fieldLines("candidates[].", candidateSchema),
  ];
}

function completeRequest({ session, promptTokens, ...known }: z.infer<typeof requestSchema>): RequestInput {
  const tokens = promptTokens ?? known.promptBlocks * known.blockTokens;
  return { ...known, promptTokens: tokens, ...(session === undefined ? {} : { session }) };
}

interface Contradiction {
  readonly path: PropertyKey[];
  readonly message: string;
}

/** What no single field's type can say: how the fields must fit together. */
function firstContradiction({ request, candidates }: z.infer<typeof decisionSchema>): Contradiction | undefined {
  const { promptBlocks, blockTokens, promptTokens } = request;
  if (promptTokens !== undefined && Math.floor(promptTokens / blockTokens) !== promptBlocks) {
    const range = `${promptBlocks * blockTokens} to ${(promptBlocks + 1) * blockTokens - 1}`;
    const message = `must be ${range} for ${promptBlocks} blocks of ${blockTokens}, got ${promptTokens}`;
    return { path: ["request", "promptTokens"], message };
  }
  const seen = new Map<string, number>();
  for (const [at, candidate] of candidates.entries()) {
    const earlier = seen.get(candidate.worker);
    if (earlier !== undefined) {
      const message = `must be unique, "${candidate.worker}" is also candidates[${earlier}]`;
      return { path: ["candidates", at, "worker"], message };
    }
    seen.set(candidate.worker, at);
    for (const { field, limit, limitName } of upperLimits(candidate, promptBlocks)) {
      const value = candidate[field];
      if (value === undefined || value <= limit) continue;
      return { path: ["candidates", at, field], message: `must be at most ${limitName} (${limit}), got ${value}` };
    }
  }
  return undefined;
}

interface UpperLimit {
  readonly field: "cachedBlocks" | "confirmedBlocks" | "hostBlocks" | "diskBlocks" | "activePrefixBlocks" | "decoding";
  readonly limit: number;
  readonly limitName: string;
}

function upperLimits(candidate: z.infer<typeof candidateSchema>, promptBlocks: number): UpperLimit[] {
  const prompt = { limit: promptBlocks, limitName: "request.promptBlocks" };
  return [
    { field: "cachedBlocks", ...prompt },
    { field: "confirmedBlocks", limit: candidate.cachedBlocks, limitName: "cachedBlocks" },
    { field: "hostBlocks", ...prompt },
    { field: "diskBlocks", ...prompt },
    { field: "activePrefixBlocks", ...prompt },
    { field: "decoding", limit: candidate.inFlight, limitName: "inFlight" },
  ];
}

function fieldLines(prefix: string, schema: z.ZodObject): string[] {
  return Object.entries(schema.shape).flatMap(([name, field]) => {
    const about = (field as z.ZodType).description;
    if (about === undefined) return [];
    const required = !(field as z.ZodType).safeParse(undefined).success;
    return [`  ${(prefix + name + (required ? "" : "?")).padEnd(36)} ${about}`];
  });
}

import type { Check } from "../results/types.ts";
import { failed, passed, unavailable } from "./checks.ts";
import type { FleetFacts, WorkerFacts } from "./fleet-facts.ts";

/** A check with what to do about it where it has failed. */
export interface Finding extends Check {
  readonly advice?: string;
  /** Where the guide says more about it. */
  readonly guide?: string;
  /** Whether a comparison of policies means nothing as long as this has failed. */
  readonly isFatal: boolean;
}

type FleetCheck = (facts: FleetFacts) => Finding;

/** Clocks are read from headers in whole seconds; less than this cannot be told from none. */
const CLOCK_TOLERANCE_MS = 2000;
/** Engines leave out the last block of a prompt where its last token must be computed anew. */
const LAST_BLOCK = 1;
/** Pools are planned from what memory is left and differ a little. */
const POOL_TOLERANCE = 0.02;

const GUIDE = "docs/guides/troubleshooting.md";

/** The section of the guide for each check. */
const SECTIONS: Readonly<Record<string, string>> = {
  reachable: "no-workers",
  healthy: "never-ready",
  "same-model": "models-and-block-sizes",
  "same-block-size": "models-and-block-sizes",
  "equal-workers": "unequal-workers",
  tokenizer: "no-hits",
  "kv-events": "no-events",
  hashes: "no-hits",
  "cache-hits": "no-hits",
  clocks: "clocks",
};

/** Looks at everything that must hold before two policies can be compared here, in the order in which it should be mended. */
export function checkFleet(facts: FleetFacts): Finding[] {
  return CHECKS.map((check) => withGuide(check(facts)));
}

/** What has failed names the place in the guide. */
function withGuide(finding: Finding): Finding {
  return finding.status === "failed" ? { ...finding, guide: `${GUIDE}#${SECTIONS[finding.code]}` } : finding;
}

const reachable: FleetCheck = (facts) => {
  const code = "reachable";
  if (!facts.isGatewayReachable) {
    return no(
      code,
      `the gateway at ${facts.gatewayUrl} does not answer`,
      "start it, or name its address and its admin port",
    );
  }
  if (facts.workers.length === 0)
    return no(code, "the gateway knows no workers", "name some with --worker, or see --discover");
  const silent = facts.workers.filter(({ isReachable }) => !isReachable);
  if (silent.length === 0) return yes(code, `the gateway and ${facts.workers.length} workers answer`);
  return no(code, `no answer from ${list(silent)}`, "start them, or take them out of the gateway's list");
};

const healthy: FleetCheck = ({ workers }) => {
  const code = "healthy";
  const ill = workers.filter(
    ({ isReachable, isHealthy, phase }) => isReachable && !(isHealthy && (phase ?? "ready") === "ready"),
  );
  if (ill.length === 0) return yes(code, "every worker is healthy and ready");
  const states = ill.map(({ name, isHealthy, phase }) => `${name} is ${isHealthy ? phase : "unhealthy"}`).join(", ");
  return no(code, states, "look at /health and the logs of these workers; undrain those that drain");
};

const sameModel: FleetCheck = ({ workers }) => {
  const code = "same-model";
  const lists = byValue(workers, ({ models }) => models?.toSorted().join(", "));
  if (lists.size === 0) return unknown(code, "no worker says which model it serves");
  const [first] = lists.keys();
  if (lists.size === 1) return yes(code, `every worker serves ${first}`);
  return no(
    code,
    differences(lists, "serves"),
    "a request may go to any worker: serve one model under one name everywhere",
  );
};

const sameBlockSize: FleetCheck = ({ blockTokens, workers }) => {
  const code = "same-block-size";
  if (blockTokens === undefined) return unknown(code, "the gateway does not say how many tokens its blocks have");
  const sizes = byValue(workers, (worker) => worker.blockTokens?.toString());
  const others = new Map([...sizes].filter(([size]) => size !== String(blockTokens)));
  if (others.size > 0) {
    const found = `${differences(others, "has blocks of")}; the gateway counts in blocks of ${blockTokens}`;
    return no(
      code,
      found,
      "start engines and gateway with one size: --block-size (vLLM), --page-size (SGLang), --block-tokens here",
    );
  }
  if (sizes.size === 0)
    return unknown(code, `no worker tells its block size; the gateway counts in blocks of ${blockTokens}`);
  return yes(code, `blocks of ${blockTokens} tokens everywhere`);
};

const equalWorkers: FleetCheck = ({ workers }) => {
  const code = "equal-workers";
  for (const [what, of] of [
    ["KV blocks", (worker: WorkerFacts) => worker.kvBlocks],
    ["batch slots", (worker: WorkerFacts) => worker.batchSlots],
  ] as const) {
    const known = workers.flatMap((worker) => of(worker) ?? []);
    if (known.length === 0 || Math.min(...known) >= (1 - POOL_TOLERANCE) * Math.max(...known)) continue;
    const found = workers.map((worker) => `${worker.name} has ${of(worker) ?? "?"}`).join(", ");
    return no(
      code,
      `${what} differ: ${found}`,
      "use equal machines and flags, or the comparison measures the machines",
    );
  }
  const isKnown = workers.some(({ kvBlocks, batchSlots }) => kvBlocks !== undefined || batchSlots !== undefined);
  return isKnown ? yes(code, "workers have the same room") : unknown(code, "no worker tells its size");
};

const tokenizer: FleetCheck = ({ tokens, tokensProblem, tokenizer: source, workers }) => {
  const code = "tokenizer";
  if (tokensProblem !== undefined) return unknown(code, tokensProblem);
  if (tokens === undefined) {
    const found = `the gateway's tokens are ${source === undefined ? "unknown" : `guessed (--tokenizer ${source})`}`;
    return no(
      code,
      found,
      "give --tokenizer the model's files, or vllm+URL: without the engines' tokens no event can be matched",
    );
  }
  const telling = workers.filter((worker) => worker.tokens !== undefined);
  if (telling.length === 0) return unknown(code, "no worker answers /tokenize");
  const others = telling.filter((worker) => worker.tokens?.join(" ") !== tokens.join(" "));
  if (others.length === 0) return yes(code, `the gateway's ${tokens.length} tokens of a text are the engines' own`);
  return no(
    code,
    `${list(others)} makes other tokens of the same text`,
    "give --tokenizer the files of the model that they serve",
  );
};

const events: FleetCheck = ({ workers }) => {
  const code = "kv-events";
  const told = workers.filter(({ newEvents }) => newEvents !== undefined);
  if (told.length === 0) return unknown(code, "nobody tells whether KV events arrive");
  const deaf = told.filter(({ newEvents }) => newEvents === 0);
  if (deaf.length > 0) {
    return no(
      code,
      `a new prompt brought no KV event from ${list(deaf)}`,
      "turn events on in the engine, and check the events address, port and topic; docs/guides has the flags",
    );
  }
  const partial = told.filter(({ indexState }) => indexState !== "live");
  if (partial.length === 0) return yes(code, `KV events arrive from all ${told.length} workers`);
  const states = partial.map(({ name, indexState }) => `${name} is ${indexState}`).join(", ");
  return no(
    code,
    `events arrive, but ${states}`,
    "events were lost that nobody keeps: restart these engines with a replay endpoint or a larger buffer",
  );
};

const hashes: FleetCheck = ({ workers }) => {
  const code = "hashes";
  const told = workers.filter(({ matchedBlocks }) => matchedBlocks !== undefined);
  if (told.length === 0) return unknown(code, "nobody tells what the index finds");
  const lost = told.filter(({ matchedBlocks = 0, probeBlocks }) => matchedBlocks < probeBlocks - LAST_BLOCK);
  if (lost.length === 0) return yes(code, "what each worker has cached is found there by the gateway");
  const found = lost.map(
    ({ name, matchedBlocks, probeBlocks }) => `${matchedBlocks} of ${probeBlocks} blocks on ${name}`,
  );
  return no(
    code,
    `of a prompt that was just computed the gateway finds ${found.join(", ")}`,
    "tokens, chat template, block size or salt differ between gateway and engine",
  );
};

const hits: FleetCheck = ({ workers }) => {
  const code = "cache-hits";
  const told = workers.filter(({ repeatedCachedTokens }) => repeatedCachedTokens !== undefined);
  if (told.length === 0)
    return unknown(code, "no engine reports cached tokens (--enable-prompt-tokens-details, --enable-cache-report)");
  const cold = told.filter(({ repeatedCachedTokens }) => repeatedCachedTokens === 0);
  if (cold.length === 0) return yes(code, "a repeated prompt is found in every cache");
  return no(
    code,
    `a prompt sent twice was computed twice by ${list(cold)}`,
    "turn prefix caching on: --enable-prefix-caching (vLLM), no --disable-radix-cache (SGLang), enable_block_reuse (TensorRT-LLM)",
  );
};

const clocks: FleetCheck = ({ workers }) => {
  const code = "clocks";
  const told = workers.filter(({ clockAheadMs }) => clockAheadMs !== undefined);
  if (told.length === 0) return { ...unknown(code, "no worker tells the time"), isFatal: false };
  const wrong = told.filter(({ clockAheadMs = 0 }) => Math.abs(clockAheadMs) > CLOCK_TOLERANCE_MS);
  if (wrong.length === 0) return { ...yes(code, "clocks agree"), isFatal: false };
  const found = wrong
    .map(({ name, clockAheadMs = 0 }) => `${name} by ${(clockAheadMs / 1000).toFixed(0)} s`)
    .join(", ");
  return {
    ...no(code, `clocks differ from ours: ${found}`, "set them by NTP: the lag of events is measured by them"),
    isFatal: false,
  };
};

const CHECKS: readonly FleetCheck[] = [
  reachable,
  healthy,
  sameModel,
  sameBlockSize,
  equalWorkers,
  tokenizer,
  events,
  hashes,
  hits,
  clocks,
];

function yes(code: string, detail: string): Finding {
  return { ...passed(code, detail), isFatal: true };
}

function no(code: string, detail: string, advice: string): Finding {
  return { ...failed(code, detail), advice, isFatal: true };
}

function unknown(code: string, detail: string): Finding {
  return { ...unavailable(code, detail), isFatal: true };
}

function list(workers: readonly WorkerFacts[]): string {
  return workers.map(({ name }) => name).join(", ");
}

/** Workers by what they say; those that say nothing are left out. */
function byValue(
  workers: readonly WorkerFacts[],
  of: (worker: WorkerFacts) => string | undefined,
): Map<string, WorkerFacts[]> {
  const groups = new Map<string, WorkerFacts[]>();
  for (const worker of workers) {
    const value = of(worker);
    if (value !== undefined) groups.set(value, [...(groups.get(value) ?? []), worker]);
  }
  return groups;
}

function differences(groups: ReadonlyMap<string, readonly WorkerFacts[]>, verb: string): string {
  return [...groups].map(([value, workers]) => `${list(workers)} ${verb} ${value}`).join("; ");
}

/**
 * Draws a suite: workloads, fleets and arrivals that nobody has chosen. The same seed draws the same suite.
 *
 *   node scripts/draw-suite.mjs SEED WORKLOADS > presets/policy-random/suite.yaml
 */
import { Document, isCollection } from "yaml";

const FLEETS = [
  { model: "llama-3.1-8b", gpus: ["a100-40gb", "a100-80gb", "h100", "h200", "b200"], tensorParallel: [1] },
  { model: "qwen3-8b", gpus: ["a100-40gb", "a100-80gb", "h100", "h200"], tensorParallel: [1] },
  { model: "qwen3-32b", gpus: ["h100", "h200", "b200"], tensorParallel: [1, 2], weights: "fp8" },
  { model: "llama-3.1-70b", gpus: ["h100", "h200", "b200"], tensorParallel: [2, 4], weights: "fp8" },
];
/** Three engines, the first as often as the others together. */
const PROFILES = ["vllm", "vllm", "trtllm", "sglang"];

const [seed, count] = process.argv.slice(2).map(Number);
if (!Number.isInteger(seed) || !Number.isInteger(count) || count < 1) {
  process.stderr.write("usage: node scripts/draw-suite.mjs SEED WORKLOADS\n");
  process.exit(2);
}
const uniform = stream(seed);
const drawn = Array.from({ length: count }, (_, at) => ({ at: at + 1, fleet: drawFleet(), ...drawTraffic() }));
const suite = {
  suite: "policy-random",
  about: `${count} workloads x 4 loads x 3 fleet sizes, a fixed part of them, all drawn by chance`,
  seed,
  loads: [0.35, 0.65, 0.85, 1],
  workers: [2, 4, 9],
  parts: 4,
  full: { loads: [0.35, 0.65, 0.85, 1], workers: [2, 4, 9], keep: 1, perturbedEach: 1, runs: 4, requests: 500 },
  quick: { loads: [0.65], workers: [4], keep: 1, perturbedEach: 1, runs: 3, requests: 400 },
  fleets: Object.fromEntries(drawn.map(({ at, fleet }) => [`fleet-${at}`, fleet])),
  workloads: drawn.map(({ at, workload, arrivals, sessionSeconds }) => ({
    name: `drawn-${at}`,
    about: "drawn by chance",
    fleet: `fleet-${at}`,
    workload,
    sessionSeconds,
    ...arrivals,
    slo: { ttftMs: 1000, tpotMs: 60 },
  })),
  perturbedShare: 0,
  perturbations: [{ name: "events-late", kvEventDelayMs: 150 }],
  tunedRivals: "../policy-suite/tuned-rivals.yaml",
};
const title = `# Written by \`node scripts/draw-suite.mjs ${seed} ${count}\`: traffic and fleets drawn by chance, on which no policy was tuned.`;
process.stdout.write(`${title}\n# docs/guides/policy-suite.md says more.\n${inLines(suite)}`);

/** One line for each fleet and workload, as far as they fit. */
function inLines(value) {
  const document = new Document(value);
  for (const { value: part } of document.contents.items) {
    if (!isCollection(part)) continue;
    const entries = part.items.map((item) => item.value ?? item).filter(isCollection);
    for (const whole of entries.length > 0 ? entries : [part]) whole.flow = true;
  }
  return document.toString({ lineWidth: 160 });
}

function drawFleet() {
  const { model, gpus, tensorParallel, weights } = pick(FLEETS);
  const gpu = pick(gpus);
  const isSmall = pick([false, true, true]) && !gpu.startsWith("a100");
  const quantized = weights !== undefined || isSmall ? { weights: "fp8", kv: "fp8" } : {};
  const engine = { profile: pick(PROFILES), maxSequences: pick([32, 64, 128, 256, 512]) };
  const chunked = pick([false, true])
    ? { maxTokensPerStep: pick([2048, 4096, 8192, 16384]), chunkedPrefill: true }
    : {};
  return {
    model,
    gpu,
    tensorParallel: pick(tensorParallel),
    workers: 4,
    engine: { ...engine, ...chunked },
    blockTokens: pick([16, 32, 64]),
    ...quantized,
  };
}

function drawTraffic() {
  return uniform() < 0.7 ? drawGroups() : drawConversations();
}

function drawGroups() {
  const groups = pick([1, 1, 2, 5, 10, 30, 100, 500]);
  const prefixTokens = range(60, 12_000);
  const suffixTokens = range(8, 3000);
  const outputTokens = range(1, 900);
  const skew = pick([0, 0, 0.6, 1, 1.4]);
  const burstSize = pick([1, 1, 1, 2, 3, 5, 8, 16]);
  // Of bursts, every other one is of one prefix.
  const isOfOnePrefix = burstSize > 1 && pick([false, true]);
  const prefixGroups = { groups, ...(skew > 0 && { skew }), prefixTokens, suffixTokens, outputTokens };
  return {
    workload: { prefixGroups: isOfOnePrefix ? { ...prefixGroups, groupRun: burstSize } : prefixGroups },
    arrivals: burstSize > 1 ? { arrivals: "burst", burstSize } : {},
    sessionSeconds: Math.min(60, 3 + Math.round(middle(outputTokens) * 0.05)),
  };
}

function drawConversations() {
  const turns = pick([
    [1, 3],
    [2, 4],
    [3, 6],
    [5, 12],
  ]);
  const outputTokens = pick([40, 150, 400, 900]);
  const thinkMs = pick([
    [100, 1000],
    [1000, 5000],
    [5000, 20_000],
  ]);
  const conversations = {
    preset: "multi-turn",
    starters: pick([1, 4, 20, 200]),
    starterTokens: range(100, 8000),
    turns,
    outputTokensByTurn: [outputTokens],
    outputVariation: pick([0.2, 0.6]),
    tailShare: 0,
    thinkMs,
  };
  const turnSeconds = outputTokens * 0.03 + middle(thinkMs) / 1000;
  return { workload: { conversations }, arrivals: {}, sessionSeconds: 3 + Math.round(middle(turns) * turnSeconds) };
}

/** A range whose lower end is as likely to be between 10 and 100 as between 100 and 1,000. */
function range(least, most) {
  const low = Math.round(least * (most / least) ** uniform());
  return [low, Math.min(most, Math.round(low * pick([1, 1.5, 2, 4, 8])))];
}

function middle([low, high]) {
  return (low + high) / 2;
}

function pick(choices) {
  return choices[Math.floor(uniform() * choices.length)];
}

/** Uniform numbers below 1 (mulberry32): `Math.random` cannot be drawn from again. */
function stream(start) {
  let state = start | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

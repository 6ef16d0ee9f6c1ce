import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { engineArgumentsText } from "./engine-arguments.ts";
import { readFault } from "./fault-option.ts";
import { readKvEventsConfig } from "./kv-events-option.ts";
import { readSettings, settingKeys } from "./settings.ts";
import { simulatedEngine } from "./simulated-engine.ts";

/** The worker of the mission's demo: a TensorRT-LLM engine on one H200. */
const DEMO = {
  engine: "trtllm",
  modelPath: "/models/Llama-3.1-70B-Instruct-FP8",
  tensorParallelSize: "1",
  maxNumTokens: "16384",
  maxBatchSize: "64",
  publishEventsAndMetrics: true,
};
const DEMO_OVERRIDES = JSON.stringify({
  enable_chunked_prefill: true,
  disable_overlap_scheduler: false,
  kv_cache_config: { dtype: "fp8", free_gpu_memory_fraction: 0.9, tokens_per_block: 32 },
});

describe("the flags of a worker", () => {
  test("of the demo give the engine of the demo", () => {
    const settings = readSettings({ ...engineArgumentsText(DEMO_OVERRIDES), ...DEMO });
    const { engine, kv, plan } = simulatedEngine(settings);
    expect(engine.limits).toMatchObject({
      blockTokens: 32,
      maxSequences: 64,
      maxTokensPerStep: 16_384,
      chunkedPrefill: true,
      prefixReuse: true,
    });
    expect(engine.profile).toMatchObject({ name: "trtllm", asyncSchedulingDepth: 1 });
    expect([kv, plan.memoryFraction, plan.poolRule]).toEqual(["fp8", 0.9, "of-free"]);
    // FP8 weights: the model would not leave room for anything else on this card otherwise.
    expect(plan.weightBytes).toBeLessThan(80e9);
  });

  test("turn the overlap scheduler off and drafts on", () => {
    const settings = readSettings({
      disableOverlapScheduler: true,
      modelPath: "llama-3.1-70b-fp8",
      speculativeModel: "llama-3.1-8b",
      numSpeculativeTokens: "4",
    });
    const { engine, plan } = simulatedEngine(settings);
    expect(engine.profile.asyncSchedulingDepth).toBe(0);
    expect(engine.speculation).toMatchObject({ drafts: 4, acceptanceMean: 0.7 });
    expect(plan.draftWeightBytes).toBeGreaterThan(10e9);
  });

  test.each([
    [{ maxNumTokens: "many" }, '--max-num-tokens must be a number, got "many"'],
    [{ maxBatchSize: "0" }, '--max-batch-size must be 1 or more, got "0"'],
    [{ modelPath: "gpt-5" }, "--model-path is not a known model; there are llama-3.1-8b"],
    [{ freeGpuMemoryFraction: "1.5" }, '--free-gpu-memory-fraction must be 1 or less, got "1.5"'],
    [{ name: "工人" }, "--name must be of printable Latin-1 characters"],
    [{ register: "gateway" }, "--register must be valid"],
    [{ colour: "red" }, "colour is not a known field"],
  ])("%o is refused in one line", (flags, message) => {
    expect(() => readSettings(flags)).toThrow(message);
  });

  test("that cannot fit are refused with the arithmetic and what to try", () => {
    const refuse =
      (flags: object): (() => void) =>
      () =>
        void simulatedEngine(readSettings({ ...flags }));
    expect(refuse({ modelPath: "llama-3.1-70b", gpu: "h100" })).toThrow(
      /^llama-3\.1-70b does not fit 1 x h100: 85\.5 GB x 0\.9 = 77\.0 GB usable; 141\.1 GB weights .* no fraction is enough/,
    );
    expect(
      refuse({ modelPath: "llama-3.1-70b-fp8", gpu: "h100", freeGpuMemoryFraction: 0.9, maxSeqLen: 4096 }),
    ).toThrow(/try --free-gpu-memory-fraction 0\.95/);
    expect(refuse({ maxNumTokens: 32, maxBatchSize: 64 })).toThrow(
      "--max-num-tokens is 32, less than the 64 that 64 decoding requests take in a step",
    );
  });

  test("of the engine's own configuration are checked too", () => {
    expect(() => engineArgumentsText('{"kv_cache_config": {"colour": 1}}')).toThrow(
      "kv_cache_config.colour is not a known field (--override-engine-args)",
    );
    expect(() => engineArgumentsText("{")).toThrow("--override-engine-args is neither YAML nor JSON");
  });
});

test("every setting and its default are in the reference", () => {
  const reference = readFileSync(new URL("../../../../docs/reference/worker.md", import.meta.url), "utf8");
  const rows = reference.split("\n").filter((line) => line.startsWith("| `--"));
  const isIn = (row: string, flag: string): boolean => new RegExp(`\`${flag.replace("--", "--(no-)?")}[\` ]`).test(row);
  const missing = settingKeys().filter(({ flag, default: value }) => {
    const row = rows.find((line) => isIn(line, flag));
    const isWord = typeof value === "string" || typeof value === "number";
    return row === undefined || (isWord && !row.split("|")[2].includes(String(value)));
  });
  expect(missing).toEqual([]);
});

describe("faults at the start", () => {
  test("are named, with or without a value, and add up", () => {
    expect(readFault("drop-events", readFault("slow=3", readFault("refuse")))).toEqual({
      refuse: 503,
      slow: 3,
      "drop-events": 1,
    });
    expect(readFault("hang=all")).toEqual({ hang: "all" });
  });

  test.each([
    ["sleepy", 'no fault is called "sleepy"; there are crash, hang, slow'],
    ["slow", "--fault slow needs a value"],
    ["slow=0.5", "slow must be 1 or more, got 0.5"],
  ])("%s is refused", (written, message) => {
    expect(() => readFault(written)).toThrow(message);
  });
});

describe("vLLM's configuration of events", () => {
  test("says where to publish, or that nothing is published", () => {
    expect(
      readKvEventsConfig('{"publisher":"zmq","endpoint":"tcp://*:5600","replay_endpoint":"tcp://*:5601"}'),
    ).toEqual({
      endpoint: "tcp://*:5600",
      replayEndpoint: "tcp://*:5601",
      topic: "",
      replayDepth: 10_000,
    });
    expect(readKvEventsConfig('{"enable_kv_cache_events":false}')).toBeUndefined();
  });

  test("takes a configuration of vLLM's with all of its fields", () => {
    const written = {
      enable_kv_cache_events: true,
      publisher: null,
      endpoint: "tcp://*:5557",
      replay_endpoint: "tcp://*:5558",
      buffer_steps: 500,
      hwm: 100_000,
      max_queue_size: 100_000,
      topic: "kv",
    };
    expect(readKvEventsConfig(JSON.stringify(written))).toEqual({
      endpoint: "tcp://*:5557",
      replayEndpoint: "tcp://*:5558",
      topic: "kv",
      replayDepth: 500,
    });
  });

  test("is JSON with known fields", () => {
    expect(() => readKvEventsConfig("zmq")).toThrow("--kv-events-config is not JSON");
    expect(() => readKvEventsConfig('{"hwn":1}')).toThrow("hwn is not a known field");
    expect(() => readKvEventsConfig('{"port":1}')).toThrow("port is not a known field");
  });
});

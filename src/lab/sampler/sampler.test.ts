import { describe, expect, test } from "vitest";
import { NS_PER_SECOND } from "../../core/clock.ts";
import { withCounters } from "./cache-figures.ts";
import { Sampler, type SampledPage } from "./sampler.ts";
import { workerFigures } from "./worker-figures.ts";

const WINDOW = { startNs: 10 * NS_PER_SECOND, endNs: 30 * NS_PER_SECOND, drainNs: 0 };
const UNKNOWN_CACHE = {
  ceiling: "unavailable",
  predicted: "unavailable",
  observed: "unavailable",
  predictedRequests: 0,
  observedRequests: 0,
} as const;

/** Reads the pages at these seconds; `textOf` is what a page says then, undefined where it does not answer. */
async function sampled(
  pages: readonly SampledPage[],
  seconds: readonly number[],
  textOf: (url: string, second: number) => string | undefined,
): Promise<Sampler> {
  let second = 0;
  const sampler = new Sampler({
    pages,
    clock: { nowNs: () => second * NS_PER_SECOND },
    read: (url) => {
      const text = textOf(url, second);
      return text === undefined ? Promise.reject(new Error("no answer")) : Promise.resolve(text);
    },
  });
  for (second of seconds) await sampler.sample();
  return sampler;
}

function card(busy: number, labels = ""): string {
  return [
    `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"${labels}} ${100 * busy}`,
    `DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1"${labels}} 1024`,
    `DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-1"${labels}} 3072`,
    `DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1"${labels}} 400`,
  ].join("\n");
}

describe("the figures of a worker", () => {
  const page = { worker: "a", url: "http://a/metrics" };
  const engine = (second: number): string =>
    [
      `vllm:num_requests_waiting{engine="0"} ${second}`,
      `vllm:kv_cache_usage_perc{engine="0"} ${second / 100}`,
      `vllm:num_preemptions_total{engine="0"} ${second * 2}`,
      `vllm:spec_decode_num_draft_tokens_total{engine="0"} ${second * 100}`,
      `vllm:spec_decode_num_accepted_tokens_total{engine="0"} ${second * 70}`,
      card(second / 100),
    ].join("\n");

  test("are those of the window, means with their spread, counters by how much they rose", async () => {
    const { histories } = await sampled([page], [0, 10, 20, 30, 40], (_, second) => engine(second));
    const [a] = workerFigures(["a"], histories, WINDOW);
    expect(a).toMatchObject({ queueMax: 30, kvOccupancyMax: 0.3, preemptions: 40 });
    expect(a.kvOccupancy).toBeCloseTo(0.2);
    expect(a.busyShare).toBeCloseTo(0.2);
    expect(a.draftAcceptance).toBeCloseTo(0.7);
    expect(a.sampled).toMatchObject({ samples: 3, busyShareMin: 0.1, busyShareMax: 0.3, powerWatts: 400, restarts: 0 });
    expect(a.sampled?.memoryUsedBytes).toBe(1024 * 1024 * 1024);
    expect(a.sampled?.memoryTotalBytes).toBe(4096 * 1024 * 1024);
  });

  test("are unavailable, and not 0, where nobody tells them", async () => {
    const { histories } = await sampled([page], [10, 20], () => "vllm:num_requests_waiting 3\n");
    const [a, b] = workerFigures(["a", "b"], histories, WINDOW);
    expect(a).toMatchObject({ queueMax: 3, busyShare: "unavailable", evictions: "unavailable" });
    expect(a.sampled).toMatchObject({ powerWatts: "unavailable", restarts: "unavailable" });
    expect(b).toMatchObject({ queueMax: "unavailable", kvOccupancy: "unavailable", draftAcceptance: "unavailable" });
  });

  test("show a restart by a counter that fell, and have no sum over it", async () => {
    const { histories } = await sampled([page], [10, 20, 30], (_, second) => {
      return `vllm:generation_tokens_total ${second === 20 ? 500 : 100}\nvllm:num_preemptions_total ${second === 20 ? 5 : 1}`;
    });
    const [a] = workerFigures(["a"], histories, { ...WINDOW, startNs: 20 * NS_PER_SECOND });
    expect(a.sampled?.restarts).toBe(1);
    expect(a.preemptions).toBe("unavailable");
  });

  test("go on over a page that once did not answer", async () => {
    const { histories } = await sampled([page], [10, 20, 30], (_, second) =>
      second === 20 ? undefined : engine(second),
    );
    expect(workerFigures(["a"], histories, WINDOW)[0]).toMatchObject({ queueMax: 30, preemptions: 40 });
  });

  test("take cards from an exporter's page by the pod that uses them", async () => {
    const pages = [page, { worker: undefined, url: "http://dcgm/metrics" }];
    const { histories } = await sampled(pages, [10, 20], (url) => {
      return url.includes("dcgm") ? card(0.5, ',pod="a"') : "vllm:num_requests_waiting 0";
    });
    expect(workerFigures(["a", "b"], histories, WINDOW)).toMatchObject([
      { busyShare: 0.5 },
      { busyShare: "unavailable" },
    ]);
  });
});

describe("the shares of the cache", () => {
  const frontend = { worker: undefined, url: "http://frontend/metrics" };

  test("come from the frontend's count where answers do not tell, and name it", async () => {
    const { histories } = await sampled([frontend], [10, 30], (_, second) =>
      [
        `dynamo_frontend_cached_tokens_sum{model="m"} ${second * 60}`,
        `dynamo_frontend_cached_tokens_count{model="m"} ${second}`,
        `dynamo_frontend_input_sequence_tokens_sum{model="m"} ${second * 100}`,
      ].join("\n"),
    );
    const cache = withCounters(UNKNOWN_CACHE, histories, WINDOW, 20);
    expect(cache).toMatchObject({ observed: 0.6, observedRequests: 20, predicted: "unavailable" });
    expect(cache.observedSource).toBe("dynamo_frontend_cached_tokens");
  });

  test("come from the answers where they tell, whatever a frontend counts", async () => {
    const { histories } = await sampled([frontend], [10, 30], (_, second) => {
      return `dynamo_frontend_cached_tokens_sum ${second}\ndynamo_frontend_input_sequence_tokens_sum ${second * 10}`;
    });
    const cache = withCounters({ ...UNKNOWN_CACHE, observed: 0.9, observedRequests: 5 }, histories, WINDOW, 20);
    expect(cache).toMatchObject({ observed: 0.9, observedRequests: 5, observedSource: "usage" });
  });

  test("are predicted by the gateway's counters", async () => {
    const { histories } = await sampled([frontend], [10, 30], (_, second) => {
      return `warmpath_predicted_cached_tokens_total{policy="kv-cost"} ${second * 3}\nwarmpath_prompt_tokens_total{policy="kv-cost"} ${second * 4}`;
    });
    const cache = withCounters(UNKNOWN_CACHE, histories, WINDOW, 20);
    expect(cache).toMatchObject({ predicted: 0.75, predictedRequests: 20, predictedSource: "gateway-metrics" });
    expect(cache.observedSource).toBeUndefined();
  });
});

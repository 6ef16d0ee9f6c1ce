import { expect, test } from "vitest";
import { WorkerWindow } from "./worker-window.ts";

test("a worker's rates are those of the requests that ended there within the window", () => {
  const window = new WorkerWindow(60_000);
  window.add({ worker: "a", endMs: 1000, promptTokens: 100, cachedTokens: 0 });
  window.add({ worker: "a", endMs: 50_000, promptTokens: 100, cachedTokens: 90 });
  window.add({ worker: "b", endMs: 55_000, promptTokens: 100, cachedTokens: undefined });
  window.add({ worker: "a", endMs: 60_000, promptTokens: 300, cachedTokens: 150 });
  expect(window.rates(60_000)).toEqual(
    new Map([
      ["a", { requestsPerSecond: 3 / 60, hitShare: 240 / 500 }],
      ["b", { requestsPerSecond: 1 / 60, hitShare: null }],
    ]),
  );
  expect(window.rates(70_000).get("a")).toEqual({ requestsPerSecond: 2 / 60, hitShare: 240 / 400 });
  expect(window.rates(200_000)).toEqual(new Map());
});

test("what has left the window is not kept", () => {
  const window = new WorkerWindow(1000);
  for (let second = 0; second < 1000; second++) {
    window.add({ worker: "a", endMs: second * 1000, promptTokens: 1, cachedTokens: 1 });
    expect(window.rates(second * 1000).get("a")?.requestsPerSecond).toBeLessThanOrEqual(2);
  }
});

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createPolicy } from "../../core/policy/registry.ts";
import { Router } from "../../core/router.ts";
import type { OfferedRequest } from "../decider.ts";
import { LocalDecider } from "../local-decider.ts";
import { KeyLimitedDecider } from "./key-limited-decider.ts";
import { KeyLimits } from "./key-limits.ts";
import { KeyPauses } from "./key-pauses.ts";

const request = (id: string): OfferedRequest => ({
  id,
  key: "a",
  promptTokens: 1,
  sequence: new Uint32Array(0),
  blocks: 0,
  preparation: { parseMs: 0, tokenizeMs: 0, hashMs: 0 },
});

const allowing = (requestsPerMinute: number): [{ name: string; sha256: string; requestsPerMinute: number }] => [
  { name: "a", sha256: "", requestsPerMinute },
];

let decider: LocalDecider;
let limits: KeyLimits;
let pauses: KeyPauses;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const router = new Router(createPolicy("round-robin"), { blockTokens: 16, maxReplicas: 1, maxBlocks: 16 });
  decider = new LocalDecider({ router });
  decider.fleet.appeared({ name: "w", url: "http://w:1" });
  limits = new KeyLimits(allowing(1), 0);
  pauses = new KeyPauses(new KeyLimitedDecider(decider, limits));
});

afterEach(async () => {
  vi.useRealTimers();
  await decider.close();
});

/** What a request of the key is told: nothing where it is placed. */
function offer(id: string): string | undefined {
  let heard: string | undefined;
  pauses.offer(request(id), { place: () => {}, over: () => {}, shed: ({ code }) => (heard = code) });
  return heard;
}

describe("a key that was turned away", () => {
  test("is told so at once, and when to come again, for as long as nothing else can be true", () => {
    expect([offer("1"), offer("2")]).toEqual([undefined, "key_requests"]);
    expect(pauses.of("a", performance.now())).toMatchObject({ code: "key_requests", retryAfterMs: 60_000 });
    vi.advanceTimersByTime(500);
    expect(pauses.of("a", performance.now())).toMatchObject({ code: "key_requests", retryAfterMs: 59_500 });
    expect(pauses.of("b", performance.now())).toBeUndefined();
  });

  test("is not kept waiting by limits that are no longer its limits, whoever heard of the new ones first", () => {
    expect([offer("1"), offer("2")]).toEqual([undefined, "key_requests"]);
    pauses.forget();
    expect(offer("3")).toBe("key_requests");
    limits.replace(allowing(100), performance.now());
    vi.advanceTimersByTime(1000);
    expect(pauses.of("a", performance.now())).toBeUndefined();
    expect(offer("4")).toBeUndefined();
  });
});

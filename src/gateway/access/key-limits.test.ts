import { describe, expect, test } from "vitest";
import type { ApiKey } from "./api-key.ts";
import { KeyLimits } from "./key-limits.ts";

const key = (allowance: Partial<ApiKey>, name = "a"): ApiKey => ({ name, sha256: "", ...allowance });

describe("the limits of keys", () => {
  test("let requests in while there are some left, and say when there will be again", () => {
    const limits = new KeyLimits([key({ requestsPerMinute: 2 })], 0);
    expect([limits.admit("a", 10, 0), limits.admit("a", 10, 0)]).toEqual([undefined, undefined]);
    expect(limits.admit("a", 10, 0)).toEqual({
      code: "key_requests",
      knob: "requestsPerMinute",
      value: 2,
      threshold: 2,
      retryAfterMs: 30_000,
      message: "this key has used 2; its requestsPerMinute is 2",
    });
    expect(limits.admit("a", 10, 30_000)).toBeUndefined();
  });

  test("take prompts at once and answers as they come, and then wait for what was overdrawn", () => {
    const limits = new KeyLimits([key({ tokensPerMinute: 600 })], 0);
    expect(limits.admit("a", 500, 0)).toBeUndefined();
    limits.spend("a", 400, 0);
    // 300 owed at ten a second, and one more to have any.
    expect(limits.admit("a", 1, 0)).toMatchObject({ code: "key_tokens", value: 900, retryAfterMs: 30_100 });
    expect(limits.admit("a", 10_000, 30_100)).toBeUndefined();
  });

  test("bound what is under way, and what was turned away holds nothing", () => {
    const limits = new KeyLimits([key({ maxStreams: 1, requestsPerMinute: 100 })], 0);
    expect(limits.admit("a", 1, 0)).toBeUndefined();
    expect(limits.admit("a", 1, 0)).toMatchObject({ code: "key_streams", value: 1, threshold: 1 });
    limits.release("a");
    expect(limits.admit("a", 1, 0)).toBeUndefined();
  });

  test("are each key's own, and none where none are given", () => {
    const limits = new KeyLimits([key({ requestsPerMinute: 1 }), key({}, "b")], 0);
    limits.admit("a", 1, 0);
    expect(limits.admit("a", 1, 0)?.code).toBe("key_requests");
    for (let i = 0; i < 100; i++) expect(limits.admit("b", 1e6, 0)).toBeUndefined();
    expect(limits.admit("not in the file", 1, 0)).toBeUndefined();
  });

  test("remember what was used when the file changes, except under a new allowance", () => {
    const limits = new KeyLimits([key({ requestsPerMinute: 1, maxStreams: 2 })], 0);
    limits.admit("a", 1, 0);
    limits.replace([key({ requestsPerMinute: 1, maxStreams: 1 })], 0);
    expect(limits.admit("a", 1, 0)?.code).toBe("key_streams");
    limits.release("a");
    expect(limits.admit("a", 1, 0)?.code).toBe("key_requests");
    limits.replace([key({ requestsPerMinute: 5 })], 0);
    expect(limits.admit("a", 1, 0)).toBeUndefined();
  });
});

import { beforeEach, describe, expect, it } from "vitest";
import { AdmissionQueue } from "./admission-queue.ts";

describe("AdmissionQueue", () => {
  let queue: AdmissionQueue<string>;

  beforeEach(() => {
    queue = new AdmissionQueue({ maxRequests: 3, maxWaitNs: 100 });
  });

  function push(id: string, priority = 0, nowNs = 0, deadlineNs?: number): ReturnType<typeof queue.push> {
    return queue.push(`item ${id}`, { id, priority, nowNs, deadlineNs });
  }

  function order(): string[] {
    const ids: string[] = [];
    queue.forEach((entry) => ids.push(entry.id));
    return ids;
  }

  it("puts larger priorities first and keeps arrival order within one", () => {
    push("a", 1);
    push("b", 2);
    push("c", 1);
    expect(order()).toEqual(["b", "a", "c"]);
    expect(queue.peek()?.item).toBe("item b");
  });

  it("turns away what has no higher priority than anything in a full queue", () => {
    push("a");
    push("b");
    push("c");
    expect(push("d")).toEqual({ kind: "full" });
    expect(queue.size).toBe(3);
  });

  it("displaces the youngest of the lowest priority", () => {
    push("a", 1);
    push("b", 0);
    push("c", 0);
    expect(push("d", 2)).toMatchObject({ kind: "displaced", entry: { id: "c", item: "item c", priority: 0 } });
    expect(order()).toEqual(["d", "a", "b"]);
  });

  it("has no place at all with a limit of 0", () => {
    queue = new AdmissionQueue({ maxRequests: 0, maxWaitNs: 100 });
    expect(push("a", 9)).toEqual({ kind: "full" });
    expect(queue.nextExpiryNs()).toBeUndefined();
  });

  it("expires by deadline or by the longest wait, whichever is first, and says which", () => {
    push("patient", 0, 10, 500);
    push("hurried", 0, 20, 50);
    expect(queue.nextExpiryNs()).toBe(50);
    expect(queue.expire(49)).toEqual([]);
    expect(queue.expire(50)).toMatchObject([{ entry: { id: "hurried" }, reason: "deadline" }]);
    expect(queue.nextExpiryNs()).toBe(110);
    expect(queue.expire(110)).toMatchObject([{ entry: { id: "patient" }, reason: "queue-timeout" }]);
    expect(queue.size).toBe(0);
  });

  it("drains in order, past what is kept, until told to stop", () => {
    push("a", 2);
    push("b", 1);
    push("c", 0);
    const seen: string[] = [];
    const taken = queue.drain((entry) => {
      seen.push(entry.id);
      return entry.id === "b" ? "stop" : "taken";
    });
    expect(taken).toBe(1);
    expect(seen).toEqual(["a", "b"]);
    expect(order()).toEqual(["b", "c"]);
    expect(queue.drain((entry) => (entry.id === "b" ? "kept" : "taken"))).toBe(1);
    expect(order()).toEqual(["b"]);
  });

  it("removes a cancelled request once", () => {
    push("a");
    expect(queue.remove("a")?.item).toBe("item a");
    expect(queue.remove("a")).toBeUndefined();
    expect(queue.nextExpiryNs()).toBeUndefined();
  });

  it("rejects a duplicate, NaN, and changes during a drain, and survives a visitor that throws", () => {
    push("a");
    expect(() => push("a")).toThrowError(expect.objectContaining({ code: "WP_DUPLICATE_REQUEST" }));
    expect(() => push("b", Number.NaN)).toThrowError(expect.objectContaining({ code: "WP_INVALID_INPUT" }));
    expect(() => push("b", 0, 0, Number.NaN)).toThrowError(expect.objectContaining({ code: "WP_INVALID_INPUT" }));
    expect(() => queue.forEach(() => queue.remove("a"))).toThrowError(
      expect.objectContaining({ code: "WP_INVALID_STATE" }),
    );
    expect(order()).toEqual(["a"]);
  });
});

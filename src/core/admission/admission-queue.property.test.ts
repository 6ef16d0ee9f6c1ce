import * as fc from "fast-check";
import { expect, it } from "vitest";
import { AdmissionQueue, type DrainVerdict } from "./admission-queue.ts";

// Enough for a heap of several levels, and few enough that the queue is often full.
const MAX_REQUESTS = 16;
const MAX_WAIT_NS = 200;

interface Waiting {
  readonly id: string;
  readonly priority: number;
  readonly sequence: number;
  readonly expiresNs: number;
  readonly reason: "deadline" | "queue-timeout";
}

const operation = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("push" as const),
      priority: fc.integer({ min: -2, max: 2 }),
      deadlineAfterNs: fc.option(fc.nat({ max: 300 }), { nil: undefined }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("remove" as const), which: fc.nat({ max: MAX_REQUESTS }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("expire" as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("wait" as const), ns: fc.nat({ max: 30 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("drain" as const),
      verdicts: fc.array(fc.constantFrom<DrainVerdict>("taken", "taken", "kept", "kept", "stop"), { maxLength: 6 }),
    }),
  },
);

type Operation = typeof operation extends fc.Arbitrary<infer Value> ? Value : never;

/** The queue as one array that is sorted after every push. */
class SortedArrayModel {
  waiting: Waiting[] = [];

  push(entry: Waiting): string {
    let displaced: Waiting | undefined;
    if (this.waiting.length >= MAX_REQUESTS) {
      displaced = this.waiting.at(-1);
      if (displaced === undefined || displaced.priority >= entry.priority) return "full";
      this.waiting.pop();
    }
    this.waiting.push(entry);
    this.waiting.sort((a, b) => b.priority - a.priority || a.sequence - b.sequence);
    return displaced === undefined ? "queued" : `displaced ${displaced.id}`;
  }

  expire(nowNs: number): string[] {
    const expired = this.waiting.filter((entry) => entry.expiresNs <= nowNs);
    this.waiting = this.waiting.filter((entry) => entry.expiresNs > nowNs);
    expired.sort((a, b) => a.expiresNs - b.expiresNs || a.sequence - b.sequence);
    return expired.map((entry) => `${entry.id} ${entry.reason}`);
  }
}

/** The queue and its model side by side; `apply` returns what each of them answered. */
class Comparison {
  readonly queue: AdmissionQueue<number> = new AdmissionQueue({ maxRequests: MAX_REQUESTS, maxWaitNs: MAX_WAIT_NS });
  readonly model: SortedArrayModel = new SortedArrayModel();
  readonly left = { taken: 0, removed: 0, expired: 0, displaced: 0 };
  pushed = 0;
  nowNs = 0;
  #sequence = 0;

  apply(step: Operation): { actual: unknown; expected: unknown } {
    if (step.kind === "push") return this.#push(step.priority, step.deadlineAfterNs);
    if (step.kind === "remove") return this.#remove(this.model.waiting[step.which]?.id);
    if (step.kind === "drain") return this.#drain(step.verdicts);
    if (step.kind === "wait") {
      this.nowNs += step.ns;
      return { actual: undefined, expected: undefined };
    }
    const expired = this.queue.expire(this.nowNs);
    this.left.expired += expired.length;
    const actual = expired.map(({ entry, reason }) => `${entry.id} ${reason}`);
    return { actual, expected: this.model.expire(this.nowNs) };
  }

  #push(priority: number, deadlineAfterNs: number | undefined): { actual: string; expected: string } {
    const { nowNs } = this;
    const sequence = this.#sequence++;
    const id = `request-${sequence}`;
    const deadlineNs = deadlineAfterNs === undefined ? undefined : nowNs + deadlineAfterNs;
    const expiresNs = Math.min(deadlineNs ?? Number.POSITIVE_INFINITY, nowNs + MAX_WAIT_NS);
    const reason = expiresNs === deadlineNs ? "deadline" : "queue-timeout";
    const result = this.queue.push(sequence, { id, priority, nowNs, deadlineNs });
    if (result.kind !== "full") this.pushed += 1;
    if (result.kind === "displaced") this.left.displaced += 1;
    return {
      actual: result.kind === "displaced" ? `displaced ${result.entry.id}` : result.kind,
      expected: this.model.push({ id, priority, sequence, expiresNs, reason }),
    };
  }

  #remove(id: string | undefined): { actual: unknown; expected: unknown } {
    this.model.waiting = this.model.waiting.filter((entry) => entry.id !== id);
    const removed = this.queue.remove(id ?? "nobody");
    if (removed !== undefined) this.left.removed += 1;
    return { actual: removed?.id, expected: id };
  }

  #drain(verdicts: readonly DrainVerdict[]): { actual: unknown; expected: unknown } {
    const stop = [...verdicts, "stop"].indexOf("stop");
    const visited = this.model.waiting.slice(0, stop + 1).map((entry) => entry.id);
    const taken = new Set(visited.filter((_, index) => verdicts[index] === "taken"));
    this.model.waiting = this.model.waiting.filter((entry) => !taken.has(entry.id));
    const seen: string[] = [];
    const count = this.queue.drain((entry) => verdicts[seen.push(entry.id) - 1] ?? "stop");
    this.left.taken += count;
    return { actual: { seen, count }, expected: { seen: visited, count: taken.size } };
  }
}

it("behaves like a sorted array, and its accounts add up", () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 150, size: "max" }), (operations) => {
      const comparison = new Comparison();
      const { queue, model, left } = comparison;
      for (const step of operations) {
        const { actual, expected } = comparison.apply(step);
        expect(actual).toEqual(expected);
        const order: string[] = [];
        queue.forEach((entry) => order.push(entry.id));
        expect(order).toEqual(model.waiting.map((entry) => entry.id));
        expect(queue.peek()?.id).toBe(order[0]);
        expect(queue.size).toBe(order.length);
        const next = Math.min(...model.waiting.map((entry) => entry.expiresNs));
        expect(queue.nextExpiryNs() ?? Number.POSITIVE_INFINITY).toBe(next);
        expect(left.taken + left.removed + left.expired + left.displaced + queue.size).toBe(comparison.pushed);
      }
    }),
    { numRuns: 120 },
  );
});

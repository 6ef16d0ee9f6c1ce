import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EventClass, EventQueue } from "./event-queue.ts";

describe("an event queue", () => {
  it("gives events in the order of time, class and pushing, whatever order they came in", () => {
    const eventArbitrary = fc.record({
      atNs: fc.nat({ max: 20 }),
      eventClass: fc.constantFrom(...Object.values(EventClass)),
      isTake: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(eventArbitrary, { maxLength: 200, size: "max" }), (steps) => {
        const queue = new EventQueue(1);
        const plain: { atNs: number; eventClass: number; number: number }[] = [];
        const take = (): void => {
          plain.sort((a, b) => a.atNs - b.atNs || a.eventClass - b.eventClass || a.number - b.number);
          const first = plain.shift();
          expect(queue.nextNs).toBe(first?.atNs ?? Number.POSITIVE_INFINITY);
          if (first !== undefined) expect(queue.nextClass).toBe(first.eventClass);
          expect(queue.take()).toBe(first !== undefined);
          if (first !== undefined) expect([queue.atNs, queue.payload]).toEqual([first.atNs, first.number]);
        };
        steps.forEach(({ atNs, eventClass, isTake }, number) => {
          if (isTake) return take();
          queue.push(atNs, eventClass, 0, number);
          plain.push({ atNs, eventClass, number });
        });
        while (plain.length > 0) take();
        expect(queue.size).toBe(0);
      }),
    );
  });

  it("settles what is over before anything new begins at the same moment", () => {
    const queue = new EventQueue();
    const order = ["stepStart", "routing", "arrival", "signal", "completion"] as const;
    order.forEach((name) => queue.push(5, EventClass[name], 0, EventClass[name]));
    const taken: number[] = [];
    while (queue.take()) taken.push(queue.payload);
    expect(taken).toEqual([0, 1, 2, 3, 4]);
  });
});

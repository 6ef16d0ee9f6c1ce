import { describe, expect, test } from "vitest";
import { BodyBuffers } from "./body-buffers.ts";

describe("memory for bodies", () => {
  test("is used again by bodies of about the same size", () => {
    const buffers = new BodyBuffers();
    const first = buffers.take(20_000);
    expect(first).toHaveLength(20_000);
    expect(buffers.take(20_000).buffer).not.toBe(first.buffer);
    buffers.giveBack(first);
    const second = buffers.take(30_000);
    expect(second).toHaveLength(30_000);
    expect(second.buffer).toBe(first.buffer);
    expect(buffers.take(10_000).buffer).not.toBe(first.buffer);
  });

  test("is kept within a bound, and not for bodies that are rare", () => {
    const buffers = new BodyBuffers(40_000);
    const [one, two] = [buffers.take(20_000), buffers.take(20_000)];
    buffers.giveBack(one);
    buffers.giveBack(two);
    expect(buffers.take(20_000).buffer).toBe(one.buffer);
    expect(buffers.take(20_000).buffer).not.toBe(two.buffer);
    const large = buffers.take(3_000_000);
    expect(large).toHaveLength(3_000_000);
    buffers.giveBack(large);
    expect(buffers.take(3_000_000).buffer).not.toBe(large.buffer);
  });

  test("of somebody else is left alone", () => {
    const buffers = new BodyBuffers();
    const foreign = new Uint8Array(5000);
    buffers.giveBack(foreign);
    expect(buffers.take(5000).buffer).not.toBe(foreign.buffer);
  });
});

import { describe, expect, it } from "vitest";
import { Rng } from "../../core/rng.ts";
import { type ChannelOptions, IDEAL_CHANNEL, SignalChannel } from "./signal-channel.ts";

const channel = (options: Partial<ChannelOptions>): SignalChannel =>
  new SignalChannel({ ...IDEAL_CHANNEL, ...options }, new Rng(1));

describe("a message on its way to the router", () => {
  it("arrives at once on an ideal channel", () => expect(channel({}).arrivalNs(123)).toBe(123));

  it("is late by the delay", () => expect(channel({ delayNs: 50 }).arrivalNs(123)).toBe(173));

  it("waits for the next departure where messages leave in batches, and is then late by the delay", () => {
    const batched = channel({ batchNs: 100, delayNs: 7 });
    expect([1, 99, 100, 101].map((sentNs) => batched.arrivalNs(sentNs))).toEqual([107, 107, 107, 207]);
  });

  it("is lost with the share asked for, and counted", () => {
    const lossy = channel({ lossShare: 0.25 });
    const lost = Array.from({ length: 4000 }, (_, at) => lossy.arrivalNs(at)).filter((ns) => ns === Infinity).length;
    expect(lost).toBe(lossy.lost);
    expect(lost / 4000).toBeCloseTo(0.25, 1);
  });
});

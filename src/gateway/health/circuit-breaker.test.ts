import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AttemptFate, CircuitBreaker } from "./circuit-breaker.ts";

const OPTIONS = { failedProbes: 2, failedAttempts: 3, restMs: 100, longestRestMs: 250, provenMs: 50 };

function failing(circuit: CircuitBreaker, times: number, nowMs: number): void {
  for (let i = 0; i < times; i++) circuit.attempted("failed", nowMs, nowMs);
}

/** A circuit that was opened by failed requests and is on trial since 100. */
function onTrial(): CircuitBreaker {
  const circuit = new CircuitBreaker(OPTIONS);
  failing(circuit, 3, 0);
  circuit.probed(true, 100);
  expect(circuit.state).toBe("half-open");
  return circuit;
}

describe("a worker's circuit", () => {
  test("opens after two failed probes in a row and closes with one that succeeds", () => {
    const circuit = new CircuitBreaker(OPTIONS);
    for (const succeeded of [false, true, false]) circuit.probed(succeeded, 0);
    expect(circuit.state).toBe("closed");
    circuit.probed(false, 0);
    expect([circuit.state, circuit.reason]).toEqual(["open", "2 probes in a row failed"]);
    circuit.probed(true, 0);
    expect(circuit.state).toBe("closed");
  });

  test("opens after three failed requests in a row", () => {
    const circuit = new CircuitBreaker(OPTIONS);
    failing(circuit, 2, 0);
    circuit.attempted("succeeded", 0, 0);
    failing(circuit, 2, 0);
    expect(circuit.state).toBe("closed");
    failing(circuit, 1, 0);
    expect([circuit.state, circuit.reason]).toEqual(["open", "3 requests in a row failed; rests for 100 ms"]);
  });

  test("opens for requests that it answers and fails only where it may, for those that it loses in any case", () => {
    const circuit = new CircuitBreaker(OPTIONS);
    let mayOpen = false;
    const fare = (...fates: readonly AttemptFate[]): string => {
      for (const fate of fates) circuit.attempted(fate, 0, 0, () => mayOpen);
      return circuit.state;
    };
    expect(fare("failed", "failed", "failed", "failed", "lost", "lost")).toBe("closed");
    expect(fare("lost")).toBe("open");
    circuit.probed(true, 100);
    circuit.attempted("succeeded", 100, 100);
    expect(fare("lost", "lost", "failed")).toBe("closed");
    mayOpen = true;
    expect(fare("failed")).toBe("open");
  });

  test("after failed requests needs a rest, a probe, and a request that succeeds", () => {
    const circuit = new CircuitBreaker(OPTIONS);
    failing(circuit, 3, 0);
    circuit.probed(true, 99);
    expect(circuit.state).toBe("open");
    circuit.probed(false, 100);
    expect(circuit.state).toBe("open");
    circuit.probed(true, 101);
    expect(circuit.state).toBe("half-open");
    circuit.attempted("succeeded", 102, 103);
    expect(circuit.state).toBe("closed");
  });

  test("opens again for longer when a trial fails, up to a limit", () => {
    const circuit = onTrial();
    let nowMs = 100;
    for (const restMs of [200, 250, 250]) {
      circuit.attempted("failed", nowMs, nowMs);
      expect([circuit.state, circuit.reason]).toEqual(["open", `the trial failed; rests for ${restMs} ms`]);
      circuit.probed(true, nowMs + restMs - 1);
      expect(circuit.state).toBe("open");
      nowMs += restMs;
      circuit.probed(true, nowMs);
      expect(circuit.state).toBe("half-open");
    }
  });

  test("is not told by requests that went out before the trial", () => {
    const circuit = onTrial();
    circuit.attempted("failed", 99, 120);
    circuit.answered(99, 120);
    circuit.probed(true, 1000);
    expect(circuit.state).toBe("half-open");
  });

  test("closes when a trial has streamed for a while, and not before", () => {
    const circuit = onTrial();
    circuit.answered(110, 120);
    circuit.answered(110, 160);
    circuit.probed(true, 169);
    expect(circuit.state).toBe("half-open");
    circuit.probed(true, 170);
    expect(circuit.state).toBe("closed");
  });

  test("on trial opens when the worker no longer answers probes", () => {
    const circuit = onTrial();
    for (let i = 0; i < 2; i++) circuit.probed(false, 110);
    expect(circuit.state).toBe("open");
    circuit.probed(true, 120);
    expect(circuit.state).toBe("half-open");
  });

  test("rests longer each time it is opened soon after it was closed", () => {
    const circuit = onTrial();
    circuit.attempted("succeeded", 100, 110);
    failing(circuit, 3, 120);
    expect(circuit.reason).toMatch(/rests for 200 ms$/);
    circuit.probed(true, 320);
    circuit.attempted("succeeded", 320, 330);
    failing(circuit, 3, 330 + OPTIONS.longestRestMs);
    expect(circuit.reason).toMatch(/rests for 100 ms$/);
  });

  test("can be opened from outside, once", () => {
    const circuit = new CircuitBreaker(OPTIONS);
    circuit.trip("too bad", 0);
    circuit.trip("again", 50);
    expect(circuit.reason).toBe("too bad; rests for 100 ms");
    circuit.probed(true, 100);
    expect(circuit.state).toBe("half-open");
  });

  test("whatever happened, is closed again by a rest, a probe and a request that succeeds", () => {
    const happening = fc.record({
      kind: fc.constantFrom("probed", "attempted", "answered", "tripped"),
      isGood: fc.boolean(),
      mayOpen: fc.boolean(),
      waitMs: fc.nat(300),
    });
    fc.assert(
      fc.property(fc.array(happening, { maxLength: 60 }), (happenings) => {
        const circuit = new CircuitBreaker(OPTIONS);
        let nowMs = 0;
        for (const { kind, isGood, mayOpen, waitMs } of happenings) {
          const sentMs = nowMs;
          nowMs += waitMs;
          if (kind === "probed") circuit.probed(isGood, nowMs);
          else if (kind === "attempted")
            circuit.attempted(isGood ? "succeeded" : "failed", sentMs, nowMs, () => mayOpen);
          else if (kind === "answered") circuit.answered(sentMs, nowMs);
          else if (isGood) circuit.trip("outlier", nowMs);
        }
        nowMs += OPTIONS.longestRestMs;
        circuit.probed(true, nowMs);
        expect(circuit.state).not.toBe("open");
        circuit.attempted("succeeded", nowMs, nowMs);
        expect(circuit.state).toBe("closed");
      }),
    );
  });
});

import { describe, expect, test } from "vitest";
import { EngineLife, type EngineMessage } from "./engine-life.ts";

const message = (sequence: number, timestampSeconds: number): EngineMessage => ({
  sequence,
  timestampSeconds,
  payload: Uint8Array.of(timestampSeconds, sequence),
});

function livesOf(...heard: readonly [number, number][]): string[] {
  const life = new EngineLife();
  return heard.map(([sequence, timestamp]) => {
    life.heard(message(sequence, timestamp));
    return life.incarnation;
  });
}

describe("an engine's lives", () => {
  test("go on while numbers rise, with or without gaps", () => {
    expect(livesOf([7, 1], [8, 2], [20, 3])).toEqual(["life-1", "life-1", "life-1"]);
  });

  test("change when numbers start over, even if the first were missed", () => {
    expect(livesOf([7, 1], [0, 2], [1, 3])).toEqual(["life-1", "life-2", "life-2"]);
    expect(livesOf([7, 1], [3, 2], [4, 3])).toEqual(["life-1", "life-2", "life-2"]);
    expect(livesOf([7, 1], [7, 2])).toEqual(["life-1", "life-2"]);
  });

  test("do not change for a message whose time is none", () => {
    expect(livesOf([7, 1], [3, Number.NaN], [8, 2])).toEqual(["life-1", "life-1", "life-1"]);
  });

  test("do not change when a message comes twice or late", () => {
    expect(livesOf([7, 1], [7, 1], [6, 0], [8, 2])).toEqual(["life-1", "life-1", "life-1", "life-1"]);
  });

  test("go on over a reconnection if the last message is still there, and only then", () => {
    const life = new EngineLife();
    expect(life.isContinuedBy([])).toBe(true);
    life.heard(message(7, 1));
    expect(life.isContinuedBy([message(7, 1), message(8, 2)])).toBe(true);
    expect(life.isContinuedBy([])).toBe(false);
    expect(life.isContinuedBy([message(7, 2)])).toBe(false);
    expect(life.isContinuedBy([message(9, 2)])).toBe(false);
  });
});

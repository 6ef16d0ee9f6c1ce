import { describe, expect, it } from "vitest";
import { candidateView } from "./candidate-view.ts";
import { roundRobin } from "./round-robin.ts";

const policy = roundRobin.create({});

function next(lastChosen: Readonly<Record<string, number>>, away: readonly string[] = []): string {
  const rows = Object.entries(lastChosen).map(([name, decision]) => ({
    name,
    lastChosen: decision,
    eligible: !away.includes(name),
  }));
  const choice = policy.choose(candidateView({ promptBlocks: 1 }, rows));
  return choice.kind === "place" ? rows[choice.replica].name : choice.kind;
}

describe("round-robin", () => {
  it("takes the replica whose turn is longest ago", () => {
    expect(next({ a: 3, b: 1, c: 2 })).toBe("b");
  });

  it("keeps the turn of a replica that was filtered out in between", () => {
    expect(next({ a: 3, b: 1, c: 2 }, ["b"])).toBe("c");
    expect(next({ a: 3, b: 1, c: 4 })).toBe("b");
  });

  it("gives a new replica the next turn", () => {
    expect(next({ a: 3, b: 1, c: 2, fresh: 0 })).toBe("fresh");
  });
});

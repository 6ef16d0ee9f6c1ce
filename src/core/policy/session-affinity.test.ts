import { describe, expect, it } from "vitest";
import { candidateView, type CandidateRow } from "./candidate-view.ts";
import { sessionAffinity } from "./session-affinity.ts";

const NAMES = ["a", "b", "c", "d", "e"];
const SESSIONS = Array.from({ length: 500 }, (_, i) => `conversation ${i}`);
const policy = sessionAffinity.create({});

function home(session: string, rows: readonly CandidateRow[]): string {
  const choice = policy.choose(candidateView({ promptBlocks: 4, session }, rows));
  return choice.kind === "place" ? rows[choice.replica].name : choice.kind;
}

function idle(names: readonly string[]): CandidateRow[] {
  return names.map((name) => ({ name }));
}

describe("session-affinity", () => {
  it("spreads sessions evenly over replicas", () => {
    const homes = SESSIONS.map((session) => home(session, idle(NAMES)));
    // Five standard deviations of 100 out of 500.
    for (const name of NAMES) expect(Math.abs(homes.filter((h) => h === name).length - 100)).toBeLessThan(45);
  });

  it("moves only the sessions of a worker that leaves", () => {
    const rest = NAMES.filter((name) => name !== "c");
    const others = SESSIONS.filter((session) => home(session, idle(NAMES)) !== "c");
    expect(others.map((session) => home(session, idle(rest)))).toEqual(
      others.map((session) => home(session, idle(NAMES))),
    );
  });

  it("gives a new worker sessions without moving any between the old ones", () => {
    const grown = idle([...NAMES, "new"]);
    const stayed = SESSIONS.filter((session) => home(session, grown) !== "new");
    expect(SESSIONS.length - stayed.length).toBeGreaterThan(40);
    expect(stayed.map((session) => home(session, grown))).toEqual(stayed.map((session) => home(session, idle(NAMES))));
  });

  it("spills to the session's next choice exactly when its home reaches the bound", () => {
    const session = "hot";
    const first = home(session, idle(NAMES));
    const second = home(session, idle(NAMES.filter((name) => name !== first)));
    const loaded = (atHome: number): CandidateRow[] =>
      NAMES.map((name) => ({ name, inFlight: name === first ? atHome : 10 }));
    // 53 in flight: capacity ceil(1.25 × 54 / 5) = 14, one more fits; 54: still 14, none does.
    expect(home(session, loaded(13))).toBe(first);
    expect(home(session, loaded(14))).toBe(second);
  });

  it("always finds room, also with the tightest bound", () => {
    const tight = sessionAffinity.create({ load_factor: 1 });
    const view = candidateView(
      { promptBlocks: 4, session: "any" },
      NAMES.map((name, i) => ({ name, inFlight: i === 3 ? 2 : 3 })),
    );
    expect(tight.choose(view)).toMatchObject({ replica: 3 });
  });
});

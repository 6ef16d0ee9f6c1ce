import { describe, expect, it } from "vitest";
import { SharedPrefill } from "./shared-prefill.ts";

const MS = 1e6;

/** Lets requests join one after the other, whose first tokens come after `tookMs`: 100 if they are spared the prompt under way, 500 if not. */
function joined(shared: SharedPrefill, count: number, tookMs: number, replica = 0): void {
  for (let i = 0; i < count; i++) {
    const placedNs = i * 1e9;
    shared.placed(replica, { placedNs, promptTokens: 4_000, sharedInNs: 100 * MS, apartInNs: 500 * MS });
    shared.firstToken(replica, 4_000, placedNs, tookMs * MS);
  }
}

describe("SharedPrefill", () => {
  it("is tried before anything was seen", () => {
    expect(new SharedPrefill().isWorthWaiting).toBe(true);
  });

  it("finds out which engines let somebody join a prompt under way, and which compute it again", () => {
    const sharing = new SharedPrefill();
    joined(sharing, 200, 110);
    expect(sharing.spared).toBeCloseTo(0.975, 2);
    expect(sharing.isWorthWaiting).toBe(true);
    const apart = new SharedPrefill();
    joined(apart, 200, 490);
    expect(apart.spared).toBeCloseTo(0.025, 2);
    expect(apart.isWorthWaiting).toBe(false);
  });

  it("takes part of a prompt for what it is", () => {
    const shared = new SharedPrefill();
    joined(shared, 200, 300);
    expect(shared.spared).toBeCloseTo(0.5, 2);
    expect(shared.isWorthWaiting).toBe(false);
  });

  it("counts nobody for more than whole or less than nothing, however late", () => {
    const shared = new SharedPrefill();
    joined(shared, 500, 60_000);
    expect(shared.spared).toBeGreaterThanOrEqual(0);
    joined(shared, 500, 1);
    expect(shared.spared).toBeLessThanOrEqual(1);
    expect(shared.spared).toBeGreaterThan(0.99);
  });

  it("learns more where more was at stake", () => {
    const [little, much] = [490, 100].map((sharedMs) => {
      const shared = new SharedPrefill();
      shared.placed(0, { placedNs: 0, promptTokens: 1, sharedInNs: sharedMs * MS, apartInNs: 500 * MS });
      shared.firstToken(0, 1, 0, 500 * MS);
      return shared.spared;
    });
    expect(much).toBeLessThan(little);
    expect(little).toBeLessThan(new SharedPrefill().spared);
  });

  it("learns nothing where nothing was at stake", () => {
    const shared = new SharedPrefill();
    const before = shared.spared;
    shared.placed(0, { placedNs: 0, promptTokens: 1, sharedInNs: 500 * MS, apartInNs: 500 * MS });
    shared.firstToken(0, 1, 0, 500 * MS);
    expect(shared.spared).toBe(before);
  });

  it("learns nothing from another request's first token, from the same one twice, or of a replica that was lost", () => {
    const shared = new SharedPrefill();
    const before = shared.spared;
    const foreseen = { placedNs: 5, promptTokens: 4_000, sharedInNs: 100 * MS, apartInNs: 500 * MS };
    shared.placed(0, foreseen);
    shared.firstToken(0, 4_000, 6, 500 * MS);
    shared.firstToken(0, 4_001, 5, 500 * MS);
    shared.firstToken(1, 4_000, 5, 500 * MS);
    shared.forget(0);
    shared.firstToken(0, 4_000, 5, 500 * MS);
    expect(shared.spared).toBe(before);
    shared.placed(0, foreseen);
    shared.firstToken(0, 4_000, 5, 500 * MS);
    const after = shared.spared;
    expect(after).toBeLessThan(before);
    shared.firstToken(0, 4_000, 5, 500 * MS);
    expect(shared.spared).toBe(after);
  });
});

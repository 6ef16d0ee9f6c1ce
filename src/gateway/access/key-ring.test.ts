import { describe, expect, test } from "vitest";
import { sha256 } from "./bearer-token.ts";
import { KeyRing } from "./key-ring.ts";

const entry = (name: string, secret: string): { name: string; sha256: string } => ({
  name,
  sha256: sha256(secret).toString("hex"),
});

describe("a ring of keys", () => {
  test("knows its keys by name, and nothing else", () => {
    const ring = new KeyRing([entry("a", "wp-1"), entry("b", "wp-2"), entry("a", "wp-3")]);
    const names = ["Bearer wp-1", "bearer  wp-2", "Bearer wp-3"].map((header) => ring.nameIn(header));
    expect(names).toEqual(["a", "b", "a"]);
    const strangers = [undefined, "", "Bearer", "Bearer ", "wp-1", "Basic wp-1", "Bearer wp-1 x", "Bearer wp-11"];
    expect(strangers.filter((header) => ring.nameIn(header) !== undefined)).toEqual([]);
    expect(ring.nameIn(`Bearer ${sha256("wp-1").toString("hex")}`)).toBeUndefined();
  });

  test("forgets keys that are taken out", () => {
    const ring = new KeyRing([entry("a", "wp-1")]);
    ring.replace([entry("a", "wp-2")]);
    expect([ring.nameIn("Bearer wp-1"), ring.nameIn("Bearer wp-2")]).toEqual([undefined, "a"]);
  });
});

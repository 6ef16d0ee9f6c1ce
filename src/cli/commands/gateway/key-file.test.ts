import { describe, expect, test } from "vitest";
import { parseKeys } from "./key-file.ts";

const HASH = "AB".repeat(32);

describe("a file of keys", () => {
  test("is YAML or JSON", () => {
    const keys = [{ name: "a", sha256: HASH.toLowerCase(), requestsPerMinute: 5 }];
    expect(parseKeys(`- name: a\n  sha256: ${HASH}\n  requestsPerMinute: 5\n`, "keys")).toEqual(keys);
    expect(parseKeys(JSON.stringify(keys), "keys")).toEqual(keys);
    expect(parseKeys("", "keys")).toEqual([]);
  });

  test.each([
    ["- name: a", "[0].sha256 is missing (keys)"],
    ["- {name: a b, sha256: x}", "[0].name must be valid: a name of letters, digits, dots, dashes and underscores"],
    [`- {name: a, sha256: ${HASH}, perMinute: 1}`, "[0].perMinute is not a known field (keys)"],
    [`- {name: a, sha256: ${HASH}, maxStreams: 0}`, "[0].maxStreams must be 1 or more, got 0 (keys)"],
    [
      `- {name: a, sha256: ${HASH}}\n- {name: a, sha256: ${HASH}, maxStreams: 1}`,
      "two keys named a have different limits",
    ],
    ["- [", "keys cannot be read as YAML"],
  ])("that reads %j is refused", (text, problem) => {
    expect(() => parseKeys(text, "keys")).toThrow(problem);
  });

  test("is refused without showing a key that somebody put into it", () => {
    const secrets = ["- {name: a, sha256: wp-secret}", "wp-secret", "- wp-secret", "- {name: a, key: wp-secret}"];
    for (const text of secrets) expect(() => parseKeys(text, "keys")).toThrow(/^(?!.*secret).* \(keys\)$/);
  });
});

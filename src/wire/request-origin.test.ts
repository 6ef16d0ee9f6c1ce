import { describe, expect, test } from "vitest";
import { isFromForeignPage, isLoopback, namesThisMachine } from "./request-origin.ts";

describe("where a request goes to", () => {
  test.each([
    "localhost",
    "localhost:8900",
    "LOCALHOST:1",
    "a.localhost:1",
    "127.0.0.1:8900",
    "127.1.2.3",
    "[::1]:8900",
  ])("%s is this machine", (host) => {
    expect(namesThisMachine({ host })).toBe(true);
  });

  test.each(["evil.example:8900", "localhost.evil.example", "127.0.0.1.evil.example:8900", "10.0.0.1", "[::2]:1", ""])(
    "%j is a name that anybody may have given it",
    (host) => {
      expect(namesThisMachine({ host })).toBe(false);
    },
  );

  test("whoever names no host is no browser", () => {
    expect(namesThisMachine({})).toBe(true);
  });

  test("an address that others reach is no loopback", () => {
    expect(["127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "10.0.0.1"].map(isLoopback)).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
    ]);
  });
});

describe("where a request comes from", () => {
  const host = "localhost:8080";

  test.each([
    {},
    { origin: "http://localhost:8080" },
    { origin: "http://localhost:8080", "sec-fetch-site": "same-origin" },
    { "sec-fetch-site": "none" },
  ])("%j is no foreign page", (headers) => {
    expect(isFromForeignPage({ host, ...headers })).toBe(false);
  });

  test.each([
    { origin: "http://evil.example" },
    { origin: "http://localhost:9999" },
    { origin: "null" },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
  ])("%j is one", (headers) => {
    expect(isFromForeignPage({ host, ...headers })).toBe(true);
  });
});

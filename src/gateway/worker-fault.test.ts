import { expect, test } from "vitest";
import { connectionFault } from "./worker-fault.ts";

test.each([
  ["ENETDOWN", "network-down"],
  ["ECONNREFUSED", "connect"],
  ["UND_ERR_CONNECT_TIMEOUT", "connect"],
  ["ECONNRESET", "reset"],
  [undefined, "reset"],
] as const)("an error of code %s is taken as %s", (code, fault) => {
  expect(connectionFault(Object.assign(new Error("x"), { code }))).toBe(fault);
});

import { expect, test } from "vitest";
import { AnswerTooLong, connectionFault } from "./worker-fault.ts";

test.each([
  ["ENETDOWN", "network-down"],
  ["ECONNREFUSED", "connect"],
  ["UND_ERR_CONNECT_TIMEOUT", "connect"],
  ["ECONNRESET", "reset"],
  [undefined, "reset"],
  ["EPROTO", "stream-error"],
  ["HPE_INVALID_CONSTANT", "stream-error"],
  ["UND_ERR_HEADERS_OVERFLOW", "stream-error"],
] as const)("an error of code %s is taken as %s", (code, fault) => {
  expect(connectionFault(Object.assign(new Error("x"), { code }))).toBe(fault);
});

test("an answer that is too long says nothing of whether its worker is there", () => {
  expect(connectionFault(new AnswerTooLong("the answer has no end"))).toBe("stream-error");
});

import { expect, test } from "vitest";
import { LentBody } from "./lent-body.ts";

/** A body, and how often it was given back. */
function lentBody(): { body: LentBody; returns: () => number } {
  let returns = 0;
  return { body: new LentBody(new Uint8Array(8), () => returns++), returns: () => returns };
}

test("a body is given back when it is not sent again and all who were lent it have read it, whichever comes last", () => {
  const { body, returns } = lentBody();
  const [first, second] = [body.lend(), body.lend()];
  first();
  body.release();
  expect(returns()).toBe(0);
  second();
  expect(returns()).toBe(1);

  const { body: other, returns: others } = lentBody();
  other.lend()();
  expect(others()).toBe(0);
  other.release();
  expect(others()).toBe(1);
});

test("a body is given back once, however often somebody says that it was read", () => {
  const { body, returns } = lentBody();
  const [first, second] = [body.lend(), body.lend()];
  body.release();
  first();
  first();
  expect(returns()).toBe(0);
  second();
  second();
  body.release();
  expect(returns()).toBe(1);
});

import { expect, test } from "vitest";
import { promptHash, PromptLedger } from "./prompt-ledger.ts";

const sent = (...prompts: readonly (readonly [string, string])[]): Map<string, string> =>
  new Map(prompts.map(([id, text]) => [id, promptHash(text)]));

test("cells that sent the same have the same digest, in whatever order they sent it", () => {
  const ledger = new PromptLedger();
  const first = ledger.add(1, sent(["1", "one"], ["2", "two"], ["10", "ten"]), () => true);
  const second = ledger.add(1, sent(["10", "ten"], ["2", "two"], ["1", "one"]), () => true);
  expect(second).toEqual({ ...first, sentBefore: 3, equalToBefore: 3 });
  expect(first).toMatchObject({ requests: 3, sentBefore: 0, equalToBefore: 0 });
});

test("a prompt that another arm got otherwise is counted, also outside the window", () => {
  const ledger = new PromptLedger();
  ledger.add(1, sent(["1", "one"], ["2", "two"]), () => true);
  const { requests, sentBefore, equalToBefore } = ledger.add(1, sent(["1", "one"], ["2", "TWO"]), (id) => id === "1");
  expect({ requests, sentBefore, equalToBefore }).toEqual({ requests: 1, sentBefore: 2, equalToBefore: 1 });
});

test("runs have prompts of their own", () => {
  const ledger = new PromptLedger();
  ledger.add(1, sent(["1", "one"]), () => true);
  expect(ledger.add(2, sent(["1", "another"]), () => true)).toMatchObject({ sentBefore: 0 });
});

import { expect, test } from "vitest";
import type { ModelsAnswer } from "../../../../loadgen/models.ts";
import { waitForModel } from "./wait-for-model.ts";

const SERVES: ModelsAnswer = { model: "m" };
const refused = (status?: number): ModelsAnswer => ({ problem: `no model: ${status ?? "refused"}`, status });

interface Waited {
  readonly seconds: number;
  readonly lines: readonly string[];
  readonly problem: string | undefined;
}

/** Waits for an endpoint that gives these answers, and the last one from then on. */
async function waitedFor(answers: readonly ModelsAnswer[], isBeingStarted: boolean): Promise<Waited> {
  let nowMs = 0;
  let asked = 0;
  const lines: string[] = [];
  const waiting = waitForModel({
    url: "http://there",
    seconds: 1800,
    isBeingStarted,
    signal: new AbortController().signal,
    say: (line) => void lines.push(line),
    ask: () => Promise.resolve(answers[Math.min(asked++, answers.length - 1)]),
    clock: {
      nowMs: () => nowMs,
      delay: (ms) => {
        nowMs += ms;
        return Promise.resolve();
      },
    },
  });
  const problem = await waiting.then(
    () => undefined,
    (error: unknown) => (error as Error).message,
  );
  return { seconds: nowMs / 1000, lines, problem };
}

test("an endpoint that serves is not waited for", async () => {
  expect(await waitedFor([SERVES], false)).toEqual({ seconds: 0, lines: [], problem: undefined });
});

test("an address where nobody is fails within seconds, unless a hook was to start it", async () => {
  expect(await waitedFor([refused()], false)).toEqual({
    seconds: 3,
    lines: ["waiting for http://there, at most 3 s: no model: refused"],
    problem: "no model: refused",
  });
  expect(await waitedFor([refused()], true)).toEqual({
    seconds: 1800,
    lines: ["waiting for http://there, at most 1800 s: no model: refused"],
    problem: "no model: refused",
  });
});

test.each([400, 401, 403])("an answer with %d fails at once", async (status) => {
  for (const isBeingStarted of [false, true]) {
    expect(await waitedFor([refused(status)], isBeingStarted)).toEqual({
      seconds: 0,
      lines: [],
      problem: `no model: ${status}`,
    });
  }
});

test("a path that is not known may still appear where a hook was to start what is behind it", async () => {
  expect(await waitedFor([refused(404), SERVES], true)).toMatchObject({ seconds: 0.25, problem: undefined });
  expect(await waitedFor([refused(404), SERVES], false)).toMatchObject({ seconds: 0, problem: "no model: 404" });
});

test.each([200, 429, 503])("an endpoint that answers with %d and has no model yet is waited for", async (status) => {
  const late = [...Array.from({ length: 100 }, () => refused(status)), SERVES];
  const { seconds, lines, problem } = await waitedFor(late, false);
  expect({ seconds, lines: lines.length, problem }).toEqual({ seconds: 25, lines: 1, problem: undefined });
});

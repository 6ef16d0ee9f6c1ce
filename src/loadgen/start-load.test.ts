import { afterEach, describe, expect, test } from "vitest";
import {
  openStream,
  piece,
  type ScriptedEndpoint,
  type ScriptedRequest,
} from "../../test/support/scripted-endpoint.ts";
import { startScriptedEndpoint, streamWhole } from "../../test/support/scripted-endpoint.ts";
import { ACCOUNTS } from "../core/accounts.ts";
import { NS_PER_MS } from "../core/clock.ts";
import { type RequestRecord, UNAVAILABLE } from "../core/request-record.ts";
import { Rng } from "../core/rng.ts";
import { ArrivalSupply } from "../workload/arrival-supply.ts";
import { PrefixGroups } from "../workload/prefix-groups.ts";
import { Schedule } from "../workload/schedule.ts";
import { type ConversationLoadOptions, conversationLoad } from "./conversation-load.ts";
import { startLoad } from "./start-load.ts";
import { SymbolicPrompts } from "./symbolic-prompts.ts";
import type { LoadOptions, LoadRun } from "./types.ts";

const starters = [
  { name: "a.md", text: "# Tides\n\nThe sea rises and falls." },
  { name: "b.md", text: "# Sails\n\nWind bends around a sail." },
];

let endpoint: ScriptedEndpoint | undefined;
let run: LoadRun | undefined;

afterEach(async () => {
  await run?.stop({ drainMs: 0 });
  await endpoint?.close();
});

async function serve(answer: (request: ScriptedRequest, at: number) => void): Promise<ScriptedEndpoint> {
  endpoint = await startScriptedEndpoint(answer);
  return endpoint;
}

/** Starts conversations without think time against the endpoint and keeps their records. */
function converse(
  url: string,
  concurrency: number,
  change: Partial<ConversationLoadOptions> = {},
  options: Partial<LoadOptions> = {},
): { run: LoadRun; records: RequestRecord[] } {
  const records: RequestRecord[] = [];
  const started = startLoad({
    target: { url, model: "m" },
    ...conversationLoad({ starters, pace: { kind: "closed", concurrency }, seed: 1, thinkMs: [0, 0], ...change }),
    onRecord: (record) => void records.push(record),
    ...options,
  });
  run = started;
  return { run: started, records };
}

interface Message {
  readonly role: string;
  readonly content: string;
}

function messagesOf({ body }: ScriptedRequest): readonly Message[] {
  return body["messages"] as Message[];
}

function sumOf(load: LoadRun): number {
  const accounts = load.accounts();
  return ACCOUNTS.reduce((sum, account) => sum + accounts[account], 0);
}

describe("load of conversations", () => {
  test("sends the growing history, with answers as they came and follow-ups that refer to them", async () => {
    const answer = 'Tides follow the moon because "gravity" pulls the nearer water harder.\nThat is all.';
    const { url, requests, came } = await serve(({ response }) => streamWhole(response, answer.split(/(?<= )/)));
    converse(url, 1, { turns: [3, 3] });
    await came(3);
    const [first, second, third] = requests.slice(0, 3).map(messagesOf);
    expect(first).toHaveLength(1);
    expect(starters.some(({ text }) => first[0].content.startsWith(`${text}\n\n`))).toBe(true);
    expect(second.slice(0, 2)).toEqual([...first, { role: "assistant", content: answer }]);
    expect(third.slice(0, 4)).toEqual([...second, { role: "assistant", content: answer }]);
    expect(second[2].role).toBe("user");
    expect(second[2].content).toMatch(/Tides follow|That is all|tides|nearer|gravity|water|harder|because|follow/);
    expect(requests[0].body).toMatchObject({ model: "m", stream: true, stream_options: { include_usage: true } });
    expect(requests[0].body["max_tokens"]).toBeGreaterThan(0);
    expect(new Set(requests.slice(0, 3).map(({ headers }) => headers["x-warmpath-session"])).size).toBe(1);
  });

  test("counts what came last before a stream broke off, although no blank line ends it", async () => {
    const { url } = await serve(({ response }) => {
      openStream(response);
      response.end(`${piece("one")}${piece(" two").trimEnd()}`);
    });
    const { run: load, records } = converse(url, 1, { turns: [1, 1] });
    await endpoint?.came(2);
    await load.stop({ drainMs: 5000 });
    expect(records[0]).toMatchObject({ account: "failed", outputTokens: 2 });
  });

  test("records when things happened, what it cost and who answered", async () => {
    const { url } = await serve(({ response }) => streamWhole(response, ["one", " two", " three"]));
    const { run: load, records } = converse(url, 1, { turns: [1, 1] });
    await endpoint?.came(3);
    await load.stop({ drainMs: 5000 });
    const [record] = records;
    expect(record).toMatchObject({
      session: "conversation-0",
      turn: 0,
      promptTokens: 100,
      outputTokens: 3,
      observedCachedTokens: 60,
      predictedCachedTokens: UNAVAILABLE,
      worker: "w1",
      decision: "7",
      account: "completed",
      attempts: 1,
    });
    const { intendedNs, sentNs = -1, firstByteNs = -1, firstContentNs = -1, lastContentNs = -1, endNs = -1 } = record;
    const times = [intendedNs, sentNs, firstByteNs, firstContentNs, lastContentNs, endNs];
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(record.tokenTimes?.form === "chunks" && record.tokenTimes.timesNs).toHaveLength(3);
  });

  test("raising the concurrency begins conversations at once; lowering lets running turns finish and no more", async () => {
    const held: ScriptedRequest[] = [];
    const { url, came, requests } = await serve((request) => void held.push(request));
    const { run: load, records } = converse(url, 2);
    await came(2);
    load.setConcurrency(5);
    await came(5);
    expect(load.rolling()).toMatchObject({ inFlight: 5 });
    load.setConcurrency(1);
    for (const { response } of held.splice(0)) streamWhole(response, ["yes"]);
    await came(6);
    expect(messagesOf(requests[5])).toHaveLength(3);
    expect(load.rolling()).toMatchObject({ inFlight: 1, completed: 5, errorRate: 0 });
    expect(records.map(({ account }) => account)).toEqual(Array(5).fill("completed"));
    expect(load.concurrency).toBe(1);
  });

  test("what is under way at the end is unfinished, and the accounts add up at every moment", async () => {
    const { url, came } = await serve(({ response }, at) => {
      if (at < 3) streamWhole(response, ["yes"]);
      else {
        openStream(response);
        response.write(piece("half"));
      }
    });
    const { run: load, records } = converse(url, 3, { turns: [1, 1] });
    await came(6);
    expect(sumOf(load)).toBe(load.accounts().offered);
    const { totals } = await load.stop({ drainMs: 0 });
    expect(load.accounts()).toMatchObject({ offered: 6, completed: 3, unfinished: 3 });
    expect(totals.accounts()).toEqual(load.accounts());
    expect(records).toHaveLength(6);
    const cut = records.filter(({ account }) => account === "unfinished");
    expect(cut.map(({ endNs }) => endNs)).toEqual([undefined, undefined, undefined]);
  });

  test("a drain lets requests under way end, and sends no follow-up", async () => {
    const held: ScriptedRequest[] = [];
    const { url, came, requests } = await serve((request) => void held.push(request));
    const { run: load } = converse(url, 2);
    await came(2);
    const stopped = load.stop({ drainMs: 60_000 });
    for (const { response } of held) streamWhole(response, ["yes"]);
    const { totals } = await stopped;
    expect(totals.accounts()).toMatchObject({ offered: 2, completed: 2, unfinished: 0 });
    expect(requests).toHaveLength(2);
  });

  test("a second stop cuts a drain short", async () => {
    const { url, came } = await serve(() => {});
    const { run: load } = converse(url, 1);
    await came(1);
    void load.stop({ drainMs: 600_000 });
    await load.stop({ drainMs: 0 });
    expect(load.accounts()).toMatchObject({ offered: 1, unfinished: 1 });
  });

  test("gives requests up after their deadline", async () => {
    const { url } = await serve(() => {});
    const { records } = converse(url, 1, {}, { timeoutMs: 20, durationNs: 300 * NS_PER_MS, drainMs: 60_000 });
    await run?.finished;
    expect(records[0]).toMatchObject({ account: "timedOut", failure: { message: "no whole answer within 0.02 s" } });
  });

  test("an answer that is whole only after the deadline has timed out", async () => {
    const { url, came } = await serve(({ response }) => {
      for (const endMs = performance.now() + 40; performance.now() < endMs;);
      streamWhole(response, ["late"]);
    });
    const { run: load, records } = converse(url, 1, { turns: [1, 1] }, { timeoutMs: 20 });
    await came(1);
    await load.stop({ drainMs: 5000 });
    expect(records.map(({ account }) => account)).toEqual(["timedOut"]);
  });

  test("goes on with the built-in user where a user model fails, and counts it", async () => {
    const { url, came, requests } = await serve(({ response }) => streamWhole(response, ["Sails need wind to pull."]));
    const user = { followUp: () => Promise.reject(new Error("no")) };
    const load = conversationLoad({
      starters,
      pace: { kind: "closed", concurrency: 1 },
      seed: 1,
      turns: [2, 2],
      thinkMs: [0, 0],
      user,
    });
    run = startLoad({ target: { url, model: "m" }, ...load });
    await came(2);
    expect(load.prompts.userFailures).toBeGreaterThanOrEqual(1);
    expect(messagesOf(requests[1])[2].content).toMatch(/Sails need wind to pull|sails/);
  });
});

describe("load of a schedule", () => {
  test("sends every request at its time, then ends by itself", async () => {
    const { url, requests } = await serve(({ response }) => streamWhole(response, ["yes"]));
    const rng = new Rng(3);
    const groups = new PrefixGroups(
      { groups: 2, prefixTokens: [8, 8], skew: 0, suffixTokens: [4, 4], outputTokens: [1, 3] },
      rng,
      12,
    );
    const source = new Schedule(new ArrivalSupply(groups, { kind: "constant", rateRps: 400 }, rng));
    const records: RequestRecord[] = [];
    const onRecord = (record: RequestRecord): void => void records.push(record);
    const prompts = new SymbolicPrompts(3, "completion");
    run = startLoad({ target: { url, model: "m" }, source, prompts, endsWhenIdle: true, onRecord });
    const { totals } = await run.finished;
    expect(totals.accounts()).toMatchObject({ offered: 12, completed: 12 });
    expect(records.map(({ id }) => Number(id)).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 12 }, (_, at) => at),
    );
    expect(records.every(({ intendedNs, sentNs = 0 }) => sentNs >= intendedNs)).toBe(true);
    expect(requests.every(({ path }) => path === "/v1/completions")).toBe(true);
    expect(String(requests[0].body["prompt"]).split(" ")).toHaveLength(12);
  });

  test("has no concurrency to change", async () => {
    const { url } = await serve(() => {});
    const load = conversationLoad({
      starters,
      pace: { kind: "open", arrivals: { kind: "poisson", rateRps: 1 } },
      seed: 1,
    });
    run = startLoad({ target: { url, model: "m" }, ...load });
    expect(run.concurrency).toBeUndefined();
    expect(() => run?.setConcurrency(3)).toThrow(/follows a schedule/);
  });
});

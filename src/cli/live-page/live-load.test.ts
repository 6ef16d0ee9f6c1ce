import { afterEach, expect, test } from "vitest";
import { type ScriptedEndpoint, startScriptedEndpoint } from "../../../test/support/scripted-endpoint.ts";
import { conversationLoad } from "../../loadgen/conversation-load.ts";
import { startLoad } from "../../loadgen/start-load.ts";
import type { LoadRun } from "../../loadgen/types.ts";
import { LiveLoad } from "./live-load.ts";

let endpoint: ScriptedEndpoint | undefined;
let run: LoadRun | undefined;

afterEach(async () => {
  await run?.stop({ drainMs: 0 });
  await endpoint?.close();
});

/** A load of four conversations, its page, and what that shows of it. */
async function steered() {
  endpoint = await startScriptedEndpoint(() => {});
  const load = new LiveLoad(4, true);
  run = startLoad({
    target: { url: endpoint.url, model: "m" },
    ...conversationLoad({
      starters: [{ name: "a.md", text: "# Tides" }],
      pace: { kind: "closed", concurrency: load.wanted },
      seed: 1,
    }),
  });
  load.follow(run);
  const shown = (): readonly [string, number | null] => {
    const { state, concurrency } = load.view();
    return [state, concurrency];
  };
  return { load, run, shown };
}

test("shows the concurrency that was set at the terminal", async () => {
  const { run: typed, shown } = await steered();
  expect(shown()).toEqual(["running", 4]);
  typed.setConcurrency(7);
  expect(shown()).toEqual(["running", 7]);
});

test("takes nobody for stopped, and goes on with as many as there were", async () => {
  const { load, run: typed, shown } = await steered();
  typed.setConcurrency(0);
  expect(shown()).toEqual(["stopped", 4]);
  load.start();
  expect([shown(), typed.concurrency]).toEqual([["running", 4], 4]);
});

test("keeps what is set while it is stopped for its next start", async () => {
  const { load, run: typed, shown } = await steered();
  load.stop();
  load.setConcurrency(9);
  expect([shown(), typed.concurrency]).toEqual([["stopped", 9], 0]);
  load.start();
  expect(typed.concurrency).toBe(9);
});

import { expect, test } from "vitest";
import { createWorkerPlanes } from "./event-planes.ts";
import { readSettings } from "./settings.ts";

const later = { name: "later", url: "http://a:1", events: { url: "tcp://a:5557" } };

test("a worker on a wire that the gateway was not started for is guessed, and that is said once", async () => {
  const lines: string[] = [];
  const settings = { ...readSettings({}), blockTokens: 16 };
  const planes = await createWorkerPlanes(settings, [], true, (line) => lines.push(line));
  expect([planes.eventsOf(later), planes.eventsOf(later)]).toEqual([undefined, undefined]);
  expect(lines).toEqual([expect.stringMatching(/^worker later: events over ZMQ are heard after a restart/)]);
  await planes.close();
});

test("a gateway that listens to nobody says nothing of the kind", async () => {
  const lines: string[] = [];
  const settings = { ...readSettings({ eventPlane: "none" }), blockTokens: 16 };
  const planes = await createWorkerPlanes(settings, [], true, (line) => lines.push(line));
  expect([planes.eventsOf(later), lines]).toEqual([undefined, []]);
  await planes.close();
});

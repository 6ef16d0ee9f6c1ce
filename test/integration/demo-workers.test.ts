/** Workers of `warmpath up`, ended and started as its page does it. */
import { expect, onTestFinished, test } from "vitest";
import { type Demo, isAlive, startDemo } from "../browser/demo.ts";

type Reply = { readonly ok: boolean; readonly message?: string };

async function command({ pageUrl }: Demo, kind: "start-worker" | "end-worker"): Promise<Reply> {
  const response = await fetch(`${pageUrl}/api/commands`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ kind, worker: "worker-1" }),
  });
  return (await response.json()) as Reply;
}

async function answers({ adminUrl }: Demo): Promise<boolean> {
  const { workers } = (await (await fetch(`${adminUrl}/admin/workers`)).json()) as { workers: { url: string }[] };
  return fetch(`${workers[0].url}/health`).then(
    ({ ok }) => ok,
    () => false,
  );
}

test("a worker that is asked for twice, as by a double click, is started once", async () => {
  const demo = await startDemo(["--workers", "1", "--stopped"]);
  onTestFinished(async () => void (await demo.stop()));
  expect(await command(demo, "end-worker")).toEqual({ ok: true });
  expect(demo.pids.filter(isAlive)).toHaveLength(1);
  const twice = [command(demo, "start-worker"), command(demo, "start-worker")];
  expect(await Promise.all(twice)).toEqual([{ ok: true }, { ok: true }]);
  expect(await answers(demo)).toBe(true);
  expect(await demo.stop()).toBe(0);
});

import { expect, onTestFinished, test } from "vitest";
import { startTestWorker, words } from "../support/running-worker.ts";

test("a worker that is told to forget its cache finds nothing in it, and publishes that the blocks are gone", async () => {
  const worker = await startTestWorker();
  onTestFinished(() => worker.close(0));
  const cachedTokens = async (): Promise<number | undefined> => {
    const { usage } = await worker.client.chat.completions.create({
      model: worker.model,
      max_tokens: 4,
      messages: [{ role: "user", content: words(200, "river") }],
    });
    return usage?.prompt_tokens_details?.cached_tokens;
  };
  const cache = async (): Promise<{ blocks: number; lastEventId: number }> =>
    (await (await worker.get("/debug/cache")).json()) as { blocks: number; lastEventId: number };

  expect(await cachedTokens()).toBe(0);
  expect(await cachedTokens()).toBeGreaterThan(150);
  const before = await cache();
  expect((await worker.post("/reset_prefix_cache", "")).status).toBe(200);
  const after = await cache();
  expect(before.blocks).toBeGreaterThan(0);
  expect(after.blocks).toBe(0);
  expect(after.lastEventId).toBeGreaterThan(before.lastEventId);
  expect(await cachedTokens()).toBe(0);
});

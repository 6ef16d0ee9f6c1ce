import { setTimeout as delay } from "node:timers/promises";
import { firstModel } from "../../../../loadgen/models.ts";

const LOOK_MS = 250;

/** Waits until an endpoint serves a model; rejects with the last complaint when patience is over. */
export async function waitForModel(url: string, seconds: number, signal: AbortSignal): Promise<void> {
  const lastMs = performance.now() + seconds * 1000;
  while (!signal.aborted) {
    try {
      await firstModel(url, process.env["WARMPATH_API_KEY"]);
      return;
    } catch (error) {
      if (performance.now() >= lastMs) throw error;
    }
    await delay(LOOK_MS, undefined, { signal }).catch(() => {});
  }
}

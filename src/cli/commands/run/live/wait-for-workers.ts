import { setTimeout as delay } from "node:timers/promises";

const LOOK_MS = 100;

/** Waits until so many workers are ready; gives the number there is then, or when patience or the signal ends the wait. */
export async function waitForWorkers(
  source: { readyWorkers(): Promise<number | undefined> },
  wanted: number,
  seconds: number,
  signal: AbortSignal,
): Promise<number | undefined> {
  const lastMs = performance.now() + seconds * 1000;
  for (;;) {
    const ready = await source.readyWorkers().catch(() => 0);
    if (ready === undefined || ready === wanted || performance.now() >= lastMs || signal.aborted) return ready;
    await delay(LOOK_MS, undefined, { signal }).catch(() => {});
  }
}

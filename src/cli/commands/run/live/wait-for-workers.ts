import { setTimeout as delay } from "node:timers/promises";

const LOOK_MS = 100;

/**
 * Waits until so many workers are ready; gives the number there is then, or when patience or the signal ends the wait. Who
 * wants to know of a wait is told once, with the number there is at its beginning.
 */
export async function waitForWorkers(
  source: { readyWorkers(): Promise<number | undefined> },
  wanted: number,
  seconds: number,
  signal: AbortSignal,
  onWait: (ready: number) => void = () => {},
): Promise<number | undefined> {
  const lastMs = performance.now() + seconds * 1000;
  for (let looks = 0; ; looks++) {
    const ready = await source.readyWorkers().catch(() => 0);
    if (ready === undefined || ready === wanted || performance.now() >= lastMs || signal.aborted) return ready;
    if (looks === 0) onWait(ready);
    await delay(LOOK_MS, undefined, { signal }).catch(() => {});
  }
}

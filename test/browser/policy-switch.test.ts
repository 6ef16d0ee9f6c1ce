import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { launchBrowser, metricValue, openPage, shownNumber } from "./browser.ts";
import { startDemo } from "./demo.ts";

const CONCURRENCY = 60;
/** By then every conversation has had several turns, and nothing of the cold start is in the window. */
const SETTLED_REQUESTS = 6 * CONCURRENCY;
/** A window's worth: readings over it are all that round-robin had to show. */
const OBSERVED_REQUESTS = 2.5 * CONCURRENCY;
const TWO_MINUTES_MS = 120_000;

interface Reading {
  readonly hitPercent: number;
  readonly ttftMs: number;
}

async function read(page: Page): Promise<Reading> {
  return {
    hitPercent: 100 * (await metricValue(page, "hit")),
    ttftMs: await metricValue(page, "ttft"),
  };
}

/** The mean of what the page shows until so many requests have completed. */
async function meanUntil(page: Page, completed: number): Promise<Reading> {
  const readings: Reading[] = [];
  const count = async (): Promise<number> => {
    readings.push(await read(page));
    return shownNumber(page, '[data-account="completed"]');
  };
  await expect.poll(count, { timeout: 180_000, interval: 1000 }).toBeGreaterThanOrEqual(completed);
  const mean = (of: (reading: Reading) => number): number =>
    readings.reduce((sum, reading) => sum + of(reading), 0) / readings.length;
  return { hitPercent: mean(({ hitPercent }) => hitPercent), ttftMs: mean(({ ttftMs }) => ttftMs) };
}

// What is routed when is a matter of milliseconds, so the readings of a minute scatter by about a point.
test(
  "within two minutes of switching from round-robin to kv at 60 conversations the page shows the difference",
  { retry: 1 },
  async (context) => {
    const browser = await launchBrowser(context);
    onTestFinished(() => browser.close());
    const demo = await startDemo(["--policy", "round-robin", "--concurrency", String(CONCURRENCY)]);
    onTestFinished(async () => void (await demo.stop()));
    const { page } = await openPage(browser, demo.pageUrl);
    await page.getByTestId("accounting").waitFor();
    await meanUntil(page, SETTLED_REQUESTS);
    const before = await meanUntil(page, SETTLED_REQUESTS + OBSERVED_REQUESTS);

    await page.getByRole("radio", { name: "kv-cost" }).click();
    const move = async (): Promise<string> => {
      const after = await read(page);
      const points = after.hitPercent - before.hitPercent;
      const isSeen = points >= 5 || after.ttftMs <= 0.8 * before.ttftMs;
      const words = `hit rate ${points.toFixed(1)} points, TTFT p95 ${before.ttftMs.toFixed(0)} to ${after.ttftMs.toFixed(0)} ms`;
      return `${isSeen ? "seen" : "not seen"}: ${words}`;
    };
    await expect.poll(move, { timeout: TWO_MINUTES_MS, interval: 1000 }).toMatch(/^seen/);
  },
);

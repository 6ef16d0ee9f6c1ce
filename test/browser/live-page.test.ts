import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { afterAll, describe, expect, test, type TestContext } from "vitest";
import { launchBrowser, metricValue, openPage, shownNumber } from "./browser.ts";
import { type Demo, isAlive, startDemo } from "./demo.ts";

/** What is expensive to start is started by the first test that needs it, and serves all. */
let shared: Promise<{ readonly browser: Browser; readonly demo: Demo }> | undefined;

function sharedDemo(context: TestContext): NonNullable<typeof shared> {
  shared ??= launchBrowser(context).then(async (browser) => ({ browser, demo: await startDemo() }));
  return shared;
}

afterAll(async () => {
  const { browser, demo } = (await shared?.catch(() => undefined)) ?? {};
  await browser?.close();
  await demo?.stop();
});

/** Sets the slider as a keyboard would leave it. */
async function setSlider(page: Page, value: number): Promise<void> {
  await page.locator("#concurrency").fill(String(value));
}

describe("the live page", () => {
  test("shows data in every chart soon after its start, and has nothing to complain about", async (context) => {
    const { browser, demo } = await sharedDemo(context);
    const { page, complaints } = await openPage(browser, demo.pageUrl);
    await expect.poll(() => metricValue(page, "ttft"), { timeout: 15_000 }).toBeGreaterThan(0);
    for (const chart of await page.locator(".metric .chart").all()) {
      await expect
        .poll(async () => Number(await chart.getAttribute("data-points")), { timeout: 60_000 })
        .toBeGreaterThan(2);
    }
    expect(await page.locator(".metric").count()).toBe(9);
    expect(await page.locator(".worker").count()).toBe(3);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("has requests in flight follow the slider, up at once and down when turns end", async (context) => {
    const { browser, demo } = await sharedDemo(context);
    const { page } = await openPage(browser, demo.pageUrl);
    const inFlight = (): Promise<number> => shownNumber(page, '[data-testid="in-flight"] b');
    await setSlider(page, 30);
    await expect.poll(inFlight, { timeout: 10_000 }).toBeGreaterThanOrEqual(25);
    expect(await page.locator(".concurrency .number").inputValue()).toBe("30");
    await page.locator(".concurrency .number").fill("4");
    await page.locator(".concurrency .number").press("Enter");
    await expect.poll(inFlight, { timeout: 90_000 }).toBeLessThanOrEqual(4);
    await page.close();
  });

  test("adds the accounts up to what was offered in every picture", async (context) => {
    const { browser, demo } = await sharedDemo(context);
    const { page } = await openPage(browser, demo.pageUrl);
    await page.getByTestId("accounting").waitFor();
    for (let picture = 0; picture < 5; picture++) {
      const before = await page.getByTestId("connection").evaluate(() => performance.now());
      const accounts = await page
        .locator("[data-account]")
        .evaluateAll((all) => all.map((one) => Number((one.textContent ?? "").replaceAll(",", ""))));
      const [offered, ...rest] = accounts;
      expect(rest).toHaveLength(7);
      expect(rest.reduce((sum, count) => sum + count, 0)).toBe(offered);
      await page.waitForFunction((ms) => performance.now() > ms + 450, before);
    }
    expect(await page.locator(".accounting .sum").innerText()).toContain("adds up");
    await page.close();
  });

  test("changes policy and knobs through the gateway, and marks the change", async (context) => {
    const { browser, demo } = await sharedDemo(context);
    const { page } = await openPage(browser, demo.pageUrl);
    const policyInForce = async (): Promise<{ policy: string; parameters: Record<string, unknown> }> =>
      (await (await fetch(`${demo.adminUrl}/admin/policy`)).json()) as never;
    await page.getByRole("radio", { name: "kv-cost" }).click();
    await expect.poll(async () => (await policyInForce()).policy).toBe("kv-cost");
    await page.locator(".notice.mixed").waitFor();
    expect(await page.locator(".notice.mixed").innerText()).toContain("kv-cost");
    await page.locator(".knobs summary").click();
    // Key by key, as people do: half a number is not to be taken for one.
    const knob = page.locator(".knob", { hasText: "overlap_score_weight" }).locator("input");
    await knob.press("ControlOrMeta+A");
    await knob.press("Backspace");
    await knob.pressSequentially("2.05");
    await page.getByRole("button", { name: "Apply" }).click();
    await expect.poll(async () => (await policyInForce()).parameters["overlap_score_weight"]).toBe(2.05);
    await page.getByLabel("Other policies").selectOption("product");
    await expect.poll(async () => (await policyInForce()).policy).toBe("product");
    await page.close();
  });

  test("shows a decision with every candidate and who won", async (context) => {
    const { browser, demo } = await sharedDemo(context);
    const { page } = await openPage(browser, demo.pageUrl);
    await page.locator(".decision tbody tr").first().waitFor();
    expect(await page.locator(".decision tbody tr").count()).toBe(3);
    expect(await page.locator(".decision tr.chosen").count()).toBe(1);
    await page.getByRole("button", { name: "Hold" }).click();
    const held = await page.locator(".decision caption").innerText();
    await setSlider(page, 12);
    await expect.poll(() => page.locator(".recent .request").first().innerText()).not.toBe(held.split(":")[0]);
    expect(await page.locator(".decision caption").innerText()).toBe(held);
    await page.close();
  });

  test("shows a killed worker at once, and brings it back", async (context) => {
    const { browser, demo } = await sharedDemo(context);
    const { page } = await openPage(browser, demo.pageUrl);
    const card = page.locator('[data-worker="worker-2"]');
    await card.getByRole("button", { name: "Kill" }).click();
    await expect.poll(() => card.getAttribute("data-state"), { timeout: 3000 }).toBe("dead");
    expect(await card.innerText()).toContain("dead for");
    await card.getByRole("button", { name: "Start" }).click();
    await expect.poll(() => card.getAttribute("data-state"), { timeout: 30_000 }).toBe("ready");
    await page.close();
  });

  test("counts what goes wrong by its kind, and takes the SLO for missed while much does", async (context) => {
    const { browser, demo } = await sharedDemo(context);
    const { page } = await openPage(browser, demo.pageUrl);
    const workers = (await (await fetch(`${demo.adminUrl}/admin/workers`)).json()) as { workers: { url: string }[] };
    const allRefuse = async (refuse: number | null): Promise<void> => {
      const body = JSON.stringify({ refuse });
      await Promise.all(workers.workers.map(({ url }) => fetch(`${url}/debug/faults`, { method: "POST", body })));
    };
    await allRefuse(400);
    try {
      const kinds = page.locator('[data-metric="errors"] .beside');
      await expect.poll(() => kinds.innerText(), { timeout: 30_000 }).toMatch(/rejected\s*\d/);
      await expect.poll(() => metricValue(page, "errors"), { timeout: 30_000 }).toBeGreaterThan(0.05);
      expect(await page.locator('[data-metric="ttft"]').getAttribute("data-slo")).toBe("missed");
    } finally {
      await allRefuse(null);
    }
    await page.close();
  });

  test("empties caches when asked, and the router's index hears of it", async (context) => {
    const { browser, demo } = await sharedDemo(context);
    const { page } = await openPage(browser, demo.pageUrl);
    const blocks = async (): Promise<number> =>
      ((await (await fetch(`${demo.adminUrl}/admin/index`)).json()) as { blocks: number }).blocks;
    await page.getByTestId("start-stop").click();
    await expect.poll(() => page.getByTestId("start-stop").innerText()).toBe("Start load");
    await expect.poll(() => shownNumber(page, '[data-testid="in-flight"] b'), { timeout: 90_000 }).toBe(0);
    expect(await blocks()).toBeGreaterThan(500);
    await page.getByRole("button", { name: "Reset caches" }).click();
    await expect.poll(blocks, { timeout: 10_000 }).toBe(0);
    await page.getByTestId("start-stop").click();
    await page.close();
  });

  test.each([
    { theme: "light", width: 1440 },
    { theme: "dark", width: 1440 },
    { theme: "light", width: 390 },
  ] as const)("has no serious accessibility findings in $theme at $width px, and does not overflow", async (view) => {
    const { browser, demo } = await shared!;
    const { page } = await openPage(browser, demo.pageUrl, { ...view, height: 900 });
    await page.locator(".worker").first().waitFor();
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run());
    const findings = violations.map(({ id, impact, nodes }) => ({ id, impact, html: nodes[0]?.html }));
    expect(findings.filter(({ impact }) => impact === "serious" || impact === "critical")).toEqual([]);
    const overflowPixels = await page
      .locator("html")
      .evaluate(
        ({ scrollWidth, clientWidth }: { scrollWidth: number; clientWidth: number }) => scrollWidth - clientWidth,
      );
    expect(overflowPixels).toBeLessThanOrEqual(0);
    await page.close();
  });

  test("says that it reconnects when the server is gone, and nothing is left of the demo after Ctrl-C", async (context) => {
    const { browser, demo } = await sharedDemo(context);
    const { page } = await openPage(browser, demo.pageUrl);
    await page.locator(".worker").first().waitFor();
    expect(demo.pids.length).toBe(4);
    expect(await demo.stop()).toBe(0);
    await expect.poll(() => page.getByTestId("connection").innerText(), { timeout: 10_000 }).toBe("reconnecting");
    expect(await page.locator(".banner").innerText()).toContain("Reconnecting");
    expect(demo.pids.filter(isAlive)).toEqual([]);
    await page.close();
  });
});

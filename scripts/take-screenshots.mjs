/**
 * Takes the pictures of the live page that the documents show, from a demo it starts itself:
 *
 *   node scripts/set-up.mjs --build && node --import tsx scripts/take-screenshots.mjs
 *
 * writes docs/images/live-*.png. It needs chromium, about five minutes, since the fleet runs in real time, and a machine
 * with nothing else to do.
 */
import { fileURLToPath } from "node:url";
import { launchBrowser, metricValue, openPage } from "../test/browser/browser.ts";
import { startDemo } from "../test/browser/demo.ts";

const folder = fileURLToPath(new URL("../docs/images/", import.meta.url));
const DESKTOP = { width: 1440, height: 900 };
const PROJECTOR = { width: 1920, height: 1080 };
const PHONE = { width: 390, height: 844 };
/** Drawing nine charts may take its time on a machine that simulates three GPUs. */
const PATIENCE_MS = 180_000;

const browser = await launchBrowser({
  skip: (note) => {
    process.stderr.write(`take-screenshots: ${note}\n`);
    process.exit(2);
  },
});

await withPage(["--stopped"], async (page) => {
  await page.locator(".worker").nth(2).waitFor();
  await picture(page, "empty", DESKTOP);
});

await withPage(["--policy", "round-robin", "--concurrency", "60"], async (page, demo) => {
  await until(page, () => completed(page), 450);
  await page.getByRole("radio", { name: "warmpath" }).click();
  await until(page, () => metricValue(page, "hit"), 0.9);
  await picture(page, "switch", DESKTOP);
  await page.getByRole("button", { name: "Dark" }).click();
  await picture(page, "projector-dark", PROJECTOR);
  await page.getByRole("button", { name: "Light" }).click();
  await picture(page, "phone", PHONE);
  await page.locator('[data-worker="worker-2"]').getByRole("button", { name: "Kill" }).click();
  await page.locator('[data-worker="worker-2"][data-state="dead"]').waitFor();
  await picture(page, "worker-lost", DESKTOP);
  await demo.stop();
  await page.locator(".banner").waitFor();
  await picture(page, "reconnecting", DESKTOP);
});

await browser.close();

async function withPage(words, work) {
  const demo = await startDemo(words);
  try {
    const { page } = await openPage(browser, demo.pageUrl, DESKTOP);
    page.setDefaultTimeout(PATIENCE_MS);
    await work(page, demo);
    await page.close();
  } finally {
    await demo.stop();
  }
}

async function picture(page, name, size) {
  await page.setViewportSize(size);
  // Charts are drawn again in their new size.
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  await page.screenshot({ path: `${folder}live-${name}.png` });
  process.stdout.write(`docs/images/live-${name}.png\n`);
}

async function completed(page) {
  return Number((await page.locator('[data-account="completed"]').innerText()).replaceAll(",", ""));
}

async function until(page, value, least) {
  while (!((await value()) >= least)) await page.waitForTimeout(1000);
}

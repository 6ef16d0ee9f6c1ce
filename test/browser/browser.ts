import { type Browser, chromium, type Page } from "playwright-core";
import { requireProgram, type SkippableTest } from "../support/required-component.ts";

const NAMES = ["chromium", "chromium-browser", "google-chrome"] as const;

/** Nothing may be asked for outside this machine, nor need a GPU or a sandbox that containers do not have. */
const SWITCHES = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** The system's browser; without one the test is skipped. */
export function launchBrowser(test: SkippableTest): Promise<Browser> {
  return chromium.launch({ executablePath: requireProgram(test, NAMES), args: SWITCHES });
}

export interface OpenOptions {
  readonly width?: number;
  readonly height?: number;
  readonly theme?: "light" | "dark";
}

/** A page of the demo with everything it complains about. */
export async function openPage(
  browser: Browser,
  url: string,
  { width = 1440, height = 900, theme = "light" }: OpenOptions = {},
): Promise<{ readonly page: Page; readonly complaints: readonly string[] }> {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: theme });
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith("data:"))
      complaints.push(`asked for ${request.url()}`);
  });
  await page.goto(url);
  return { page, complaints };
}

/** A number that the page shows, without its thousands; NaN while it shows none. */
export async function shownNumber(page: Page, selector: string): Promise<number> {
  const text = await page.locator(selector).first().innerText();
  return Number(text.replaceAll(",", "").replace("–", "NaN"));
}

/** The value of a metric's card in its base unit, whatever unit it is shown in; NaN while there is none. */
export async function metricValue(page: Page, metric: string): Promise<number> {
  const written = await page.getByTestId(`value-${metric}`).getAttribute("data-value");
  return written === null || written === "" ? Number.NaN : Number(written);
}

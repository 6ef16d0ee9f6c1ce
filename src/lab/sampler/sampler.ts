import type { Clock, Nanoseconds } from "../../core/clock.ts";
import { type PageReading, readPage } from "./page-reading.ts";

/** A page that is read again and again: that of a worker, or of something beside them. */
export interface SampledPage {
  /** The worker whose page it is; undefined for a frontend or an exporter. */
  readonly worker: string | undefined;
  readonly url: string;
}

/** A page at one moment; without a reading it did not answer. */
export interface TimedReading {
  readonly atNs: Nanoseconds;
  readonly reading: PageReading | undefined;
}

/** All that was read of one page, in the order of time. */
export interface PageHistory {
  readonly page: SampledPage;
  readonly readings: readonly TimedReading[];
}

export interface SamplerOptions {
  readonly pages: readonly SampledPage[];
  readonly clock: Clock;
  /** Reads a page; rejects where it cannot be had. */
  readonly read: (url: string) => Promise<string>;
}

/** Reads pages of metrics at an even pace. It asks for nothing else, so that it drives no load of its own. */
export class Sampler {
  readonly #options: SamplerOptions;
  readonly #histories: readonly { readonly page: SampledPage; readonly readings: TimedReading[]; isReading: boolean }[];
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SamplerOptions) {
    this.#options = options;
    this.#histories = options.pages.map((page) => ({ page, readings: [], isReading: false }));
  }

  get histories(): readonly PageHistory[] {
    return this.#histories;
  }

  start(intervalMs: number): void {
    this.#timer ??= setInterval(() => void this.sample(), intervalMs);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Reads all pages once; one that is still being read is not asked again. */
  async sample(): Promise<void> {
    const { clock, read } = this.#options;
    const atNs = clock.nowNs();
    await Promise.all(
      this.#histories.map(async (history) => {
        if (history.isReading) return;
        history.isReading = true;
        const text = await read(history.page.url).catch(() => undefined);
        history.isReading = false;
        history.readings.push({ atNs, reading: text === undefined ? undefined : readPage(text) });
      }),
    );
  }
}

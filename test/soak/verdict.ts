import { ACCOUNTS } from "../../src/core/accounts.ts";
import type { SoakResult, SoakSample } from "./soak.ts";

/** One thing that a soak must show. */
export interface Finding {
  readonly what: string;
  readonly isGood: boolean;
  readonly figures: string;
}

/** A quarter of the time. */
export interface Quarter {
  readonly fromSeconds: number;
  readonly toSeconds: number;
  readonly residentMegabytes: number;
  /** The least that was seen: what is left right after a collection. */
  readonly heapFloorMegabytes: number;
  readonly indexPages: number;
  /** Pages that were forgotten in it. */
  readonly evictedPages: number;
  readonly requests: number;
  readonly streams: number;
}

const QUARTERS = 4;
/** Pages are forgotten when none is free, up to a quarter of them at a time: an index at its cap is between that and full. */
const AT_CAP = 0.75;

export interface Bounds {
  /** How much memory may grow, as a share, from the second quarter to the last. */
  readonly growth: number;
  /** Share of the streams that must be under way: there is a moment between an answer and the next question. */
  readonly underWay: number;
}

/** What a soak has shown: the first quarter is for warming up, and the last is compared with the second. */
export function judge({ plan, samples, gateway, client }: SoakResult, { growth, underWay }: Bounds): Finding[] {
  const [, second, , last] = quartersOf(samples, plan.seconds);
  const change = last.residentMegabytes / second.residentMegabytes - 1;
  const maxPages = samples[0].indexMaxPages;
  const most = Math.max(...samples.map(({ indexBlocks }) => indexBlocks));
  const { offered, ...ends } = gateway;
  const sum = Object.values(ends).reduce((total, count) => total + count, 0);
  const isEqual = ACCOUNTS.every((account) => gateway[account] === client.accounting[account]);
  return [
    {
      what: `resident memory grows by at most ${percent(growth)} from the second quarter to the last`,
      isGood: change <= growth,
      figures: `${second.residentMegabytes.toFixed(1)} → ${last.residentMegabytes.toFixed(1)} MB, ${percent(change)}`,
    },
    {
      what: "the index is at its cap and never above it",
      isGood: last.indexPages >= AT_CAP * maxPages && last.evictedPages > 0 && most <= plan.indexBlocks,
      figures: `${last.indexPages} of ${maxPages} pages, ${last.evictedPages} forgotten in the last quarter; at most ${most} of ${plan.indexBlocks} blocks`,
    },
    {
      what: "every offered request is in exactly one account",
      isGood: sum === offered && gateway.unfinished === 0,
      figures: `${offered} offered, ${sum} in accounts, ${gateway.unfinished} unfinished`,
    },
    {
      what: "every account is what the client counted",
      isGood: isEqual && offered === client.accounting.offered,
      figures: `${client.accounting.offered} sent, ${client.accounting.completed} completed by the client's count, ${gateway.completed} by the gateway's`,
    },
    {
      what: "the streams were there",
      isGood: last.streams >= underWay * plan.streams,
      figures: `${last.streams} of ${plan.streams} requests under way in the last quarter`,
    },
  ];
}

/** Medians of each quarter of the time. */
export function quartersOf(samples: readonly SoakSample[], seconds: number): Quarter[] {
  return Array.from({ length: QUARTERS }, (_, i) => {
    const fromSeconds = (i * seconds) / QUARTERS;
    const toSeconds = ((i + 1) * seconds) / QUARTERS;
    // A last sample that comes a little late is of the last quarter all the same.
    const isLast = i === QUARTERS - 1;
    const within = samples.filter(({ atSeconds }) => atSeconds > fromSeconds && (isLast || atSeconds <= toSeconds));
    const first = within.at(0);
    const end = within.at(-1);
    if (first === undefined || end === undefined) throw new Error(`no sample after ${fromSeconds} s`);
    const middle = (of: (sample: SoakSample) => number): number => median(within.map(of));
    return {
      fromSeconds,
      toSeconds,
      residentMegabytes: middle(({ residentBytes }) => megabytes(residentBytes)),
      heapFloorMegabytes: Math.min(...within.map(({ heapUsedBytes }) => megabytes(heapUsedBytes))),
      indexPages: middle(({ indexPages }) => indexPages),
      evictedPages: end.evictedPages - first.evictedPages,
      requests: end.offered - first.offered,
      streams: middle(({ unfinished }) => unfinished),
    };
  });
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1];
}

function megabytes(bytes: number): number {
  return bytes / 1024 / 1024;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

import { WarmpathError } from "../../../core/errors.ts";
import {
  MOST_COUNTED,
  MOST_DP_RANKS,
  eventsUrl,
  problemOf,
  workerName,
} from "../../../planes/discovery/parts/worker-schema.ts";
import type { DiscoveredWorker } from "../../../planes/discovery/types.ts";

const NUMBERS: Readonly<Record<string, string>> = {
  "dp-ranks": "dpRanks",
  "kv-blocks": "kvBlocks",
  "batch-slots": "batchSlots",
  "step-tokens": "stepTokens",
};

/** Reads workers as flags have them: `http://host:8000`, `name=http://host:8000,events=tcp://host:5557`. */
export function workersFrom(written: readonly string[]): DiscoveredWorker[] {
  const workers = written.map((text, at) => workerFrom(text, `worker-${at + 1}`));
  const names = new Set<string>();
  for (const { name } of workers) {
    if (names.has(name)) throw invalid(`--worker ${name}: two workers have this name`);
    names.add(name);
  }
  return workers;
}

function workerFrom(written: string, nameless: string): DiscoveredWorker {
  const [first, ...rest] = written.split(",");
  const [, name = nameless, url] = /^(?:([^=/]+)=)?(https?:\/\/[^\s]+)$/.exec(first) ?? [];
  if (url === undefined || !URL.canParse(url)) {
    throw invalid(`--worker must be URL or NAME=URL with http or https, got ${JSON.stringify(written)}`);
  }
  const { error } = workerName.safeParse(name);
  if (error !== undefined) throw invalid(`--worker ${JSON.stringify(name)}: a name ${problemOf(error)}`);
  const fields: Record<string, number> = {};
  const addresses: Record<string, string> = {};
  for (const part of rest) {
    const [, key = "", value = ""] = /^([a-z-]+)=(.+)$/.exec(part) ?? [];
    if (key === "topic") addresses[key] = value;
    else if (key === "events" || key === "replay") addresses[key] = address(key, value);
    else if (NUMBERS[key] !== undefined) fields[NUMBERS[key]] = wholeNumber(key, value);
    else {
      const known = ["events", "replay", "topic", ...Object.keys(NUMBERS)].join(", ");
      throw invalid(`--worker ${name}: ${JSON.stringify(part)} is none of ${known}`);
    }
  }
  const { events, replay, topic } = addresses;
  if (events === undefined && (replay !== undefined || topic !== undefined)) {
    throw invalid(`--worker ${name}: replay and topic mean nothing without events`);
  }
  return {
    name,
    url,
    ...fields,
    ...(events !== undefined && {
      events: {
        url: events,
        ...(replay !== undefined && { replayUrl: replay }),
        ...(topic !== undefined && { topic }),
      },
    }),
  };
}

function address(key: string, written: string): string {
  const { error } = eventsUrl.safeParse(written);
  if (error === undefined) return written;
  throw invalid(`--worker: ${key} ${problemOf(error)}, got ${JSON.stringify(written)}`);
}

function wholeNumber(key: string, written: string): number {
  const most = key === "dp-ranks" ? MOST_DP_RANKS : MOST_COUNTED;
  const value = Number(written);
  if (Number.isSafeInteger(value) && value >= 1 && value <= most) return value;
  throw invalid(`--worker: ${key} must be a whole number from 1 to ${most}, got ${JSON.stringify(written)}`);
}

function invalid(message: string): WarmpathError {
  return new WarmpathError("WP_INVALID_INPUT", message);
}

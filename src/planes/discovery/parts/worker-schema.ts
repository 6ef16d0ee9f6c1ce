import { z } from "zod";
import type { DiscoveredWorker } from "../types.ts";

/** What a column of the router's load holds. */
export const MOST_COUNTED: number = 2 ** 31 - 1;
/** Each is a replica of its own with sockets of its own; the largest engines have some hundred. */
export const MOST_DP_RANKS = 1024;

const count: z.ZodOptional<z.ZodInt> = z.int().positive().max(MOST_COUNTED).optional();

const HEADER_VALUE = /^[\x21-\x7e\xa1-\xff]([\x20-\x7e\xa1-\xff]*[\x21-\x7e\xa1-\xff])?$/;

/** Answers name their worker in a header, which holds no other characters and no spaces at its ends. */
export const workerName: z.ZodString = z.string().refine((name) => HEADER_VALUE.test(name), {
  error: "must be of printable Latin-1 characters, with no space at either end, as a header has them",
});

const httpUrl = z
  .url({ protocol: /^https?$/, message: "must be an http:// or https:// URL" })
  .transform((url) => url.replace(/\/+$/, ""));

/** Where events may be; whether somebody is there is found out by listening. */
export const eventsUrl: z.ZodString = z
  .string()
  .regex(
    /^((trtllm\+)?https?|tcp|ipc):\/\/\S+$/,
    "must be an http://, https://, tcp://, ipc://, trtllm+http:// or trtllm+https:// address",
  );

/** A short form stands for a URL alone. */
const events = z.union([
  eventsUrl.transform((url) => ({ url })),
  z.strictObject({ url: eventsUrl, replayUrl: eventsUrl.optional(), topic: z.string().optional() }),
]);

const fields = {
  name: workerName.optional(),
  url: httpUrl,
  model: z.string().min(1).optional(),
  dpRanks: z.int().positive().max(MOST_DP_RANKS).optional(),
  batchSlots: count,
  kvBlocks: count,
  blockTokens: count,
  stepTokens: count,
  events: events.optional(),
};

/** A worker as people describe it, where a misspelt field is a mistake. */
export const describedWorker: z.ZodType<DiscoveredWorker> = z.strictObject(fields).transform(named);

/** A worker as it describes itself: a newer one may say more than is understood. */
export const announcedWorker: z.ZodType<DiscoveredWorker> = z.object(fields).transform(named);

/** One line that names the fields that are wrong. */
export function problemOf(error: z.ZodError): string {
  return error.issues
    .map(({ path, message }) => (path.length === 0 ? message : `${path.join(".")}: ${message}`))
    .join("; ");
}

/** A worker without a name goes by its host and port. */
function named<T extends { readonly name?: string | undefined; readonly url: string }>(
  worker: T,
): T & { name: string } {
  return { ...worker, name: worker.name ?? new URL(worker.url).host };
}

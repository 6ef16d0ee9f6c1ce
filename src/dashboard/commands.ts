import { z } from "zod";
import { WarmpathError } from "../core/errors.ts";
import { type Command, LEAST_CONCURRENCY, MOST_CONCURRENCY } from "./protocol.ts";

const name = z.string().min(1).max(200);

const commandSchema: z.ZodType<Command> = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("set-concurrency"),
    concurrency: z.int().min(LEAST_CONCURRENCY).max(MOST_CONCURRENCY),
  }),
  z.strictObject({ kind: z.literal("start") }),
  z.strictObject({ kind: z.literal("stop") }),
  z.strictObject({
    kind: z.literal("set-policy"),
    policy: name,
    parameters: z.record(z.string(), z.union([z.number(), z.string()])).optional(),
  }),
  z.strictObject({ kind: z.literal("reset-caches") }),
  z.strictObject({ kind: z.literal("end-worker"), worker: name }),
  z.strictObject({ kind: z.literal("start-worker"), worker: name }),
]);

/** Reads a command, or throws with one line for the person who gave it. */
export function readCommand(body: unknown): Command {
  const { data, error } = commandSchema.safeParse(body);
  if (error === undefined) return data;
  const [{ path, message }] = error.issues;
  const where = path.length === 0 ? "the command" : path.join(".");
  throw new WarmpathError("WP_INVALID_INPUT", `${where}: ${message}`);
}

import { z } from "zod";
import { WarmpathError } from "../../../core/errors.ts";
import { inputProblem } from "../../input-problem.ts";

const bound = z.int().min(1);

/**
 * vLLM's `--kv-events-config`, every field of its `KVEventsConfig`. The bounds on queues are read and have no effect: a simulated
 * engine publishes as fast as it makes events.
 */
const configSchema = z.strictObject({
  enable_kv_cache_events: z.boolean().default(true),
  publisher: z.enum(["zmq", "null"]).nullable().default("zmq"),
  endpoint: z.string().min(1).default("tcp://*:5557"),
  replay_endpoint: z.string().min(1).nullable().default(null),
  topic: z.string().default(""),
  buffer_steps: bound.default(10_000),
  hwm: bound.optional(),
  max_queue_size: bound.optional(),
});

/** Where and how events are published over ZMQ. */
export interface ZmqEventsConfig {
  readonly endpoint: string;
  readonly replayEndpoint: string | undefined;
  readonly topic: string;
  readonly replayDepth: number;
}

/** Reads the option; undefined where it says that nothing is published. */
export function readKvEventsConfig(written: string): ZmqEventsConfig | undefined {
  let input: unknown;
  try {
    input = JSON.parse(written);
  } catch (error) {
    throw new WarmpathError("WP_INVALID_INPUT", "--kv-events-config is not JSON", { cause: error });
  }
  const { data, error } = configSchema.safeParse(input);
  if (error !== undefined) throw inputProblem(error, input, "--kv-events-config");
  if (!data.enable_kv_cache_events || data.publisher === "null") return undefined;
  const { endpoint, replay_endpoint: replayEndpoint, topic, buffer_steps: replayDepth } = data;
  return { endpoint, replayEndpoint: replayEndpoint ?? undefined, topic, replayDepth };
}

import type * as JetStream from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { KvEvent } from "../../../core/kv-index/types.ts";
import { decodeKvEvent } from "../../../wire/kv-events/json-events.ts";
import type { EventSubjects } from "../../nats/subjects.ts";

export interface KeptEventsSource {
  readonly jetstream: typeof JetStream;
  readonly connection: NatsConnection;
  readonly subjects: Pick<EventSubjects, "stream" | "events">;
  readonly answerMs: number;
}

export interface EventRange {
  readonly incarnation: string;
  readonly fromEventId: number;
  readonly toEventId: number;
}

/** JetStream is read in lots of so many messages. */
const LOT = 1024;

/** A range of a worker's events as JetStream has kept them; undefined if it has not, or cannot be asked. */
export async function keptEvents(source: KeptEventsSource, range: EventRange): Promise<KvEvent[] | undefined> {
  const { jetstream, connection, subjects, answerMs } = source;
  const wanted = new Map<number, KvEvent>();
  const count = range.toEventId - range.fromEventId + 1;
  try {
    const { streams } = await jetstream.jetstreamManager(connection);
    const last = await streams.getMessage(subjects.stream, { last_by_subj: subjects.events });
    // A consumer would wait for what is not there; the last message tells at once.
    const lastKept = last === null ? undefined : decodeKvEvent(last.string());
    if (lastKept?.incarnation !== range.incarnation || lastKept.eventId < range.toEventId) return undefined;
    const { consumers } = jetstream.jetstream(connection);
    const consumer = await consumers.get(subjects.stream, { filter_subjects: subjects.events });
    for (let pending = 1; pending > 0 && wanted.size < count;) {
      // Where a lot brings nothing there is nothing more: the subject's last message is behind us.
      pending = 0;
      for await (const message of await consumer.fetch({ max_messages: LOT, expires: answerMs })) {
        const event = decodeKvEvent(message.string());
        if (event !== undefined && isIn(range, event)) wanted.set(event.eventId, event);
        pending = message.info.pending;
        if (pending === 0 || wanted.size === count) break;
      }
    }
    await consumer.delete();
  } catch {
    return undefined;
  }
  if (wanted.size < count) return undefined;
  return [...wanted.values()].sort((a, b) => a.eventId - b.eventId);
}

function isIn({ incarnation, fromEventId, toEventId }: EventRange, event: KvEvent): boolean {
  return event.incarnation === incarnation && event.eventId >= fromEventId && event.eventId <= toEventId;
}

import { NatsEventPublisher } from "../../../planes/event/nats-publisher.ts";
import type { EventPublisher, EventSource } from "../../../planes/event/types.ts";
import type { NatsLink } from "../../../planes/nats/connection.ts";
import { NatsResponder } from "../../../planes/request/nats-responder.ts";
import { eventServer, natsLink, requestServer } from "../../nats-option.ts";
import type { WorkerSettings } from "./settings.ts";

const BYTES_PER_MEGABYTE = 1e6;

/** What a worker has to do with NATS, which may be nothing. */
export interface NatsPlanes {
  readonly publisher: EventPublisher | undefined;
  /** Takes requests for the server at this address. */
  serve(targetUrl: string): Promise<void>;
  /** Takes no more requests. */
  stop(): Promise<void>;
  close(): Promise<void>;
}

export interface NatsPlanesOptions {
  readonly name: string;
  readonly incarnation: string;
  readonly source: EventSource;
  readonly loses: () => boolean;
}

/** Connects to the servers that the flags name. */
export async function natsPlanes(settings: WorkerSettings, options: NatsPlanesOptions): Promise<NatsPlanes> {
  const links = new Map<string, NatsLink>();
  const linkTo = async (url: string): Promise<NatsLink> => {
    const link = links.get(url) ?? (await natsLink(url, settings, options.name));
    links.set(url, link);
    return link;
  };
  const events = settings.publishEventsAndMetrics ? eventServer(settings) : undefined;
  const requests = requestServer(settings);
  const publisher = events && (await NatsEventPublisher.load({ link: await linkTo(events), ...options }));
  let responder: NatsResponder | undefined;
  return {
    publisher: publisher || undefined,
    serve: async (targetUrl) => {
      if (requests === undefined) return;
      const maxBodyBytes = settings.maxBodyMegabytes * BYTES_PER_MEGABYTE;
      responder = new NatsResponder({ link: await linkTo(requests), name: options.name, targetUrl, maxBodyBytes });
    },
    stop: async () => {
      await responder?.close();
    },
    close: async () => {
      responder?.kill();
      await Promise.all([...links.values()].map((link) => link.close()));
    },
  };
}

import type { DiscoveredWorker } from "../../../planes/discovery/types.ts";
import { HttpEventPlane } from "../../../planes/event/http.ts";
import { NatsEventPlane } from "../../../planes/event/nats.ts";
import type { EventPlane } from "../../../planes/event/types.ts";
import { TensorRtEventPlane } from "../../../planes/event/tensorrt.ts";
import { ZmqEventPlane } from "../../../planes/event/zmq.ts";
import { PrometheusLoad } from "../../../planes/load/prometheus.ts";
import type { LoadPlane } from "../../../planes/load/types.ts";
import { eventServer, natsLink } from "../../nats-option.ts";
import type { GatewaySettings } from "./settings.ts";

/** How each worker is heard. */
export interface WorkerPlanes {
  /** Where its KV events come from; undefined if its cache is to be guessed. */
  readonly eventsOf: (worker: DiscoveredWorker) => EventPlane | undefined;
  /** Who asks for its load; undefined if it tells of itself. */
  readonly loadOf: (worker: DiscoveredWorker) => LoadPlane | undefined;
  close(): Promise<void>;
}

const SCRAPE_MS = 1000;

/** Makes the planes that the settings and the workers known so far need. */
export async function createWorkerPlanes(
  settings: GatewaySettings,
  workers: readonly DiscoveredWorker[],
  canMatch: boolean,
  log: (line: string) => void = () => {},
): Promise<WorkerPlanes> {
  const { eventPlane, blockTokens } = settings;
  // Events of tokens that the gateway does not know itself would match nothing.
  const isDeaf = eventPlane === "none" || !canMatch;
  const mayNeedZmq = eventPlane === "zmq" || settings.discover !== undefined || workers.some(speaksZmq);
  const http = isDeaf ? undefined : new HttpEventPlane();
  const zmq = isDeaf || eventPlane === "http" || !mayNeedZmq ? undefined : await ZmqEventPlane.load({ blockTokens });
  const tensorRt = isDeaf ? undefined : new TensorRtEventPlane({ blockTokens });
  const server = isDeaf ? undefined : eventServer(settings);
  const link = server === undefined ? undefined : await natsLink(server, settings, "gateway, events");
  const nats = link === undefined ? undefined : await NatsEventPlane.load({ link });
  const load = settings.scrapeLoad ? new PrometheusLoad({ intervalMs: SCRAPE_MS }) : undefined;
  const unheard = new Set<string>();
  const eventsOf = (worker: DiscoveredWorker): EventPlane | undefined => {
    if (speaksZmq(worker)) {
      const { name } = worker;
      // One that came with new settings: what its wire needs is made at the start.
      if (zmq === undefined && !isDeaf && !unheard.has(name)) {
        unheard.add(name);
        log(
          `worker ${name}: events over ZMQ are heard after a restart, or with --event-plane zmq; its cache is guessed`,
        );
      }
      return zmq;
    }
    if (worker.events !== undefined && TensorRtEventPlane.isMeant(worker.events.url)) return tensorRt;
    if (nats !== undefined) return nats;
    return worker.events !== undefined || eventPlane === "http" ? http : undefined;
  };
  return {
    eventsOf,
    loadOf: (worker) => {
      const heard = eventsOf(worker);
      // Our own workers report their load with their events.
      return heard !== undefined && (heard === http || heard === nats) ? undefined : load;
    },
    close: async () => {
      await Promise.all([http?.close(), zmq?.close(), tensorRt?.close(), nats?.close(), load?.close()]);
      await link?.close();
    },
  };
}

function speaksZmq({ events }: DiscoveredWorker): boolean {
  return events?.url.startsWith("tcp://") === true || events?.url.startsWith("ipc://") === true;
}

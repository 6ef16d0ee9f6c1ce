import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { monotonicClock } from "../../../gateway/monotonic-clock.ts";
import { PeerSharing } from "../../../gateway/peer-sharing.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Router } from "../../../core/router.ts";
import { NatsPeerPlane } from "../../../planes/peers/nats.ts";
import { natsLink, peerServer } from "../../nats-option.ts";
import type { GatewaySettings } from "./settings.ts";

/** What gateways tell each other, and what must be closed after it. */
export interface Peers {
  readonly clock: Clock;
  /** Undefined where this gateway keeps to itself. */
  readonly sharing: PeerSharing | undefined;
  close(): Promise<void>;
}

export async function createPeers(
  settings: GatewaySettings,
  router: Router,
  log: (line: string) => void,
): Promise<Peers> {
  const clock = monotonicClock();
  const url = peerServer(settings);
  if (url === undefined) return { clock, sharing: undefined, close: () => Promise.resolve() };
  const name = `${hostname()}-${process.pid}-${randomBytes(3).toString("hex")}`;
  const link = await natsLink(url, settings, "gateway, peers");
  const sharing = new PeerSharing({ router, clock, plane: new NatsPeerPlane({ link, name }), name, log });
  return {
    clock,
    sharing,
    close: async () => {
      await sharing.close();
      await link.close();
    },
  };
}

import { Counter, Gauge, type Registry } from "prom-client";
import type { PeerSharing } from "../peer-sharing.ts";

/** Puts into a registry what is known of other gateways before the same fleet. */
export function registerPeerGauges(registry: Registry, sharing: Pick<PeerSharing, "peers" | "counts">): void {
  const peers: Gauge = new Gauge({
    name: "warmpath_peers",
    help: "Other gateways before this fleet that were heard of lately.",
    registers: [registry],
    collect: () => peers.set(sharing.peers.length),
  });
  const inFlight: Gauge = new Gauge({
    name: "warmpath_peer_in_flight",
    help: "Requests of other gateways that count as load here, by gateway.",
    labelNames: ["peer"],
    registers: [registry],
    collect: () => {
      inFlight.reset();
      for (const { name, inFlight: requests } of sharing.peers) inFlight.set({ peer: name }, requests);
    },
  });
  const messages: Counter = new Counter({
    name: "warmpath_peer_messages_total",
    help: "Messages of gateways to each other: sent, dropped, heard, malformed, or of another version.",
    labelNames: ["fate"],
    registers: [registry],
    collect: () => {
      const { sent, dropped, heard, malformed, otherVersion } = sharing.counts;
      messages.reset();
      for (const [fate, count] of Object.entries({ sent, dropped, heard, malformed, "other-version": otherVersion })) {
        messages.inc({ fate }, count);
      }
    },
  });
}

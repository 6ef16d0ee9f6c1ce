import { afterAll } from "vitest";
import { NatsLink } from "../../src/planes/nats/connection.ts";
import { MemoryPeers } from "../../src/planes/peers/memory.ts";
import { NatsPeerPlane } from "../../src/planes/peers/nats.ts";
import { NatsServer } from "../support/nats-server.ts";
import { describePeerPlaneContract } from "./peer-plane.contract.ts";

const REACHED_WITHIN_MS = 20_000;

let server: NatsServer | undefined;
let fleets = 0;

afterAll(async () => {
  await server?.close();
});

describePeerPlaneContract("memory", () => {
  const peers = new MemoryPeers();
  return Promise.resolve({
    join: () => Promise.resolve(peers.join()),
    inject: (bytes) => peers.inject(bytes),
    close: () => Promise.resolve(),
  });
});

describePeerPlaneContract("nats", async (test) => {
  const nats = (server ??= await NatsServer.start(test));
  // Every test is a fleet of its own on the one server.
  const prefix = `peers-${++fleets}`;
  const links: NatsLink[] = [];
  const connect = async (): Promise<NatsLink> => {
    const link = await NatsLink.load({ url: nats.url, prefix, reconnectMs: 20 });
    links.push(link);
    if (!(await link.reached(REACHED_WITHIN_MS))) throw new Error("the NATS server cannot be reached");
    return link;
  };
  const stranger = await connect();
  return {
    join: async (name) => {
      const link = await connect();
      const plane = new NatsPeerPlane({ link, name });
      return {
        get counts() {
          return plane.counts;
        },
        tell: (message) => plane.tell(message),
        listen: (listener) => {
          // A subscription counts once the server has taken note of it.
          const reached = (): void => void link.connection?.flush().then(() => listener.reached());
          plane.listen({ reached, heard: (message) => listener.heard(message) });
        },
        close: () => plane.close(),
      };
    },
    inject: (bytes) => stranger.connection?.publish(`${prefix}.peers`, bytes),
    cut: async () => {
      await nats.stop();
      await nats.again();
    },
    close: async () => {
      await Promise.all(links.map((link) => link.close()));
    },
  };
});

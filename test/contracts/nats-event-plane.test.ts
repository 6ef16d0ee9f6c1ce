import { afterAll } from "vitest";
import { NatsEventPlane } from "../../src/planes/event/nats.ts";
import { NatsEventPublisher } from "../../src/planes/event/nats-publisher.ts";
import { NatsLink } from "../../src/planes/nats/connection.ts";
import { CuttableProxy } from "../support/cuttable-proxy.ts";
import { NatsServer } from "../support/nats-server.ts";
import { CONTRACT_REPLAY_DEPTH, describeEventPlaneContract } from "./event-plane.contract.ts";

const replayDepth = CONTRACT_REPLAY_DEPTH;

let server: NatsServer | undefined;
let fleets = 0;

/** What belongs to a plane beside itself. */
const surroundings = new WeakMap<object, { readonly prefix: string; readonly proxy: CuttableProxy }>();

afterAll(async () => {
  await server?.close();
});

describeEventPlaneContract({
  title: "nats",
  carriesLoad: true,
  createPlane: async (test) => {
    server ??= await NatsServer.start(test);
    // Every test is a fleet of its own on the one server, and hears it through a wire that can be cut.
    const prefix = `fleet-${++fleets}`;
    const proxy = new CuttableProxy(server.port);
    const url = (await proxy.listen()).replace("tcp:", "nats:");
    const link = await NatsLink.load({ url, prefix, reconnectMs: 1 });
    const plane = await NatsEventPlane.load({ link, replayDepth, answerMs: 2000 });
    surroundings.set(plane, { prefix, proxy });
    const closePlane = plane.close.bind(plane);
    plane.close = async () => {
      await closePlane();
      await link.close();
      await proxy.close();
    };
    return plane;
  },
  createWorker: async (plane, name, snapshot, incarnation, instead) => {
    const around = surroundings.get(plane);
    if (server === undefined || around === undefined) throw new Error("the plane is not one of these tests");
    await instead?.close();
    const link = await NatsLink.load({ url: server.url, prefix: around.prefix, reconnectMs: 1 });
    const publisher = await NatsEventPublisher.load({ link, name, source: { snapshot }, incarnation, replayDepth });
    await publisher.ready;
    return {
      publisher,
      address: undefined,
      listenedTo: () => Promise.resolve(),
      sent: async () => link.connection?.flush(),
      cutConnections: () => {
        around.proxy.cut();
        return Promise.resolve();
      },
      close: async () => {
        await publisher.close();
        await link.close();
      },
    };
  },
});

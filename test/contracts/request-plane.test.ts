import { afterAll } from "vitest";
import { Upstreams } from "../../src/gateway/upstreams.ts";
import { NatsLink } from "../../src/planes/nats/connection.ts";
import { NatsRequestPlane } from "../../src/planes/request/nats.ts";
import { NatsResponder } from "../../src/planes/request/nats-responder.ts";
import { NatsServer } from "../support/nats-server.ts";
import { describeRequestPlaneContract } from "./request-plane.contract.ts";

describeRequestPlaneContract({
  title: "http",
  create: () => {
    const plane = new Upstreams({ connectMs: 2000 });
    return Promise.resolve({ plane, serve: () => Promise.resolve(), close: () => plane.close() });
  },
});

let server: NatsServer | undefined;
let fleets = 0;

afterAll(async () => {
  await server?.close();
});

describeRequestPlaneContract({
  title: "nats",
  create: async (test) => {
    server ??= await NatsServer.start(test);
    const { url } = server;
    const prefix = `fleet-${++fleets}`;
    const links: NatsLink[] = [];
    const connected = async (): Promise<NatsLink> => {
      const link = await NatsLink.load({ url, prefix });
      links.push(link);
      await new Promise<void>((resolve) => link.watch({ up: () => resolve() }));
      return link;
    };
    const plane = new NatsRequestPlane({ link: await connected() });
    const responders: NatsResponder[] = [];
    return {
      plane,
      serve: async (name, targetUrl) => {
        const link = await connected();
        responders.push(new NatsResponder({ link, name, targetUrl, maxBodyBytes: 10_000_000 }));
        // The responder watches the connection too, and was told of it before this resolves.
        await new Promise<void>((resolve) => link.watch({ up: () => resolve() }));
        await link.connection?.flush();
      },
      close: async () => {
        await plane.close();
        for (const responder of responders) responder.kill();
        for (const link of links) await link.close();
      },
    };
  },
});

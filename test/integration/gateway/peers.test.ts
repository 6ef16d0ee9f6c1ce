/** Two gateways before one worker that tell each other of their requests over a NATS server. */
import { afterEach, expect, test, vi } from "vitest";
import { NatsServer } from "../../support/nats-server.ts";
import { type GatewayUnderTest, startTestGateway } from "../../support/running-gateway.ts";
import { startTestWorker } from "../../support/running-worker.ts";

/** On a machine that has other things to do. */
const PATIENCE_MS = 20_000;

interface PeersView {
  readonly name: string;
  readonly peers: readonly { readonly name: string; readonly inFlight: number }[];
}

const closing: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function viewOf({ adminUrl }: GatewayUnderTest): Promise<PeersView> {
  return (await (await fetch(`${adminUrl}/admin/peers`)).json()) as PeersView;
}

test("gateways see each other's load, through a restart of the server, until one of them goes", async (context) => {
  const server = await NatsServer.start(context);
  closing.push(() => server.close());
  const worker = await startTestWorker({ speed: 1, name: "a" });
  closing.push(() => worker.close(0));
  const given = { worker: [`a=${worker.url}`], peerPlane: server.url };
  const [one, two] = [await startTestGateway(given), await startTestGateway(given)];
  closing.push(() => two.close());
  await vi.waitFor(async () => {
    expect((await viewOf(one)).peers).toMatchObject([{ name: (await viewOf(two)).name, inFlight: 0 }]);
  }, PATIENCE_MS);
  const { model } = worker;
  const streams = await Promise.all(
    ["x", "y"].map((prompt) => one.client.completions.create({ model, prompt, max_tokens: 2000, stream: true })),
  );
  await vi.waitFor(async () => expect((await viewOf(two)).peers).toMatchObject([{ inFlight: 2 }]), PATIENCE_MS);
  expect(two.decider.router.load.inFlightRequests(0)).toBe(2);
  const metrics = await two.decider.metricsText();
  expect(metrics).toMatch(/^warmpath_peers 1$/m);
  expect(metrics).toMatch(/^warmpath_peer_in_flight\{peer=".+"\} 2$/m);
  await server.stop();
  streams[0].controller.abort();
  await vi.waitFor(() => expect(one.decider.open).toBe(1), PATIENCE_MS);
  await server.again();
  // The end was told to nobody; what is still under way is said every second.
  await vi.waitFor(async () => expect((await viewOf(two)).peers).toMatchObject([{ inFlight: 1 }]), PATIENCE_MS);
  streams[1].controller.abort();
  await one.close();
  await vi.waitFor(async () => expect((await viewOf(two)).peers).toEqual([]), PATIENCE_MS);
  expect(two.decider.router.load.inFlightRequests(0)).toBe(0);
});

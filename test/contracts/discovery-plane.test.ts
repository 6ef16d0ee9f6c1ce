import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { request } from "undici";
import { stringify } from "yaml";
import { DnsDiscovery } from "../../src/planes/discovery/dns.ts";
import { FileDiscovery } from "../../src/planes/discovery/file.ts";
import { KubernetesDiscovery, openCluster } from "../../src/planes/discovery/kubernetes.ts";
import { LeaseRegistry } from "../../src/planes/discovery/lease-registry.ts";
import { Registration } from "../../src/planes/discovery/registration.ts";
import { StaticDiscovery } from "../../src/planes/discovery/static.ts";
import type { DiscoveredWorker } from "../../src/planes/discovery/types.ts";
import { DnsServer } from "../support/dns-server.ts";
import { KubernetesApi, type KubernetesObject } from "../support/kubernetes-api.ts";
import { describeDiscoveryContract, type DiscoveryWorld } from "./discovery-plane.contract.ts";

const INTERVAL_MS = 2;

const FIRST: DiscoveredWorker = { name: "a", url: "http://10.0.0.1:8000", model: "demo", kvBlocks: 100 };
const SECOND: DiscoveredWorker = { name: "b", url: "http://10.0.0.2:8000", events: { url: "tcp://10.0.0.2:5557" } };
const workers = [FIRST, SECOND, { ...FIRST, kvBlocks: 200 }] as const;

describeDiscoveryContract({
  title: "static",
  can: ["come", "change"],
  workers,
  create: (all) => {
    const plane = new StaticDiscovery(all);
    return Promise.resolve({
      plane,
      set: (some) => Promise.resolve(plane.replace(some)),
      close: () => Promise.resolve(),
    });
  },
});

for (const [title, written] of [
  ["file, YAML", (all: readonly DiscoveredWorker[]) => stringify({ workers: all })],
  ["file, JSON", (all: readonly DiscoveredWorker[]) => JSON.stringify(all)],
] as const) {
  describeDiscoveryContract({
    title,
    can: ["come", "change"],
    workers,
    create: async (all): Promise<DiscoveryWorld> => {
      const folder = await mkdtemp(join(tmpdir(), "warmpath-"));
      const path = join(folder, "workers");
      // Written beside and moved into place: nobody reads half a file.
      const put = async (text: string): Promise<void> => {
        await writeFile(`${path}.new`, text);
        await rename(`${path}.new`, path);
      };
      await put(written(all));
      return {
        plane: new FileDiscovery({ path, intervalMs: INTERVAL_MS }),
        set: (some) => put(written(some)),
        breakIt: () => put("- { url: nowhere, kvBlok: 1 }"),
        close: () => rm(folder, { recursive: true }),
      };
    },
  });
}

const placed = (host: string, port: number): DiscoveredWorker => ({
  name: `${host}:${port}`,
  url: `http://${host}:${port}`,
  model: "demo",
});

async function dnsWorld(
  all: readonly DiscoveredWorker[],
  port: number | undefined,
  recordsOf: (workers: readonly DiscoveredWorker[]) => DnsServer["records"],
): Promise<DiscoveryWorld> {
  const server = new DnsServer();
  const resolver = new Resolver({ timeout: 500, tries: 1 });
  resolver.setServers([await server.listen()]);
  server.records = recordsOf(all);
  const describe = (): Partial<DiscoveredWorker> => ({ model: "demo" });
  return {
    plane: new DnsDiscovery({ name: "workers.test", port, resolver, describe, intervalMs: INTERVAL_MS }),
    set: (some) => {
      server.isBroken = false;
      server.records = recordsOf(some);
      return Promise.resolve();
    },
    breakIt: () => {
      server.isBroken = true;
      return Promise.resolve();
    },
    close: () => server.close(),
  };
}

const hostOf = ({ url }: DiscoveredWorker): string => new URL(url).hostname;
const portOf = ({ url }: DiscoveredWorker): number => Number(new URL(url).port);

describeDiscoveryContract({
  title: "dns, addresses",
  can: ["come"],
  workers: [placed("10.0.0.1", 8000), placed("10.0.0.2", 8000), placed("10.0.0.1", 8000)],
  create: (all) => dnsWorld(all, 8000, (some) => (some.length === 0 ? {} : { a: some.map(hostOf).toReversed() })),
});

describeDiscoveryContract({
  title: "dns, services",
  can: ["come"],
  workers: [placed("a.test", 8001), placed("b.test", 8002), placed("a.test", 8001)],
  create: (all) =>
    dnsWorld(all, undefined, (some) =>
      some.length === 0 ? {} : { srv: some.map((worker) => ({ host: hostOf(worker), port: portOf(worker) })) },
    ),
});

const leaseSeconds = 60;

async function announce(url: string, description: object): Promise<void> {
  const { body } = await request(url, { method: "POST", body: JSON.stringify(description) });
  await body.dump();
}

describeDiscoveryContract({
  title: "registration",
  can: ["come", "change"],
  workers,
  create: async (all): Promise<DiscoveryWorld> => {
    const registry = new LeaseRegistry();
    const server = createServer((incoming, response) => {
      if (!registry.handle(incoming, response)) response.writeHead(404).end();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const registryUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const registrations = new Map<string, Registration>();
    const set = async (some: readonly DiscoveredWorker[]): Promise<void> => {
      for (const [name, registration] of registrations) {
        if (some.some((worker) => worker.name === name)) continue;
        registrations.delete(name);
        await registration.close();
      }
      for (const worker of some) {
        const registration = registrations.get(worker.name) ?? new Registration({ registryUrl, worker, leaseSeconds });
        if (!registrations.has(worker.name)) await registration.start();
        else await announce(`${registryUrl}/register`, { ...worker, leaseSeconds });
        registrations.set(worker.name, registration);
      }
    };
    await set(all);
    return {
      plane: registry,
      set,
      close: async () => {
        await Promise.all([...registrations.values()].map((registration) => registration.close()));
        await registry.close();
        server.close();
        server.closeAllConnections();
      },
    };
  },
});

const inPod = (name: string, host: string): DiscoveredWorker => ({
  name,
  url: `http://${host}:8000`,
  events: { url: `tcp://${host}:5557` },
});

const slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const pods = "/api/v1/namespaces/default/pods";

/** One slice for each worker: who is in which does not matter. */
const sliceOf = (worker: DiscoveredWorker): KubernetesObject => ({
  metadata: { name: `workers-${worker.name}`, labels: { "kubernetes.io/service-name": "workers" } },
  addressType: "IPv4",
  ports: [{ name: "http", port: portOf(worker) }],
  endpoints: [
    {
      addresses: [hostOf(worker)],
      conditions: { ready: true, serving: true, terminating: false },
      targetRef: { kind: "Pod", name: worker.name, uid: `uid-${worker.name}` },
    },
  ],
});

const podOf = (worker: DiscoveredWorker): KubernetesObject => ({
  metadata: { name: worker.name, uid: `uid-${worker.name}`, labels: { app: "engine" } },
  spec: { containers: [{ ports: [{ name: "http", containerPort: portOf(worker) }] }] },
  status: { phase: "Running", podIP: hostOf(worker), conditions: [{ type: "Ready", status: "True" }] },
});

for (const [title, select, path, objectOf] of [
  ["kubernetes, endpoint slices", { service: "workers" }, slices, sliceOf],
  ["kubernetes, pods", { labels: "app=engine" }, pods, podOf],
] as const) {
  describeDiscoveryContract({
    title,
    can: ["come", "change"],
    // A pod whose sandbox is made anew has another address.
    workers: [inPod("a", "10.0.0.1"), inPod("b", "10.0.0.2"), inPod("a", "10.0.0.3")],
    create: async (all): Promise<DiscoveryWorld> => {
      const api = new KubernetesApi();
      const access = openCluster(await api.listen());
      api.replace(path, all.map(objectOf));
      const describe = (host: string): Partial<DiscoveredWorker> => ({ events: { url: `tcp://${host}:5557` } });
      return {
        plane: new KubernetesDiscovery({ access, select, port: "http", describe, retryMs: INTERVAL_MS }),
        set: (some) => {
          api.brokenWith = undefined;
          api.replace(path, some.map(objectOf));
          return Promise.resolve();
        },
        breakIt: () => {
          api.brokenWith = 500;
          api.endWatches();
          return Promise.resolve();
        },
        close: () => api.close(),
      };
    },
  });
}

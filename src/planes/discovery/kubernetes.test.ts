import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import {
  KubernetesApi,
  type KubernetesApiOptions,
  type KubernetesObject,
} from "../../../test/support/kubernetes-api.ts";
import {
  type ClusterAccess,
  KubernetesDiscovery,
  type KubernetesDiscoveryOptions,
  openCluster,
  ownCluster,
} from "./kubernetes.ts";
import type { DiscoveredWorker, DiscoveryWatch } from "./types.ts";

const PODS = "/api/v1/namespaces/default/pods";
const SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** What was told, as words; `until` waits for them. */
class Told {
  readonly words: string[] = [];
  readonly workers = new Map<string, DiscoveredWorker>();
  #waiting: (() => void)[] = [];

  appeared(worker: DiscoveredWorker): void {
    this.workers.set(worker.name, worker);
    this.#note(`appeared ${worker.name}`);
  }

  changed(worker: DiscoveredWorker): void {
    this.workers.set(worker.name, worker);
    this.#note(`changed ${worker.name}`);
  }

  left(name: string): void {
    this.workers.delete(name);
    this.#note(`left ${name}`);
  }

  problem(message: string): void {
    this.#note(`problem ${message}`);
  }

  async until(isSo: (words: readonly string[]) => boolean): Promise<void> {
    while (!isSo(this.words)) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
  }

  #note(words: string): void {
    this.words.push(words);
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

async function startApi(options: KubernetesApiOptions = {}): Promise<{ api: KubernetesApi; access: ClusterAccess }> {
  const api = new KubernetesApi(options);
  const access = openCluster(await api.listen());
  closing.push(() => api.close());
  return { api, access };
}

async function watched(options: KubernetesDiscoveryOptions): Promise<{ told: Told; watch: DiscoveryWatch }> {
  const told = new Told();
  const watch = await new KubernetesDiscovery({ retryMs: 1, ...options }).watch(told);
  closing.push(() => watch.close());
  return { told, watch };
}

interface PodFacts {
  readonly uid?: string;
  readonly ip?: string;
  readonly isReady?: boolean;
  readonly isLeaving?: boolean;
  readonly app?: string;
}

function pod(name: string, facts: PodFacts = {}): KubernetesObject {
  const { uid = `uid-${name}`, ip = "10.0.0.1", isReady = true, isLeaving = false, app = "engine" } = facts;
  return {
    metadata: { name, uid, labels: { app }, ...(isLeaving && { deletionTimestamp: "2026-01-01T00:00:00Z" }) },
    spec: {
      containers: [
        {
          ports: [
            { name: "http", containerPort: 8000 },
            { name: "kv", containerPort: 5557 },
          ],
        },
      ],
    },
    status: { podIP: ip, conditions: [{ type: "Ready", status: isReady ? "True" : "False" }] },
  };
}

const byLabels = { labels: "app=engine" } as const;

describe("a pod", () => {
  test("is a worker from the moment it is ready", async () => {
    const { api, access } = await startApi();
    api.put(PODS, pod("a", { isReady: false }));
    api.put(PODS, pod("b"));
    const { told } = await watched({ access, select: byLabels });
    expect(told.words).toEqual(["appeared b"]);
    api.put(PODS, pod("a"));
    await told.until((words) => words.includes("appeared a"));
    expect(told.workers.get("a")).toEqual({ name: "a", url: "http://10.0.0.1:8000" });
  });

  test("that is no longer ready keeps its place until it is deleted", async () => {
    const { api, access } = await startApi();
    api.put(PODS, pod("a"));
    const { told } = await watched({ access, select: byLabels });
    api.put(PODS, pod("a", { isReady: false }));
    api.put(PODS, pod("b"));
    await told.until((words) => words.includes("appeared b"));
    expect(told.words).toEqual(["appeared a", "appeared b"]);
    api.put(PODS, pod("a", { isLeaving: true }));
    await told.until((words) => words.includes("left a"));
    expect([...told.workers.keys()]).toEqual(["b"]);
  });

  test("is another worker if it is another pod under the same name and address", async () => {
    const { api, access } = await startApi();
    api.put(PODS, pod("a"));
    const { told } = await watched({ access, select: byLabels });
    api.put(PODS, pod("a", { uid: "another" }));
    await told.until((words) => words.length === 3);
    expect(told.words).toEqual(["appeared a", "left a", "appeared a"]);
  });

  test("that loses its label has left", async () => {
    const { api, access } = await startApi();
    api.put(PODS, pod("a"));
    const { told } = await watched({ access, select: byLabels });
    api.put(PODS, pod("a", { app: "other" }));
    await told.until((words) => words.includes("left a"));
    expect(told.workers.size).toBe(0);
  });

  test("is reached on the port that was named, and in brackets where its address needs them", async () => {
    const { api, access } = await startApi();
    api.put(PODS, pod("a", { ip: "fd00::1" }));
    const { told } = await watched({ access, select: byLabels, port: "kv" });
    expect(told.workers.get("a")?.url).toBe("http://[fd00::1]:5557");
  });

  test("without the port is no worker, and somebody is told", async () => {
    const { api, access } = await startApi();
    api.put(PODS, pod("a"));
    const { told } = await watched({ access, select: byLabels, port: "grpc" });
    expect(told.words).toEqual(["problem kubernetes: pod a has no port grpc"]);
  });
});

describe("endpoint slices", () => {
  const slice = (name: string, addressType: string, endpoints: readonly object[]): KubernetesObject => ({
    metadata: { name, labels: { "kubernetes.io/service-name": "engines" } },
    addressType,
    endpoints,
    ports: [{ name: "", port: 8000 }],
  });
  const endpoint = (name: string, address: string, conditions: object = { ready: true }): object => ({
    addresses: [address],
    conditions,
    targetRef: { kind: "Pod", name, uid: `uid-${name}` },
  });

  test("of two address families are one worker", async () => {
    const { api, access } = await startApi();
    api.put(SLICES, slice("a-six", "IPv6", [endpoint("a", "fd00::1")]));
    api.put(SLICES, slice("b-four", "IPv4", [endpoint("a", "10.0.0.1")]));
    const { told } = await watched({ access, select: { service: "engines" } });
    expect([...told.workers.values()]).toEqual([{ name: "a", url: "http://10.0.0.1:8000" }]);
  });

  test("that are moved into each other lose nobody", async () => {
    const { api, access } = await startApi();
    api.put(SLICES, slice("one", "IPv4", [endpoint("a", "10.0.0.1")]));
    const { told } = await watched({ access, select: { service: "engines" } });
    api.put(SLICES, slice("two", "IPv4", [endpoint("a", "10.0.0.1"), endpoint("b", "10.0.0.2")]));
    api.delete(SLICES, "one");
    await told.until((words) => words.includes("appeared b"));
    api.put(SLICES, slice("two", "IPv4", [endpoint("a", "10.0.0.1")]));
    await told.until((words) => words.includes("left b"));
    expect(told.words).toEqual(["appeared a", "appeared b", "left b"]);
  });

  test("tell who is leaving before it is gone", async () => {
    const { api, access } = await startApi();
    api.put(SLICES, slice("one", "IPv4", [endpoint("a", "10.0.0.1"), endpoint("b", "10.0.0.2")]));
    const { told } = await watched({ access, select: { service: "engines" } });
    const leaving = endpoint("a", "10.0.0.1", { ready: false, serving: true, terminating: true });
    api.put(SLICES, slice("one", "IPv4", [leaving, endpoint("b", "10.0.0.2")]));
    await told.until((words) => words.includes("left a"));
    expect([...told.workers.keys()]).toEqual(["b"]);
  });
});

describe("the server", () => {
  test("is asked for a long list page by page", async () => {
    const { api, access } = await startApi({ pageObjects: 2 });
    for (const name of ["a", "b", "c", "d", "e"]) api.put(PODS, pod(name));
    const { told } = await watched({ access, select: byLabels });
    expect([...told.workers.keys()]).toEqual(["a", "b", "c", "d", "e"]);
  });

  test("that ends a watch is asked for what came after the last event, without a new list", async () => {
    const { api, access } = await startApi();
    const { told } = await watched({ access, select: byLabels });
    api.put(PODS, pod("a"));
    await told.until((words) => words.includes("appeared a"));
    api.endWatches();
    api.put(PODS, pod("b"));
    await told.until((words) => words.includes("appeared b"));
    expect(api.asked.filter(({ searchParams }) => !searchParams.has("watch"))).toHaveLength(1);
    expect(told.words).toEqual(["appeared a", "appeared b"]);
  });

  test("that cuts a watch in the middle of a line is asked again", async () => {
    const { api, access } = await startApi();
    api.put(PODS, pod("a"));
    const { told } = await watched({ access, select: byLabels });
    api.put(PODS, pod("b"));
    await told.until((words) => words.includes("appeared b"));
    api.cutWatches();
    api.put(PODS, pod("c"));
    await told.until((words) => words.includes("appeared c"));
    expect([...told.workers.keys()]).toEqual(["a", "b", "c"]);
  });

  test("that bookmarks a quiet watch is asked from there", async () => {
    const { api, access } = await startApi();
    api.put(PODS, pod("a"));
    const { told } = await watched({ access, select: byLabels });
    api.put(PODS, pod("b"));
    await told.until((words) => words.includes("appeared b"));
    api.bookmark();
    api.forget();
    api.bookmark();
    api.endWatches();
    api.put(PODS, pod("c"));
    await told.until((words) => words.includes("appeared c"));
    expect(api.asked.filter(({ searchParams }) => !searchParams.has("watch"))).toHaveLength(1);
  });

  test.each([
    ["ends a watch because it forgot the version", (api: KubernetesApi) => api.compact()],
    [
      "no longer knows the version it is asked for",
      (api: KubernetesApi) => {
        api.forget();
        api.endWatches();
      },
    ],
  ])("that %s is asked for a new list", async (_what, forget) => {
    const { api, access } = await startApi();
    api.put(PODS, pod("a"));
    api.put(PODS, pod("b"));
    const { told } = await watched({ access, select: byLabels });
    api.put(PODS, pod("c"));
    await told.until((words) => words.includes("appeared c"));
    forget(api);
    api.delete(PODS, "b");
    await told.until((words) => words.includes("left b"));
    expect([...told.workers.keys()]).toEqual(["a", "c"]);
    expect(told.words.filter((words) => words.startsWith("problem"))).toEqual([]);
  });

  test("that refuses is quoted, and asked again", async () => {
    const { api, access } = await startApi();
    api.put(PODS, pod("a"));
    api.brokenWith = 403;
    const { told } = await watched({ access, select: byLabels });
    expect(told.words).toEqual([`problem kubernetes: GET ${PODS} was answered with 403: the server is unwell`]);
    api.brokenWith = undefined;
    await told.until((words) => words.includes("appeared a"));
  });
});

describe("inside a cluster", () => {
  async function accountFolder(): Promise<{ folder: string; write: (name: string, text: string) => Promise<void> }> {
    const folder = await mkdtemp(join(tmpdir(), "warmpath-"));
    closing.push(() => rm(folder, { recursive: true }));
    return { folder, write: (name, text) => writeFile(join(folder, name), text) };
  }
  const fixture = (name: string): Promise<string> =>
    readFile(new URL(`../../../test/fixtures/kubernetes/${name}`, import.meta.url), "utf8");

  test("the pod's own token, authority and namespace are used, and a renewed token is picked up", async () => {
    const [key, cert] = [await fixture("tls.key"), await fixture("tls.crt")];
    let token = "first";
    const api = new KubernetesApi({ tls: { key, cert }, token: () => token });
    const { hostname, port } = new URL(await api.listen());
    closing.push(() => api.close());
    const { folder, write } = await accountFolder();
    await write("token", "first\n");
    await write("ca.crt", cert);
    await write("namespace", "models");
    const path = "/api/v1/namespaces/models/pods";
    api.put(path, pod("a"));
    const access = ownCluster({ KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port }, folder);
    if (access === undefined) throw new Error("this is a cluster");
    const { told } = await watched({ access, select: byLabels });
    expect(told.words).toEqual(["appeared a"]);
    // Only then: a watch that was asked for with the one token and came to a server that wants the other would be refused.
    await api.watched(path);
    await write("token", "second\n");
    token = "second";
    api.endWatches();
    api.put(path, pod("b"));
    await told.until((words) => words.includes("appeared b"));
    expect(told.words).toEqual(["appeared a", "appeared b"]);
  });

  test("a server of another authority is not believed", async () => {
    const [key, cert] = [await fixture("tls.key"), await fixture("tls.crt")];
    const api = new KubernetesApi({ tls: { key, cert } });
    const url = await api.listen();
    closing.push(() => api.close());
    api.put(PODS, pod("a"));
    const { told } = await watched({ access: openCluster(url), select: byLabels });
    expect(told.words).toHaveLength(1);
    expect(told.words[0]).toMatch(/^problem kubernetes: .*certificate/);
  });

  test("a pod without its token says what to look at", async () => {
    const { folder } = await accountFolder();
    const access = ownCluster({ KUBERNETES_SERVICE_HOST: "127.0.0.1" }, folder);
    await expect(access?.namespace()).rejects.toThrow(/automountServiceAccountToken/);
  });

  test("is not where no server is named", () => {
    expect(ownCluster({})).toBeUndefined();
  });
});

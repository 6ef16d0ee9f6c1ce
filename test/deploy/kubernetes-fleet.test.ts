import { afterEach, expect, test } from "vitest";
import { KubernetesApi, type KubernetesObject } from "../support/kubernetes-api.ts";
import { type GatewayUnderTest, startTestGateway } from "../support/running-gateway.ts";
import { startTestWorker, type WorkerUnderTest, words } from "../support/running-worker.ts";

const SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const MODEL = "llama-3.1-8b";
const POLL = { timeout: 30_000 } as const;

const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** A slice with one pod: those of one machine differ in their ports, and ports are a slice's. */
function slice(name: string, { url }: WorkerUnderTest, isLeaving = false): KubernetesObject {
  const { hostname, port } = new URL(url);
  return {
    metadata: { name: `engines-${name}`, labels: { "kubernetes.io/service-name": "engines" } },
    addressType: "IPv4",
    ports: [{ name: "http", port: Number(port) }],
    endpoints: [
      {
        addresses: [hostname],
        conditions: { ready: !isLeaving, serving: true, terminating: isLeaving },
        targetRef: { kind: "Pod", name, uid: `uid-${name}` },
      },
    ],
  };
}

async function worker(): Promise<WorkerUnderTest> {
  const started = await startTestWorker({ modelPath: MODEL });
  closing.push(() => started.close(0));
  return started;
}

async function gatewayOf(api: KubernetesApi): Promise<GatewayUnderTest> {
  const server = await api.listen();
  closing.push(() => api.close());
  const discover = `kubernetes:service=engines,port=http,server=${server}`;
  const gateway = await startTestGateway({ discover, tokenizer: "word", blockTokens: 16 });
  closing.push(() => gateway.close());
  return gateway;
}

const indexOf = async ({ adminUrl }: GatewayUnderTest): Promise<{ blocks: number; replicas: { name: string }[] }> =>
  (await (await fetch(`${adminUrl}/admin/index`)).json()) as { blocks: number; replicas: { name: string }[] };

const stateOf = async ({ adminUrl }: GatewayUnderTest, name: string): Promise<string | undefined> => {
  const answer = await (await fetch(`${adminUrl}/admin/workers`)).json();
  const { workers } = answer as { workers: { worker: string; state: string }[] };
  return workers.find(({ worker: pod }) => pod === name)?.state;
};

test("a pod that appears serves with what it had cached, and one that terminates loses its blocks at once", async () => {
  const [first, second] = [await worker(), await worker()];
  // It was here before the gateway, and has something cached that the gateway must learn of before it decides.
  const content = words(320, "known");
  const request = { model: MODEL, messages: [{ role: "user" as const, content }], max_tokens: 2 };
  await second.client.chat.completions.create(request);
  const api = new KubernetesApi();
  api.put(SLICES, slice("pod-a", first));
  const gateway = await gatewayOf(api);
  await expect.poll(() => stateOf(gateway, "pod-a"), POLL).toBe("ready");

  api.put(SLICES, slice("pod-b", second));
  await expect.poll(() => stateOf(gateway, "pod-b"), POLL).toBe("ready");
  expect((await indexOf(gateway)).blocks).toBeGreaterThan(0);
  const answer = await gateway.client.chat.completions.create(request).withResponse();
  expect(answer.response.headers.get("x-warmpath-worker")).toBe("pod-b");
  expect(answer.data.usage?.prompt_tokens_details?.cached_tokens).toBeGreaterThan(300);

  api.put(SLICES, slice("pod-b", second, true));
  await expect.poll(() => stateOf(gateway, "pod-b"), POLL).toBeUndefined();
  const index = await indexOf(gateway);
  expect(index.blocks).toBe(0);
  expect(index.replicas.map(({ name }) => name)).toEqual(["pod-a"]);
});

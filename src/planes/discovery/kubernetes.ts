import { ApiClient, type Collection } from "./kubernetes/api-client.ts";
import type { ClusterAccess } from "./kubernetes/cluster.ts";
import type { EndpointSlice, Pod } from "./kubernetes/objects.ts";
import { type Place, podPlaces, type PortChoice, slicePlaces } from "./kubernetes/places.ts";
import { Reflector } from "./kubernetes/reflector.ts";
import { Roster } from "./parts/roster.ts";
import type { DiscoveredWorker, DiscoveryListener, DiscoveryPlane, DiscoveryWatch } from "./types.ts";

export { type ClusterAccess, openCluster, ownCluster } from "./kubernetes/cluster.ts";

export interface KubernetesDiscoveryOptions {
  readonly access: ClusterAccess;
  /** Whose pods are workers: those behind a service, or all that have the labels. */
  readonly select: { readonly service: string } | { readonly labels: string };
  /** The access' own if absent. */
  readonly namespace?: string | undefined;
  readonly port?: PortChoice;
  /** What is known of a worker besides its address. */
  readonly describe?: (host: string, port: number) => Partial<DiscoveredWorker>;
  readonly retryMs?: number;
}

const RETRY_MS = 1000;
const SERVICE_LABEL = "kubernetes.io/service-name";

/**
 * Workers that are pods of a Kubernetes cluster. A pod is a worker from the moment it is ready until it is deleted: one that
 * fails its readiness probe under load keeps its place in the index, and whether it gets requests is the gateway's to judge.
 */
export class KubernetesDiscovery implements DiscoveryPlane {
  readonly #options: KubernetesDiscoveryOptions;

  constructor(options: KubernetesDiscoveryOptions) {
    this.#options = options;
  }

  async watch(listener: DiscoveryListener): Promise<DiscoveryWatch> {
    const { access, select, port, retryMs = RETRY_MS } = this.#options;
    const roster = new Roster(listener);
    const workers = new WorkerPods(roster, this.#options);
    const namespace = this.#options.namespace ?? (await access.namespace());
    const report = (message: string): void => roster.problem(`kubernetes: ${message}`);
    const reflect = <T extends Pod | EndpointSlice>(
      collection: Collection,
      placesOf: (objects: readonly T[], port: PortChoice) => Place[],
    ): Reflector<T> => {
      const changed = (objects: readonly T[]): void => workers.are(placesOf(objects, port));
      return new Reflector({ client: new ApiClient<T>(access), collection, changed, problem: report, retryMs });
    };
    const reflector =
      "service" in select
        ? reflect(endpointSlices(namespace, select.service), slicePlaces)
        : reflect({ path: `/api/v1/namespaces/${namespace}/pods`, labelSelector: select.labels }, podPlaces);
    await reflector.start();
    return {
      close: async () => {
        roster.close();
        await reflector.close();
      },
    };
  }
}

/** Tells of pods as workers. */
class WorkerPods {
  readonly #roster: Roster;
  readonly #options: KubernetesDiscoveryOptions;
  /** Pods that are workers, by name. */
  #uids: ReadonlyMap<string, string> = new Map();

  constructor(roster: Roster, options: KubernetesDiscoveryOptions) {
    this.#roster = roster;
    this.#options = options;
  }

  are(places: readonly Place[]): void {
    const wanted = places.filter(({ name, uid, isReady, isLeaving }) => {
      return !isLeaving && (isReady || this.#uids.get(name) === uid);
    });
    for (const { name, uid } of wanted) {
      const before = this.#uids.get(name);
      // Another pod has nothing of what the one before it had cached, whatever its address.
      if (before !== undefined && before !== uid) this.#roster.remove(name);
    }
    this.#uids = new Map(wanted.map(({ name, uid }) => [name, uid]));
    this.#roster.replace(wanted.flatMap((place) => this.#workerAt(place)));
    const portless = wanted.find(({ port }) => port === undefined);
    if (portless !== undefined) {
      this.#roster.problem(`kubernetes: pod ${portless.name} has no port ${this.#options.port ?? "at all"}`);
    }
  }

  #workerAt({ name, host, port }: Place): DiscoveredWorker[] {
    if (port === undefined) return [];
    return [{ name, url: `http://${host}:${port}`, ...this.#options.describe?.(host, port) }];
  }
}

function endpointSlices(namespace: string, service: string): Collection {
  const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
  return { path, labelSelector: `${SERVICE_LABEL}=${service}` };
}

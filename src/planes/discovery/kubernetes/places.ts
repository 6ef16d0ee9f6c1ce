import type { EndpointSlice, Pod } from "./objects.ts";

/** A pod as a worker: where it is, and whether it came and goes. */
export interface Place {
  /** The pod's name, unique in its namespace. */
  readonly name: string;
  /** Another pod under the same name is another worker. */
  readonly uid: string;
  /** Brackets around it where a URL needs them. */
  readonly host: string;
  /** Undefined if the pod has no such port. */
  readonly port: number | undefined;
  readonly isReady: boolean;
  readonly isLeaving: boolean;
}

/** A port by its number or name; undefined is the first one there is. */
export type PortChoice = number | string | undefined;

const ENDED: ReadonlySet<string> = new Set(["Succeeded", "Failed"]);

/** Pods that have an address, in the order of their names. */
export function podPlaces(pods: readonly Pod[], wanted: PortChoice): Place[] {
  const places = pods.flatMap(({ metadata, spec, status }): Place[] => {
    if (status?.podIP === undefined || status.podIP === "") return [];
    const ports = (spec?.containers ?? []).flatMap((container) => container.ports ?? []);
    return [
      {
        name: metadata.name,
        uid: metadata.uid,
        host: hostOf(status.podIP),
        port: portOf(
          ports.map(({ name, containerPort }) => ({ name, port: containerPort })),
          wanted,
        ),
        isReady: (status.conditions ?? []).some((one) => one.type === "Ready" && one.status === "True"),
        isLeaving: metadata.deletionTimestamp !== undefined || ENDED.has(status.phase ?? ""),
      },
    ];
  });
  return places.sort(byName);
}

/** Endpoints of a service, in the order of their pods' names. */
export function slicePlaces(slices: readonly EndpointSlice[], wanted: PortChoice): Place[] {
  const best = new Map<string, Place>();
  // One pod is in several slices where it has two addresses, and for a moment where slices are filled anew.
  for (const slice of [...slices].sort(ipv4First)) {
    const port = portOf(slice.ports ?? [], wanted);
    for (const { addresses, conditions, targetRef } of slice.endpoints ?? []) {
      const [address] = addresses;
      const name = targetRef?.name ?? address;
      const place: Place = {
        name,
        uid: targetRef?.uid ?? address,
        host: hostOf(address),
        port,
        isReady: conditions?.ready ?? true,
        isLeaving: conditions?.terminating ?? false,
      };
      const before = best.get(name);
      if (before === undefined || rank(place) > rank(before)) best.set(name, place);
    }
  }
  return [...best.values()].sort(byName);
}

function portOf(
  ports: readonly { readonly name?: string | undefined; readonly port?: number | undefined }[],
  wanted: PortChoice,
): number | undefined {
  if (typeof wanted === "number") return wanted;
  return (wanted === undefined ? ports[0] : ports.find(({ name }) => name === wanted))?.port;
}

function rank({ isReady, isLeaving }: Place): number {
  return (isLeaving ? 0 : 2) + (isReady ? 1 : 0);
}

function hostOf(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}

function byName(a: Place, b: Place): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

function ipv4First(a: EndpointSlice, b: EndpointSlice): number {
  return Number(a.addressType !== "IPv4") - Number(b.addressType !== "IPv4");
}

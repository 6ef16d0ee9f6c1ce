import { WarmpathError } from "../../../core/errors.ts";
import { DescribedDiscovery } from "../../../planes/discovery/described.ts";
import { DnsDiscovery } from "../../../planes/discovery/dns.ts";
import { FileDiscovery } from "../../../planes/discovery/file.ts";
import { KubernetesDiscovery } from "../../../planes/discovery/kubernetes.ts";
import { LeaseRegistry } from "../../../planes/discovery/lease-registry.ts";
import { StaticDiscovery } from "../../../planes/discovery/static.ts";
import type { DiscoveredWorker, DiscoveryPlane } from "../../../planes/discovery/types.ts";
import type { HttpMount } from "../../../planes/http-mount/types.ts";
import { kubernetesOptions } from "./kubernetes-option.ts";

/** Where workers are found, and what of it must be reachable over HTTP. */
export interface Discovery {
  /** The first to tell of a name has it. */
  readonly planes: readonly DiscoveryPlane[];
  readonly mounts: readonly HttpMount[];
  /** Those that are named one by one. */
  readonly named: StaticDiscovery;
  /** Those that announce themselves. */
  readonly registry?: LeaseRegistry;
}

const LOOK_MS = 2000;
const LAST_PORT = 65_535;

/** Reads what `--discover` says; workers named by flags are found in any case. All but those that register are asked. */
export function createDiscovery(workers: readonly DiscoveredWorker[], source: string | undefined): Discovery {
  const described = (plane: DiscoveryPlane): DiscoveryPlane => new DescribedDiscovery({ plane, intervalMs: LOOK_MS });
  const named = new StaticDiscovery(workers);
  const found = (plane?: DiscoveryPlane): Discovery => ({
    planes: [described(named), ...(plane === undefined ? [] : [described(plane)])],
    mounts: [],
    named,
  });
  if (source === undefined) return found();
  const [, kind = source, rest = ""] = /^([a-z]+):(.+)$/.exec(source) ?? [];
  switch (kind) {
    case "registration": {
      const registry = new LeaseRegistry({ isTaken: (name) => named.has(name) });
      return { planes: [described(named), registry], mounts: [registry], named, registry };
    }
    case "file":
      return found(new FileDiscovery({ path: rest, intervalMs: LOOK_MS }));
    case "kubernetes":
      return found(new KubernetesDiscovery(kubernetesOptions(rest, process.env)));
    case "srv":
      return found(new DnsDiscovery({ name: rest, intervalMs: LOOK_MS }));
    case "dns": {
      const [, name, port] = /^(.+):(\d+)$/.exec(rest) ?? [];
      if (name === undefined || Number(port) < 1 || Number(port) > LAST_PORT) break;
      return found(new DnsDiscovery({ name, port: Number(port), intervalMs: LOOK_MS }));
    }
  }
  const forms = "file:PATH, dns:NAME:PORT, srv:NAME, kubernetes:service=NAME,… or registration";
  throw new WarmpathError("WP_INVALID_INPUT", `--discover must be ${forms}; got ${JSON.stringify(source)}`);
}

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
  readonly planes: readonly DiscoveryPlane[];
  readonly mounts: readonly HttpMount[];
}

const LOOK_MS = 2000;

/** Reads what `--discover` says; workers named by flags are found in any case. All but those that register are asked. */
export function createDiscovery(workers: readonly DiscoveredWorker[], source: string | undefined): Discovery {
  const described = (plane: DiscoveryPlane): DiscoveryPlane => new DescribedDiscovery({ plane, intervalMs: LOOK_MS });
  const named = described(new StaticDiscovery(workers));
  if (source === undefined) return { planes: [named], mounts: [] };
  const [, kind = source, rest = ""] = /^([a-z]+):(.+)$/.exec(source) ?? [];
  switch (kind) {
    case "registration": {
      const registry = new LeaseRegistry();
      return { planes: [named, registry], mounts: [registry] };
    }
    case "file":
      return { planes: [named, described(new FileDiscovery({ path: rest, intervalMs: LOOK_MS }))], mounts: [] };
    case "kubernetes":
      return { planes: [named, described(new KubernetesDiscovery(kubernetesOptions(rest, process.env)))], mounts: [] };
    case "srv":
      return { planes: [named, described(new DnsDiscovery({ name: rest, intervalMs: LOOK_MS }))], mounts: [] };
    case "dns": {
      const [, name, port] = /^(.+):(\d+)$/.exec(rest) ?? [];
      if (name === undefined) break;
      const looked = new DnsDiscovery({ name, port: Number(port), intervalMs: LOOK_MS });
      return { planes: [named, described(looked)], mounts: [] };
    }
  }
  const forms = "file:PATH, dns:NAME:PORT, srv:NAME, kubernetes:service=NAME,… or registration";
  throw new WarmpathError("WP_INVALID_INPUT", `--discover must be ${forms}; got ${JSON.stringify(source)}`);
}

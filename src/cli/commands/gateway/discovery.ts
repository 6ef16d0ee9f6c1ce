import { WarmpathError } from "../../../core/errors.ts";
import { DnsDiscovery } from "../../../planes/discovery/dns.ts";
import { FileDiscovery } from "../../../planes/discovery/file.ts";
import { LeaseRegistry } from "../../../planes/discovery/lease-registry.ts";
import { StaticDiscovery } from "../../../planes/discovery/static.ts";
import type { DiscoveredWorker, DiscoveryPlane } from "../../../planes/discovery/types.ts";
import type { HttpMount } from "../../../planes/http-mount/types.ts";

/** Where workers are found, and what of it must be reachable over HTTP. */
export interface Discovery {
  readonly planes: readonly DiscoveryPlane[];
  readonly mounts: readonly HttpMount[];
}

const LOOK_MS = 2000;

/** Reads what `--discover` says; workers named by flags are found in any case. */
export function createDiscovery(workers: readonly DiscoveredWorker[], source: string | undefined): Discovery {
  const named = new StaticDiscovery(workers);
  if (source === undefined) return { planes: [named], mounts: [] };
  const [, kind = source, rest = ""] = /^([a-z]+):(.+)$/.exec(source) ?? [];
  switch (kind) {
    case "registration": {
      const registry = new LeaseRegistry();
      return { planes: [named, registry], mounts: [registry] };
    }
    case "file":
      return { planes: [named, new FileDiscovery({ path: rest, intervalMs: LOOK_MS })], mounts: [] };
    case "srv":
      return { planes: [named, new DnsDiscovery({ name: rest, intervalMs: LOOK_MS })], mounts: [] };
    case "dns": {
      const [, name, port] = /^(.+):(\d+)$/.exec(rest) ?? [];
      if (name === undefined) break;
      return { planes: [named, new DnsDiscovery({ name, port: Number(port), intervalMs: LOOK_MS })], mounts: [] };
    }
  }
  const forms = "file:PATH, dns:NAME:PORT, srv:NAME or registration";
  throw new WarmpathError("WP_INVALID_INPUT", `--discover must be ${forms}; got ${JSON.stringify(source)}`);
}

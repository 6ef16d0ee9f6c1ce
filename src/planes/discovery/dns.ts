import { Resolver } from "node:dns/promises";
import { lookRepeatedly } from "./parts/repeated-look.ts";
import { Roster } from "./parts/roster.ts";
import type { DiscoveredWorker, DiscoveryListener, DiscoveryPlane, DiscoveryWatch } from "./types.ts";

export interface DnsDiscoveryOptions {
  /** The name to look up. */
  readonly name: string;
  /** Port of all workers, by their A and AAAA records; without it SRV records say host and port. */
  readonly port?: number | undefined;
  readonly intervalMs: number;
  /** What is known of a worker besides its address. */
  readonly describe?: (host: string, port: number) => Partial<DiscoveredWorker>;
  readonly resolver?: Pick<Resolver, "resolve4" | "resolve6" | "resolveSrv">;
}

interface Place {
  readonly host: string;
  readonly port: number;
}

/** The host of a service that is decidedly not there, as RFC 2782 has it; without its dot in the resolver's words. */
const NOWHERE: ReadonlySet<string> = new Set(["", "."]);

/** Answers that mean that there is nobody, rather than that nothing could be found out. */
const NOBODY: ReadonlySet<string> = new Set(["ENOTFOUND", "ENODATA"]);

/** Workers behind a DNS name, as a headless service has them. */
export class DnsDiscovery implements DiscoveryPlane {
  readonly #options: DnsDiscoveryOptions;
  readonly #resolver: NonNullable<DnsDiscoveryOptions["resolver"]>;

  constructor(options: DnsDiscoveryOptions) {
    this.#options = options;
    this.#resolver = options.resolver ?? new Resolver();
  }

  async watch(listener: DiscoveryListener): Promise<DiscoveryWatch> {
    const { name, intervalMs } = this.#options;
    const roster = new Roster(listener);
    let lastMisnamed: string | undefined;
    const watch = await lookRepeatedly(async () => {
      const places = await this.#look().catch((error: Error) => roster.problem(`${name}: ${error.message}`));
      if (places === undefined) return;
      const workers = places.map((place) => this.#worker(place));
      roster.replace(workers.filter(({ url }) => URL.canParse(url)));
      const misnamed = workers.find(({ url }) => !URL.canParse(url))?.url;
      // Once: a look that found somebody makes the roster forget what was said before.
      if (misnamed !== undefined && misnamed !== lastMisnamed) {
        roster.problem(`${name}: ${JSON.stringify(misnamed)} is no address of a worker; it is left out`);
      }
      lastMisnamed = misnamed;
    }, intervalMs);
    return {
      look: () => watch.look(),
      close: () => {
        roster.close();
        return watch.close();
      },
    };
  }

  async #look(): Promise<Place[]> {
    const { name, port } = this.#options;
    if (port === undefined) {
      const records = await orNobody(this.#resolver.resolveSrv(name));
      const there = records.filter((record) => !NOWHERE.has(record.name));
      return inOrder(there.map((record) => ({ host: record.name, port: record.port })));
    }
    const [four, six] = await Promise.all([
      orNobody(this.#resolver.resolve4(name)),
      orNobody(this.#resolver.resolve6(name)),
    ]);
    return inOrder([...four, ...six.map((host) => `[${host}]`)].map((host) => ({ host, port })));
  }

  #worker({ host, port }: Place): DiscoveredWorker {
    const address = `${host}:${port}`;
    return { name: address, url: `http://${address}`, ...this.#options.describe?.(host, port) };
  }
}

async function orNobody<T>(records: Promise<T[]>): Promise<T[]> {
  try {
    return await records;
  } catch (error) {
    if (NOBODY.has((error as NodeJS.ErrnoException).code ?? "")) return [];
    throw error;
  }
}

/** Servers rotate their answers; the order in which workers are told of must not depend on it. */
function inOrder(places: Place[]): Place[] {
  return places.sort((a, b) => (a.host === b.host ? a.port - b.port : a.host < b.host ? -1 : 1));
}

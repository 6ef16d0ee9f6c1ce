import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";
import { collectBody, jsonOf } from "../../wire/body.ts";
import type { HttpMount } from "../http-mount/types.ts";
import { Roster } from "./parts/roster.ts";
import { announcedWorker, problemOf } from "./parts/worker-schema.ts";
import type { DiscoveredWorker, DiscoveryListener, DiscoveryPlane, DiscoveryWatch } from "./types.ts";

/** A worker that announced itself, and for how long at a time. */
export interface TakenLease {
  readonly worker: DiscoveredWorker;
  readonly leaseSeconds: number;
}

export interface LeaseRegistryOptions {
  /** Whether a name is that of a worker that does not announce itself; nobody else can have it. */
  readonly isTaken?: (name: string) => boolean;
}

interface Lease extends TakenLease {
  readonly expiry: NodeJS.Timeout;
}

const MAX_BODY_BYTES = 64 * 1024;
const MAX_LEASE_SECONDS = 3600;

const leaseSchema = z.object({ leaseSeconds: z.number().positive().max(MAX_LEASE_SECONDS) });

/**
 * Workers that announce themselves: `POST /register` with a description and `leaseSeconds` takes or renews a lease,
 * `DELETE /register/NAME` gives it back, `GET /register` lists them. A lease that is not renewed in time ends.
 */
export class LeaseRegistry implements DiscoveryPlane, HttpMount {
  readonly #isTaken: (name: string) => boolean;
  readonly #leases = new Map<string, Lease>();
  readonly #rosters = new Set<Roster>();

  constructor({ isTaken = () => false }: LeaseRegistryOptions = {}) {
    this.#isTaken = isTaken;
  }

  watch(listener: DiscoveryListener): Promise<DiscoveryWatch> {
    const roster = new Roster(listener);
    this.#rosters.add(roster);
    roster.replace([...this.#leases.values()].map(({ worker }) => worker));
    return Promise.resolve({
      close: () => {
        roster.close();
        this.#rosters.delete(roster);
        return Promise.resolve();
      },
    });
  }

  handle(request: IncomingMessage, response: ServerResponse): boolean {
    const path = request.url?.split("?", 1)[0] ?? "";
    if (path === "/register" && request.method === "GET") respond(response, 200, { workers: this.#list() });
    else if (path === "/register" && request.method === "POST") {
      this.#register(request, response).catch((error: unknown) => response.destroy(error as Error));
    } else if (path.startsWith("/register/") && request.method === "DELETE") this.#unregister(path, response);
    else return false;
    return true;
  }

  /** All leases, for another registry to go on with. */
  get leases(): readonly TakenLease[] {
    return [...this.#leases.values()].map(({ worker, leaseSeconds }) => ({ worker, leaseSeconds }));
  }

  /** Takes over leases of another registry; each must be renewed here in its time. */
  takeOver(leases: readonly TakenLease[]): void {
    for (const { worker, leaseSeconds } of leases) this.#take(worker, leaseSeconds);
  }

  /** Ends all leases without telling anybody. */
  close(): Promise<void> {
    for (const roster of this.#rosters) roster.close();
    for (const { expiry } of this.#leases.values()) clearTimeout(expiry);
    this.#leases.clear();
    return Promise.resolve();
  }

  #list(): object[] {
    return [...this.#leases.values()].map(({ worker, leaseSeconds }) => ({ ...worker, leaseSeconds }));
  }

  async #register(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { bytes } = await collectBody(request.iterator({ destroyOnReturn: false }), MAX_BODY_BYTES);
    const body = bytes === undefined ? undefined : jsonOf(bytes);
    const lease = leaseSchema.safeParse(body);
    const worker = announcedWorker.safeParse(body);
    if (!lease.success || !worker.success) {
      const wrong = [lease, worker].flatMap(({ error }) => (error === undefined ? [] : problemOf(error)));
      respond(response, 400, { error: [...new Set(wrong)].join("; ") });
      return;
    }
    const { leaseSeconds } = lease.data;
    if (this.#isTaken(worker.data.name)) {
      const error = `the gateway was started with a worker named ${worker.data.name}; announce this one under another name`;
      respond(response, 409, { error });
      return;
    }
    this.#take(worker.data, leaseSeconds);
    respond(response, 200, { name: worker.data.name, leaseSeconds });
  }

  #take(worker: DiscoveredWorker, leaseSeconds: number): void {
    const { name } = worker;
    clearTimeout(this.#leases.get(name)?.expiry);
    const expiry = setTimeout(() => this.#end(name), leaseSeconds * 1000);
    expiry.unref();
    this.#leases.set(name, { worker, leaseSeconds, expiry });
    for (const roster of this.#rosters) roster.set(worker);
  }

  #unregister(path: string, response: ServerResponse): void {
    const name = decoded(path.slice("/register/".length));
    if (name === undefined || !this.#end(name)) respond(response, 404, { error: "no worker has this name" });
    else respond(response, 200, { name });
  }

  #end(name: string): boolean {
    clearTimeout(this.#leases.get(name)?.expiry);
    if (!this.#leases.delete(name)) return false;
    for (const roster of this.#rosters) roster.remove(name);
    return true;
  }
}

function respond(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

import { WarmpathError } from "../../../../core/errors.ts";
import { field } from "../../../../wire/openai-usage.ts";
import { bearer, ownAdminToken } from "../../../secrets.ts";
import { httpJson } from "./http-page.ts";

/** A worker as the gateway's admin API describes it. */
export interface AdminWorker {
  readonly name: string;
  readonly url: string;
  readonly state: string;
  readonly events: Readonly<Record<string, number>> | undefined;
}

/** The admin API of a Warmpath gateway, as far as experiments need it. */
export class GatewayAdmin {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url.replace(/\/+$/, "");
  }

  async workers(): Promise<AdminWorker[]> {
    const list = field(await this.#get("workers"), "workers");
    if (!Array.isArray(list)) throw this.#foreign();
    return list.map((worker: unknown) => {
      const events = field(worker, "events");
      return {
        name: String(field(worker, "name")),
        url: String(field(worker, "url")),
        state: String(field(worker, "state")),
        events: typeof events === "object" && events !== null ? (events as Record<string, number>) : undefined,
      };
    });
  }

  async readyWorkers(): Promise<number> {
    return (await this.workers()).filter(({ state }) => state === "ready").length;
  }

  /** How often each worker has begun anew, as its events tell. */
  async identities(): Promise<ReadonlyMap<string, string> | undefined> {
    const workers = await this.workers();
    return new Map(workers.map(({ name, events }) => [name, `${events?.["restarts"] ?? 0} restarts`]));
  }

  /** KV events that have changed the index; a gateway without an event plane has none. */
  async eventsApplied(): Promise<number> {
    const counts = (await this.workers()).map(({ events }) => events?.["applied"] ?? 0);
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async setPolicy(policy: string, parameters: Readonly<Record<string, number | string>>): Promise<void> {
    await httpJson(`${this.#url}/admin/policy`, {
      method: "PUT",
      body: { policy, parameters },
      headers: bearer(ownAdminToken()),
    });
  }

  /** The settings that the gateway was started with. */
  async settings(): Promise<Readonly<Record<string, unknown>>> {
    return (await this.#get("settings")) as Record<string, unknown>;
  }

  async #get(what: string): Promise<unknown> {
    return await httpJson(`${this.#url}/admin/${what}`, { headers: bearer(ownAdminToken()) });
  }

  #foreign(): WarmpathError {
    return new WarmpathError("WP_INVALID_INPUT", `${this.#url} is not the admin API of a Warmpath gateway`);
  }
}

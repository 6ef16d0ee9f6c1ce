import type { GatewayAdmin } from "../live/gateway-admin.ts";
import { httpText } from "../live/http-page.ts";
import type { ShellHooks } from "./shell-hooks.ts";

/** A worker behind an endpoint, as far as it is known. */
export interface KnownWorker {
  readonly name: string;
  /** Where it serves /metrics; undefined where only its name is known. */
  readonly url: string | undefined;
  /** What changes when it begins anew. */
  readonly identity: string;
  readonly isReady: boolean;
}

/** Whoever can tell which workers are behind an endpoint. */
export interface WorkerSource {
  workers(): Promise<readonly KnownWorker[]>;
}

/** Asks the admin API of a Warmpath gateway. */
export function workersOfGateway(admin: GatewayAdmin): WorkerSource {
  return {
    workers: async () =>
      (await admin.workers()).map(({ name, url, state, events }) => ({
        name,
        url,
        identity: `${events?.["restarts"] ?? 0} restarts`,
        isReady: state === "ready",
      })),
  };
}

/** Asks the hook `list_workers`, whose lines are a name and what changes when the worker begins anew. */
export function workersOfHook(hooks: ShellHooks, environment: Readonly<Record<string, string>>): WorkerSource {
  return {
    workers: async () => {
      const lines = ((await hooks.run("list_workers", environment)) ?? "").split("\n");
      return lines.flatMap((line) => {
        const [name = "", ...identity] = line.trim().split(/\s+/);
        return name === "" ? [] : { name, url: undefined, identity: identity.join(" "), isReady: true };
      });
    },
  };
}

/** Asks the workers that the file names whether they answer. */
export function workersOfList(written: readonly string[]): WorkerSource {
  const named = written.map((text) => {
    const [, name, url = text] = /^(?:([^=/\s]+)=)?(https?:\/\/\S+)$/.exec(text) ?? [];
    const origin = url.replace(/\/+$/, "").replace(/\/metrics$/, "");
    return { name: name ?? new URL(origin).host, url: origin };
  });
  return {
    workers: () =>
      Promise.all(
        named.map(async (worker) => {
          const isReady = await httpText(`${worker.url}/health`).then(
            () => true,
            () => false,
          );
          return { ...worker, identity: "", isReady };
        }),
      ),
  };
}

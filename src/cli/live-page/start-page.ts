import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { WarmpathError } from "../../core/errors.ts";
import { AdminFleet } from "../../dashboard/admin-fleet.ts";
import type { Baselines } from "../../dashboard/baselines.ts";
import { type FeedIdentity, LiveFeed } from "../../dashboard/feed.ts";
import type { SloLimits } from "../../dashboard/rolling-window.ts";
import { DashboardServer } from "../../dashboard/server.ts";
import type { LoadSource, WorkerProcesses } from "../../dashboard/sources.ts";
import { readStaticFiles } from "../../dashboard/static-files.ts";
import { ownAdminToken } from "../secrets.ts";
import { listenOnNextFree } from "./next-free-port.ts";

/** The page is built beside the sources' own build; from sources it is looked for there too. */
const PAGE_FOLDERS: readonly string[] = ["../../web/", "../../../dist/web/"].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);

export interface PageOptions {
  readonly load: LoadSource;
  readonly identity: Omit<FeedIdentity, "serverId">;
  readonly slo: SloLimits;
  readonly baselines: Baselines;
  readonly host: string;
  readonly port: number;
  /** Of the gateway that the load goes through, where there is one. */
  readonly adminUrl?: string | undefined;
  readonly processes?: WorkerProcesses | undefined;
}

/** A page that is served. */
export interface RunningPage {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves the live page for a load; a port that is taken leads to the next free one. */
export async function startPage(options: PageOptions): Promise<RunningPage> {
  const { load, identity, slo, baselines, adminUrl, processes } = options;
  const now = (): number => Date.now();
  const fleet =
    adminUrl === undefined ? undefined : new AdminFleet({ adminUrl, adminToken: ownAdminToken(), now, processes });
  const feed = new LiveFeed({
    identity: { ...identity, serverId: randomUUID() },
    load,
    fleet,
    slo,
    baselines,
    now,
  });
  const server = new DashboardServer({ feed, files: await readStaticFiles(pageFolder()) });
  const close = async (): Promise<void> => {
    await server.close();
    await fleet?.close();
  };
  try {
    await fleet?.start();
    const url = await listenOnNextFree(options.port, (port) => server.listen(port, options.host));
    return { url, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function pageFolder(): string {
  const found = PAGE_FOLDERS.find((folder) => existsSync(join(folder, "index.html")));
  if (found !== undefined) return found;
  throw new WarmpathError("WP_INVALID_STATE", "the page is not built; npm run build builds it");
}

/** The live page's server: its feed, its commands and its baselines. */
export { AdminFleet, type AdminFleetOptions } from "./admin-fleet.ts";
export { type FeedIdentity, LiveFeed, type LiveFeedOptions } from "./feed.ts";
export { DashboardServer, type DashboardServerOptions } from "./server.ts";
export type { FleetSource, LoadSource, WorkerProcesses } from "./sources.ts";
export { readStaticFiles, type StaticFile } from "./static-files.ts";
export { type ServedRequest, type WorkerRates, WorkerWindow } from "./worker-window.ts";

import { WarmpathError } from "../../../core/errors.ts";
import { AdminServer } from "../../../gateway/admin/server.ts";
import type { Decider } from "../../../gateway/decider.ts";
import { DiscoverySources } from "../../../gateway/discovery-sources.ts";
import { HealthMonitor } from "../../../gateway/health/health-monitor.ts";
import { DEFAULT_OUTLIERS } from "../../../gateway/health/outlier-detector.ts";
import { httpProbe } from "../../../gateway/health/worker-probe.ts";
import type { GatewayLimits } from "../../../gateway/limits.ts";
import { LocalDecider } from "../../../gateway/local-decider.ts";
import { registerPeerGauges } from "../../../gateway/metrics/peer-gauges.ts";
import { registerReloadGauges } from "../../../gateway/metrics/reload-gauges.ts";
import type { Reloading } from "../../../gateway/reload.ts";
import { Gateway } from "../../../gateway/server.ts";
import type { PromptTokens } from "../../../planes/tokens/types.ts";
import { withoutPasswords } from "../../nats-option.ts";
import { createTokens, tokensOptions } from "../../prompt-tokens.ts";
import { deciderAccess, proxyAccess } from "./access.ts";
import { createDiscovery } from "./discovery.ts";
import { createWorkerPlanes } from "./event-planes.ts";
import { type DeciderParts, applyToDecider, estateOf, inherit } from "./live-decider.ts";
import { createPeers } from "./peers.ts";
import type { Estate } from "./process-roles.ts";
import { createRequestWay } from "./request-plane.ts";
import { createRouter, retryBudgetFrom } from "./router-settings.ts";
import type { GatewaySettings } from "./settings.ts";
import { workersFrom } from "./worker-option.ts";

/** A worker that takes longer to say how it is is not well. */
const PROBE_MS = 2000;

/** Says what happens to the fleet, one line each. */
export type Log = (line: string) => void;

/** A decider with all that belongs to it, started. */
export interface RunningDecider {
  readonly decider: LocalDecider;
  /** Whom proxies ask: the decider, or who stands in front of it. */
  readonly front: Decider;
  readonly adminUrl: string;
  /** Changes what may change while it decides. */
  apply(settings: GatewaySettings): void;
  /** What a successor must know. */
  estate(): Estate;
  /** A successor has taken over: gives up the admin API, and leaves the fleet as it is for what is under way. */
  freeze(): Promise<void>;
  close(): Promise<void>;
}

/** What a decider is told by those who start it beside others. */
export interface DeciderSurroundings {
  readonly reloading?: Reloading | undefined;
  /** What to take over, before anything is decided here. */
  readonly estate?: Estate | undefined;
}

/** Puts the deciding half of a gateway together: router, fleet, events, health and admin API. */
export async function startDecider(
  settings: GatewaySettings,
  log: Log,
  { reloading, estate }: DeciderSurroundings = {},
): Promise<RunningDecider> {
  const access = await deciderAccess(settings, log);
  const workers = workersFrom(settings.worker);
  const discovery = createDiscovery(workers, settings.discover);
  const router = createRouter(settings);
  const planes = await createWorkerPlanes(settings, workers, settings.tokenizer !== "none", log);
  const peers = await createPeers(settings, router, log);
  const decider = new LocalDecider({
    router,
    clock: peers.clock,
    problem: log,
    events: planes.eventsOf,
    load: planes.loadOf,
    retryBudget: retryBudgetFrom(settings),
    requests: peers.sharing,
  });
  peers.sharing?.onFreed(() => decider.tick());
  if (peers.sharing !== undefined) registerPeerGauges(decider.metrics.registry, peers.sharing);
  decider.metrics.watchProcess();
  const { fleet, directory } = decider;
  const monitor = new HealthMonitor({
    directory,
    fleet,
    intervalMs: settings.healthSeconds * 1000,
    probe: httpProbe(PROBE_MS, access.engineAuthorization),
    outliers: { ...DEFAULT_OUTLIERS, maxEjectedShare: settings.maxEjectedPercent / 100 },
    changed: (worker, state, reason) => log(`worker ${worker}: circuit ${state}, ${reason}`),
  });
  decider.observeAttempts(monitor);
  const sources = new DiscoverySources(fleet);
  const watches = await Promise.all(discovery.planes.map((plane) => plane.watch(sources.add())));
  const parts: DeciderParts = { decider, discovery, watches, monitor };
  if (reloading !== undefined) registerReloadGauges(decider.metrics.registry, reloading);
  if (estate !== undefined) await inherit(parts, estate);
  let inForce = settings;
  const admin = new AdminServer({
    decider,
    settings: () => withoutPasswords(inForce),
    reloading,
    peers: peers.sharing,
    mounts: discovery.mounts,
    token: access.adminToken,
  });
  const adminUrl = await listening(
    admin.listen(settings.adminPort, settings.adminHost),
    "admin-port",
    settings.adminPort,
  );
  await monitor.start();
  const stopLooking = async (): Promise<void> => {
    await Promise.all(watches.map((watch) => watch.close()));
  };
  return {
    decider,
    front: access.front(decider),
    adminUrl,
    apply: (next) => {
      applyToDecider(parts, inForce, next);
      inForce = next;
    },
    estate: () => estateOf(parts),
    freeze: async () => {
      admin.retire();
      await stopLooking();
    },
    close: async () => {
      access.close();
      await admin.close();
      await stopLooking();
      await monitor.close();
      await decider.close();
      await peers.close();
      await planes.close();
    },
  };
}

/** A proxy with all that belongs to it, started. */
export interface RunningProxy {
  readonly gateway: Gateway;
  readonly url: string;
  /** Changes what may change while it serves. */
  apply(settings: GatewaySettings): void;
  /** Serves whoever is connected, and nobody else, to the end. */
  retire(): Promise<void>;
  close(): Promise<void>;
}

/** Puts the half together that holds connections: tokens, limits, and the OpenAI API in front of a decider. */
export async function startProxy(
  settings: GatewaySettings,
  decider: Decider,
  idPrefix = "request-",
  log: Log = () => {},
): Promise<RunningProxy> {
  const access = await proxyAccess(settings, log);
  const tokens: PromptTokens = await createTokens(tokensOptions(settings.tokenizer), access.engineAuthorization);
  const requests = await createRequestWay(settings);
  const gateway = new Gateway({
    decider,
    tokens,
    requests: requests.plane,
    blockTokens: settings.blockTokens,
    limits: limitsFrom(settings),
    asksUsage: settings.askUsage,
    idPrefix,
    keys: access.keys,
    saltsByKey: settings.saltByKey,
    migratesStreams: settings.migrateStreams,
    engineAuthorization: access.engineAuthorization,
    tls: access.tls,
    servesMetrics: settings.publicMetrics,
    problem: log,
  });
  access.follow(gateway);
  const url = await listening(gateway.listen(settings.port, settings.host), "port", settings.port);
  let { drainSeconds } = settings;
  const closeRest = async (): Promise<void> => {
    access.close();
    await requests.close();
    await tokens.close();
  };
  return {
    gateway,
    url,
    apply: (next) => {
      gateway.configure(limitsFrom(next), next.askUsage);
      ({ drainSeconds } = next);
    },
    retire: async () => {
      await gateway.retire(drainSeconds * 1000);
      await closeRest();
    },
    close: async () => {
      await gateway.close(drainSeconds * 1000);
      await closeRest();
    },
  };
}

function limitsFrom(settings: GatewaySettings): GatewayLimits {
  return {
    maxBodyBytes: settings.maxBodyMegabytes * 1024 * 1024,
    maxStreams: settings.maxStreams,
    connectMs: settings.connectSeconds * 1000,
    firstByteMs: settings.firstByteSeconds * 1000,
    gapMs: settings.gapSeconds * 1000,
    answerMs: settings.answerSeconds * 1000,
    clientStallMs: settings.clientStallSeconds * 1000,
    headerMs: settings.headerSeconds * 1000,
    requestMs: settings.requestSeconds * 1000,
    maxConnections: settings.maxConnections,
    maxConnectionsPerAddress: settings.maxConnectionsPerAddress,
  };
}

/** An address that cannot be had is the user's to change. */
async function listening(url: Promise<string>, option: string, port: number): Promise<string> {
  try {
    return await url;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const reason = code === "EADDRINUSE" ? "is in use" : `cannot be used (${code ?? String(cause)})`;
    throw new WarmpathError("WP_INVALID_INPUT", `--${option} ${port} ${reason}`, { cause });
  }
}

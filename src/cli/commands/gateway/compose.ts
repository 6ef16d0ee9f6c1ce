import { WarmpathError } from "../../../core/errors.ts";
import { AdminServer } from "../../../gateway/admin/server.ts";
import type { Decider } from "../../../gateway/decider.ts";
import { HealthMonitor } from "../../../gateway/health/health-monitor.ts";
import type { GatewayLimits } from "../../../gateway/limits.ts";
import { LocalDecider } from "../../../gateway/local-decider.ts";
import { Gateway } from "../../../gateway/server.ts";
import type { PromptTokens } from "../../../planes/tokens/types.ts";
import { withoutPasswords } from "../../nats-option.ts";
import { createTokens, tokensOptions } from "../../prompt-tokens.ts";
import { createDiscovery } from "./discovery.ts";
import { createWorkerPlanes } from "./event-planes.ts";
import { createRequestWay } from "./request-plane.ts";
import { createRouter } from "./router-settings.ts";
import type { GatewaySettings } from "./settings.ts";
import { workersFrom } from "./worker-option.ts";

/** Says what happens to the fleet, one line each. */
export type Log = (line: string) => void;

/** A decider with all that belongs to it, started. */
export interface RunningDecider {
  readonly decider: LocalDecider;
  readonly adminUrl: string;
  close(): Promise<void>;
}

/** Puts the deciding half of a gateway together: router, fleet, events, health and admin API. */
export async function startDecider(settings: GatewaySettings, log: Log): Promise<RunningDecider> {
  const workers = workersFrom(settings.worker);
  const discovery = createDiscovery(workers, settings.discover);
  const router = createRouter(settings);
  const planes = await createWorkerPlanes(settings, workers, settings.tokenizer !== "none");
  const decider = new LocalDecider({ router, problem: log, events: planes.eventsOf, load: planes.loadOf });
  decider.metrics.watchProcess();
  const { fleet, directory } = decider;
  const monitor = new HealthMonitor({
    directory,
    fleet,
    intervalMs: settings.healthSeconds * 1000,
    changed: (worker, isHealthy) => log(`worker ${worker} ${isHealthy ? "is well again" : "does not answer"}`),
  });
  decider.observeAttempts(monitor);
  const watches = await Promise.all(discovery.planes.map((plane) => plane.watch(fleet)));
  const admin = new AdminServer({ decider, settings: withoutPasswords(settings), mounts: discovery.mounts });
  const adminUrl = await listening(
    admin.listen(settings.adminPort, settings.adminHost),
    "admin-port",
    settings.adminPort,
  );
  await monitor.start();
  return {
    decider,
    adminUrl,
    close: async () => {
      await admin.close();
      await Promise.all(watches.map((watch) => watch.close()));
      await monitor.close();
      await decider.close();
      await planes.close();
    },
  };
}

/** A proxy with all that belongs to it, started. */
export interface RunningProxy {
  readonly gateway: Gateway;
  readonly url: string;
  close(): Promise<void>;
}

/** Puts the half together that holds connections: tokens, limits, and the OpenAI API in front of a decider. */
export async function startProxy(
  settings: GatewaySettings,
  decider: Decider,
  idPrefix = "request-",
): Promise<RunningProxy> {
  const tokens: PromptTokens = await createTokens(tokensOptions(settings.tokenizer));
  const requests = await createRequestWay(settings);
  const gateway = new Gateway({
    decider,
    tokens,
    requests: requests.plane,
    blockTokens: settings.blockTokens,
    limits: limitsFrom(settings),
    asksUsage: settings.askUsage,
    idPrefix,
  });
  const url = await listening(gateway.listen(settings.port, settings.host), "port", settings.port);
  return {
    gateway,
    url,
    close: async () => {
      await gateway.close(settings.drainSeconds * 1000);
      await requests.close();
      await tokens.close();
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

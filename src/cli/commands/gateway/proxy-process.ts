/** A process that holds connections and asks the decider; started by `supervisor.ts`. */
import { FailoverDecider } from "../../../gateway/processes/failover-decider.ts";
import { startProxy } from "./compose.ts";
import { ownRole, tellParent } from "./process-roles.ts";
import { untilStopped } from "./stop-signal.ts";

const { settings, socket } = ownRole();

try {
  const decider = new FailoverDecider({
    path: socket,
    blockTokens: settings.blockTokens,
    changed: (isPresent) => {
      const news = isPresent ? "decides again" : "is gone; routing by power-of-two until it is back";
      tellParent({ kind: "log", line: `proxy ${process.pid}: the decider ${news}` });
    },
  });
  // Ids must be unique among all proxies, those before this one included.
  const stopped = untilStopped();
  await decider.ready;
  const proxy = await startProxy(settings, decider, `request-${process.pid}-`);
  tellParent({ kind: "serving", url: proxy.url });
  await stopped;
  await proxy.close();
  await decider.close();
  process.exit(0);
} catch (error) {
  tellParent({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
  process.exit(1);
}

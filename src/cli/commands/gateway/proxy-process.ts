/** A process that holds connections and asks the decider; started by `supervisor.ts`. */
import { FailoverDecider } from "../../../gateway/processes/failover-decider.ts";
import { startProxy } from "./compose.ts";
import { runServingProcess } from "./serving-process.ts";

await runServingProcess(async ({ settings, socket }, tell) => {
  const log = (line: string): void => tell(`proxy ${process.pid}: ${line}`);
  const decider = new FailoverDecider({
    path: socket,
    blockTokens: settings.blockTokens,
    changed: (isPresent) => {
      log(`the decider ${isPresent ? "decides again" : "is gone; routing by power-of-two until it is back"}`);
    },
  });
  await decider.ready;
  // Ids must be unique among all proxies, those before this one included.
  const proxy = await startProxy(settings, decider, `request-${process.pid}-`, log);
  return {
    url: proxy.url,
    adminUrl: "",
    reloaded: ({ settings: changed }) => proxy.apply(changed),
    stop: async () => {
      await proxy.close();
      await decider.close();
    },
    retire: async () => {
      await proxy.retire();
      await decider.close();
    },
  };
});

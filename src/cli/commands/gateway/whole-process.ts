/** A gateway in one process: decides, and holds connections; started by `supervisor.ts`. */
import { startDecider, startProxy } from "./compose.ts";
import { ParentReload } from "./parent-reload.ts";
import { accountLine, runServingProcess } from "./serving-process.ts";

await runServingProcess(async ({ settings, estate, reloads }, log) => {
  const reloading = new ParentReload(reloads);
  const deciding = await startDecider(settings, log, { reloading, estate });
  const proxy = await startProxy(settings, deciding.front, "request-", log);
  const end = async (): Promise<void> => {
    await deciding.close();
    log(`process ${process.pid} has ended: ${accountLine(deciding.decider.accounting)}`);
  };
  return {
    url: proxy.url,
    adminUrl: deciding.adminUrl,
    reloaded: ({ settings: changed, reloads: history }) => {
      deciding.apply(changed);
      proxy.apply(changed);
      reloading.heard(history);
    },
    estate: () => deciding.estate(),
    stop: async () => {
      await proxy.close();
      await end();
    },
    retire: async () => {
      await deciding.freeze();
      await proxy.retire();
      await end();
    },
  };
});

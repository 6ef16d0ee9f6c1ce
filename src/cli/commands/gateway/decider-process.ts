/** The process that decides for all proxies of a gateway; started by `supervisor.ts`, which also ends it, after them. */
import { rm } from "node:fs/promises";
import { DeciderServer } from "../../../gateway/processes/decider-server.ts";
import { startDecider } from "./compose.ts";
import { ParentReload } from "./parent-reload.ts";
import { accountLine, runServingProcess } from "./serving-process.ts";

await runServingProcess(async ({ settings, socket, estate, reloads }, log) => {
  const reloading = new ParentReload(reloads);
  const deciding = await startDecider(settings, log, { reloading, estate });
  const server = new DeciderServer(deciding.decider, deciding.front);
  await rm(socket, { force: true });
  await server.listen(socket);
  return {
    url: "",
    adminUrl: deciding.adminUrl,
    reloaded: ({ settings: changed, reloads: history }) => {
      deciding.apply(changed);
      reloading.heard(history);
    },
    estate: () => deciding.estate(),
    retire: async () => {
      await deciding.freeze();
      await server.unused();
      await deciding.close();
      log(`the decider ${process.pid} has ended: ${accountLine(deciding.decider.accounting)}`);
    },
  };
});

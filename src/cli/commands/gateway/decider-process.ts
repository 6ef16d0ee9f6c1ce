/** The process that decides for all proxies of a gateway; started by `supervisor.ts`. */
import { rm } from "node:fs/promises";
import { DeciderServer } from "../../../gateway/processes/decider-server.ts";
import { startDecider } from "./compose.ts";
import { ownRole, tellParent } from "./process-roles.ts";

const { settings, socket } = ownRole();

// The proxies end first; whoever started this process says when.
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => {});
process.on("disconnect", () => process.exit(0));

try {
  const deciding = await startDecider(settings, (line) => tellParent({ kind: "log", line }));
  const server = new DeciderServer(deciding.decider);
  await rm(socket, { force: true });
  await server.listen(socket);
  tellParent({ kind: "serving", url: deciding.adminUrl });
} catch (error) {
  tellParent({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
  process.exitCode = 1;
  process.disconnect();
}

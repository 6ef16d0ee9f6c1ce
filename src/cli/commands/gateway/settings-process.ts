/**
 * Reads the settings and ends; started by `settings-reader.ts`. A process of its own, because whoever wants them may have been
 * started from older code than those who are going to use them.
 */
import { reasonOf, taskOf, tellParent } from "./process-roles.ts";
import { readAgain, readWritten } from "./written-settings.ts";

try {
  const { flags, file, inForce } = await taskOf("read-settings");
  const sources = { flags, file, environment: process.env };
  const read = inForce === undefined ? await readWritten(sources) : await readAgain(sources, inForce);
  tellParent({ kind: "settings-read", read });
} catch (error) {
  tellParent({ kind: "failed", message: reasonOf(error) });
}
process.disconnect();

import { fork } from "node:child_process";
import { WarmpathError } from "../../../core/errors.ts";
import { type FromChild, type SettingsTask, processFile } from "./process-roles.ts";
import type { ReadAgain, ReadSettings } from "./written-settings.ts";

/** Has the settings read by the code that is installed now. Rejects with what is wrong with them. */
export function readInProcess(task: SettingsTask & { readonly inForce: object }): Promise<ReadAgain>;
export function readInProcess(task: SettingsTask): Promise<ReadSettings>;
export function readInProcess(task: SettingsTask): Promise<ReadSettings> {
  return new Promise((resolve, reject) => {
    const child = fork(processFile(new URL("./settings-process.ts", import.meta.url)));
    child.on("message", (message: FromChild) => {
      if (message.kind === "listening") child.send({ kind: "read-settings", task });
      else if (message.kind === "settings-read") resolve(message.read);
      else if (message.kind === "failed") reject(new WarmpathError("WP_INVALID_INPUT", message.message));
    });
    child.once("error", reject);
    child.once("exit", (code) =>
      reject(new WarmpathError("WP_INVALID_STATE", `the process that reads settings ended with ${code}`)),
    );
  });
}

import { fork } from "node:child_process";
import { WarmpathError } from "../../../core/errors.ts";
import { type FromChild, type SettingsTask, processFile } from "./process-roles.ts";
import type { ReadAgain, ReadSettings } from "./written-settings.ts";

/** Files may lie where nobody answers, and workers are asked for what was left open. */
const READ_WITHIN_MS = 60_000;

/** Has the settings read by the code that is installed now. Rejects with what is wrong with them, or if that takes too long. */
export function readInProcess(task: SettingsTask & { readonly inForce: object }, withinMs?: number): Promise<ReadAgain>;
export function readInProcess(task: SettingsTask, withinMs?: number): Promise<ReadSettings>;
export function readInProcess(task: SettingsTask, withinMs: number = READ_WITHIN_MS): Promise<ReadSettings> {
  return new Promise((resolve, reject) => {
    const child = fork(processFile(new URL("./settings-process.ts", import.meta.url)));
    child.on("message", (message: FromChild) => {
      if (message.kind === "listening") child.send({ kind: "read-settings", task });
      else if (message.kind === "settings-read") resolve(message.read);
      else if (message.kind === "failed") reject(new WarmpathError("WP_INVALID_INPUT", message.message));
    });
    // Neither other changes nor the end of the gateway may wait for it for ever.
    const giveUp = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new WarmpathError("WP_INVALID_STATE", `the settings could not be read within ${withinMs / 1000} s`));
    }, withinMs);
    child.once("error", reject);
    child.once("exit", (code) => {
      clearTimeout(giveUp);
      reject(new WarmpathError("WP_INVALID_STATE", `the process that reads settings ended with ${code}`));
    });
  });
}

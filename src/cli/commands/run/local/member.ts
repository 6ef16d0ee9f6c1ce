import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { WarmpathError } from "../../../../core/errors.ts";
import { processFile } from "../../gateway/process-roles.ts";

/** What a member of a local fleet tells the process that started it. */
export type MemberMessage =
  | { readonly kind: "serving"; readonly announcement: unknown }
  | { readonly kind: "failed"; readonly message: string };

/** How long a member may take to end after it was asked. */
const PATIENCE_MS = 4000;

/** A process of a local fleet. It has a group of its own: Ctrl-C reaches only the one that can end all in order. */
export interface Member<Announcement> {
  readonly announcement: Announcement;
  close(): Promise<void>;
}

/** Starts a process that is told a plan and announces itself when it serves. */
export async function startMember<Announcement>(source: URL, plan: object): Promise<Member<Announcement>> {
  const child = fork(processFile(source), [], { detached: true });
  child.send(plan);
  const message = await firstMessage(child);
  if (message.kind === "failed") {
    await stop(child);
    throw new WarmpathError("WP_INVALID_INPUT", message.message);
  }
  return { announcement: message.announcement as Announcement, close: () => stop(child) };
}

function firstMessage(child: ChildProcess): Promise<MemberMessage> {
  return new Promise((resolve) => {
    child.once("message", (message) => resolve(message as MemberMessage));
    child.once("error", (error) => resolve({ kind: "failed", message: error.message }));
    child.once("exit", (code) => resolve({ kind: "failed", message: `a process of the fleet ended with ${code}` }));
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  if (child.connected) child.disconnect();
  const insist = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
  await exit;
  clearTimeout(insist);
}

import type { MemberMessage } from "./member.ts";

/** Makes this process a member of a local fleet: it serves what it is told, until whoever started it lets go or ends. */
export function serveMember<Serving extends { close(): Promise<void> }>(
  serve: (plan: unknown) => Promise<Serving>,
  announcementOf: (serving: Serving) => unknown,
): void {
  process.once("message", (plan: unknown) => {
    const serving = serve(plan);
    process.once("disconnect", () => {
      serving
        .then((started) => started.close())
        .then(
          () => process.exit(0),
          () => process.exit(1),
        );
    });
    serving.then(
      (started) => tell({ kind: "serving", announcement: announcementOf(started) }),
      (error: unknown) => tell({ kind: "failed", message: error instanceof Error ? error.message : String(error) }),
    );
  });
}

function tell(message: MemberMessage): void {
  if (process.connected) process.send?.(message);
}

import type { Command, Hello, Snapshot } from "../../../src/dashboard/protocol.ts";
import { WorkerCard } from "./worker-card.tsx";

export interface FleetProps {
  readonly hello: Hello;
  readonly snapshot: Snapshot;
  readonly command: (command: Command) => void;
}

/** All workers behind the gateway. */
export function Fleet({ hello, snapshot, command }: FleetProps) {
  const { fleet, fleetProblem, atMs } = snapshot;
  if (!hello.capabilities.fleet) {
    return (
      <section class="fleet" aria-label="Fleet">
        <h2>Fleet</h2>
        <p class="card note">
          The load goes to {hello.targetUrl}. Workers, decisions and policies are shown for a Warmpath gateway whose
          admin API is given with <code>--admin-url</code>.
        </p>
      </section>
    );
  }
  const lost = fleet?.workers.filter(({ state }) => state === "dead" || state === "unhealthy").length ?? 0;
  return (
    <section class="fleet" aria-label="Fleet">
      <h2>
        Fleet
        {fleet !== null && (
          <small>
            {fleet.workers.length - lost} of {fleet.workers.length} serving · {fleet.queued} waiting in the router
          </small>
        )}
      </h2>
      {fleet === null && fleetProblem === null && <p class="card note">Asking the gateway…</p>}
      {fleetProblem !== null && <p class="card note bad">The gateway's admin API does not answer: {fleetProblem}</p>}
      {fleet?.isAnswering === true && fleet.workers.length === 0 && (
        <p class="card note">No worker has been found yet.</p>
      )}
      <div class="workers">
        {fleet?.workers.map((worker) => (
          <WorkerCard
            key={worker.name}
            worker={worker}
            nowMs={atMs}
            isOurs={hello.capabilities.workerProcesses}
            command={command}
          />
        ))}
      </div>
    </section>
  );
}

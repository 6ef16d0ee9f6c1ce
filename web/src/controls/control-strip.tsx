import type { Command, Hello, Snapshot } from "../../../src/dashboard/protocol.ts";
import { Concurrency } from "./concurrency.tsx";
import { PolicySwitch } from "./policy.tsx";

export interface ControlStripProps {
  readonly hello: Hello;
  readonly snapshot: Snapshot;
  readonly isDisabled: boolean;
  readonly command: (command: Command) => void;
}

/** Everything that can be done. */
export function ControlStrip({ hello, snapshot, isDisabled, command }: ControlStripProps) {
  const { load, window, fleet } = snapshot;
  const levels = [...new Set(hello.baselines.arms.flatMap((arm) => arm.levels.map((level) => level.concurrency)))];
  const isRunning = load.state === "running";
  return (
    <section class="controls card" aria-label="Controls">
      <button
        class={`start ${isRunning ? "is-running" : ""}`}
        type="button"
        disabled={isDisabled || load.concurrency === null}
        data-testid="start-stop"
        onClick={() => command({ kind: isRunning ? "stop" : "start" })}
      >
        {isRunning ? "Stop load" : "Start load"}
      </button>
      {load.concurrency === null ? (
        <p class="note">This load follows a schedule: {window.inFlight} requests in flight.</p>
      ) : (
        <Concurrency
          concurrency={load.concurrency}
          inFlight={window.inFlight}
          levels={levels}
          isDisabled={isDisabled}
          command={command}
        />
      )}
      {fleet !== null && (
        <PolicySwitch
          policies={hello.policies}
          fleet={fleet}
          isDisabled={isDisabled || !fleet.isAnswering}
          command={command}
        />
      )}
      {hello.capabilities.resetCaches && (
        <button
          class="reset"
          type="button"
          disabled={isDisabled}
          title="Every worker forgets the KV blocks that no running request holds"
          onClick={() => command({ kind: "reset-caches" })}
        >
          Reset caches
        </button>
      )}
    </section>
  );
}

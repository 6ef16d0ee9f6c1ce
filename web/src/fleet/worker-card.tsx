import type { Command, WorkerState, WorkerView } from "../../../src/dashboard/protocol.ts";
import { NOTHING, rate, seconds, share, written } from "../format.ts";

export interface WorkerCardProps {
  readonly worker: WorkerView;
  readonly nowMs: number;
  /** The process is ours, so that it can be ended and started. */
  readonly isOurs: boolean;
  readonly command: (command: Command) => void;
}

const STATE_WORDS: Readonly<Record<WorkerState, string>> = {
  ready: "ready",
  "catching-up": "catching up",
  unhealthy: "does not answer",
  draining: "draining",
  dead: "dead",
};

/** One worker; one that is lost is seen at once. */
export function WorkerCard({ worker, nowMs, isOurs, command }: WorkerCardProps) {
  const { name, state, running, queued, batchSlots, kvShare, hitShare, requestsPerSecond } = worker;
  const isLost = state === "dead" || state === "unhealthy";
  return (
    <section class={`card worker ${isLost ? "lost" : ""}`} data-worker={name} data-state={state}>
      <header>
        <h3>{name}</h3>
        <span class={`state ${state}`}>
          {STATE_WORDS[state]}
          {isLost && ` for ${seconds(nowMs - worker.sinceMs)}`}
        </span>
        {isOurs && (
          <button
            type="button"
            class="quiet"
            title={
              state === "dead" ? "Start this worker again, with an empty cache" : "End this worker as a crash would"
            }
            onClick={() => command({ kind: state === "dead" ? "start-worker" : "end-worker", worker: name })}
          >
            {state === "dead" ? "Start" : "Kill"}
            <span class="hidden"> {name}</span>
          </button>
        )}
      </header>
      <Gauge label="running" value={running} most={batchSlots} text={running === null ? NOTHING : String(running)} />
      <Gauge label="KV in use" value={kvShare} most={1} text={kvShare === null ? NOTHING : written(share(kvShare))} />
      <dl>
        <div>
          <dt>queued</dt>
          <dd class={(queued ?? 0) > 0 ? "queueing" : ""}>{queued ?? NOTHING}</dd>
        </div>
        <div>
          <dt>hit rate</dt>
          <dd>{hitShare === null ? NOTHING : written(share(hitShare))}</dd>
        </div>
        <div>
          <dt>requests</dt>
          <dd>{requestsPerSecond === null ? NOTHING : written(rate(requestsPerSecond))}</dd>
        </div>
      </dl>
    </section>
  );
}

function Gauge(props: {
  readonly label: string;
  readonly value: number | null;
  readonly most: number | null;
  readonly text: string;
}) {
  const { label, value, most, text } = props;
  const filled = value === null || most === null ? 0 : Math.min(1, value / most);
  return (
    <div class="gauge">
      <span class="label">{label}</span>
      <span class="bar" aria-hidden="true">
        <i style={{ transform: `scaleX(${filled})` }} />
      </span>
      <b>
        {text}
        {most !== null && most > 1 && value !== null && <small> / {most}</small>}
      </b>
    </div>
  );
}

import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import {
  type Command,
  type Hello,
  type Mark,
  type Snapshot,
  sloState,
  type SloState,
} from "../../src/dashboard/protocol.ts";
import { AccountingStrip } from "./accounting-strip.tsx";
import { ControlStrip } from "./controls/control-strip.tsx";
import { type Connection, FeedClient, type LiveState, send } from "./feed-client.ts";
import { Decisions } from "./fleet/decisions.tsx";
import { Fleet } from "./fleet/fleet.tsx";
import { duration, seconds, written } from "./format.ts";
import { BASELINE_LINES, BaselineReader } from "./metrics/baseline-lines.ts";
import { METRICS, type Statistic, STATISTICS } from "./metrics/definitions.ts";
import { MetricCard } from "./metrics/metric-card.tsx";
import { type Theme, useTheme } from "./theme.ts";

const TOAST_MS = 6000;

/** The whole page. */
export function App() {
  const [state, setState] = useState<LiveState>();
  const [theme, toggleTheme] = useTheme();
  const [complaint, setComplaint] = useState<string>();
  useEffect(() => new FeedClient(setState).open(), []);
  useEffect(() => {
    const timer = setTimeout(() => setComplaint(undefined), TOAST_MS);
    return () => clearTimeout(timer);
  }, [complaint]);
  const command = useCallback((wanted: Command) => void send(wanted).then(setComplaint), []);

  const { hello, snapshot, connection = "connecting" } = state ?? {};
  return (
    <>
      <TopBar hello={hello} snapshot={snapshot} connection={connection} theme={theme} toggleTheme={toggleTheme} />
      {state === undefined || hello === undefined || snapshot === undefined ? (
        <main class="waiting">
          <p class="note">Connecting to the server…</p>
        </main>
      ) : (
        <Board state={state} hello={hello} snapshot={snapshot} theme={theme} command={command} />
      )}
      <div class="toasts" role="alert">
        {complaint !== undefined && <p class="toast">{complaint}</p>}
      </div>
    </>
  );
}

function TopBar(props: {
  readonly hello: Hello | undefined;
  readonly snapshot: Snapshot | undefined;
  readonly connection: Connection;
  readonly theme: Theme;
  readonly toggleTheme: () => void;
}) {
  const { hello, snapshot, connection, theme, toggleTheme } = props;
  const slo = hello === undefined || snapshot === undefined ? "unknown" : sloState(snapshot.window, hello.slo);
  return (
    <header class="top">
      <h1>
        <img src="/icon.svg" alt="" width="28" height="28" /> Warmpath
      </h1>
      <p class="title">
        {hello?.title ?? ""} <small>{hello?.about ?? ""}</small>
      </p>
      {hello !== undefined && <SloVerdict state={slo} hello={hello} />}
      <span class={`connection ${connection}`} data-testid="connection">
        {{ connecting: "connecting", live: "live", lost: "reconnecting" }[connection]}
      </span>
      <button type="button" class="quiet" onClick={toggleTheme}>
        {theme === "dark" ? "Light" : "Dark"}
      </button>
    </header>
  );
}

const SLO_WORDS: Readonly<Record<SloState, string>> = { met: "SLO met", missed: "SLO missed", unknown: "SLO open" };

function SloVerdict({ state, hello }: { readonly state: SloState; readonly hello: Hello }) {
  const limits = [
    ["TTFT", hello.slo.ttftMs],
    ["TPOT", hello.slo.tpotMs],
    ["E2E", hello.slo.e2eMs],
  ] as const;
  const promises = limits.flatMap(([name, limit]) =>
    limit === undefined ? [] : `${name} p95 ≤ ${written(duration(limit))}`,
  );
  if (promises.length === 0) return null;
  return (
    <span class={`verdict large ${state}`} data-testid="slo">
      {SLO_WORDS[state]} <small>{promises.join(", ")}</small>
    </span>
  );
}

function Board(props: {
  readonly state: LiveState;
  readonly hello: Hello;
  readonly snapshot: Snapshot;
  readonly theme: Theme;
  readonly command: (command: Command) => void;
}) {
  const { state, hello, snapshot, theme, command } = props;
  const [statistic, setStatistic] = useState<Statistic>("p95");
  const baselines = useMemo(() => new BaselineReader(hello.baselines), [hello.serverId]);
  const isLost = state.connection === "lost";
  const hasNothing = snapshot.load.accounting.offered === 0 && snapshot.load.state !== "running";
  return (
    <main class={isLost ? "stale" : ""}>
      {isLost && (
        <p class="banner" role="status">
          Connection lost. Reconnecting… what is shown is {seconds(performance.now() - state.heardAtMs)} old.
        </p>
      )}
      <ControlStrip hello={hello} snapshot={snapshot} isDisabled={isLost} command={command} />
      <div class={`board ${hello.capabilities.fleet ? "" : "alone"}`}>
        <section class="metrics" aria-label="Metrics of the last minute">
          <h2>
            Last {snapshot.window.windowSeconds} seconds
            <ClientHealth problems={snapshot.load.clientProblems} />
            <Notice snapshot={snapshot} hasNothing={hasNothing} />
            <Statistics statistic={statistic} choose={setStatistic} />
          </h2>
          <Legend hello={hello} concurrency={snapshot.load.concurrency} />
          <div class="cards">
            {METRICS.map((metric) => (
              <MetricCard
                key={metric.id}
                metric={metric}
                statistic={statistic}
                window={snapshot.window}
                rows={state.rows}
                concurrency={snapshot.load.concurrency}
                baselines={baselines}
                slo={hello.slo}
                marks={snapshot.marks}
                nowMs={snapshot.atMs}
                theme={theme}
              />
            ))}
          </div>
        </section>
        <aside>
          <Fleet hello={hello} snapshot={snapshot} command={command} />
          {hello.capabilities.fleet && snapshot.fleet !== null && <Decisions decisions={snapshot.fleet.decisions} />}
        </aside>
      </div>
      <AccountingStrip accounting={snapshot.load.accounting} />
    </main>
  );
}

/** What one must know before reading the numbers: one line, always there, so that nothing moves. */
function Notice({ snapshot, hasNothing }: { readonly snapshot: Snapshot; readonly hasNothing: boolean }) {
  const { load, marks, atMs, window } = snapshot;
  const mixed = marks.findLast(({ cleanAtMs }) => cleanAtMs === null || cleanAtMs > atMs);
  if (mixed !== undefined) return <span class="notice mixed">{mixedWords(mixed, atMs)}</span>;
  if (hasNothing) return <span class="notice">Nothing has been sent yet. Start the load.</span>;
  if (load.state === "stopping") return <span class="notice">Stopping: {window.inFlight} answers are under way.</span>;
  if (load.state === "stopped") return <span class="notice">The load is stopped; the window runs empty.</span>;
  return <span class="notice" />;
}

/** Numbers of a client that is too slow are its own, and not the server's. */
function ClientHealth({ problems }: { readonly problems: readonly string[] }) {
  if (problems.length === 0) return null;
  return (
    <span class="health" title={problems.join("\n")}>
      the client is too slow
    </span>
  );
}

function mixedWords({ label, cleanAtMs }: Mark, atMs: number): string {
  const when = cleanAtMs === null ? "requests from before are under way" : `clean in ${seconds(cleanAtMs - atMs)}`;
  return `Mixed window since “${label}”: ${when}`;
}

function Statistics(props: { readonly statistic: Statistic; readonly choose: (statistic: Statistic) => void }) {
  return (
    <fieldset class="segments small">
      <legend class="hidden">Percentile of latencies</legend>
      {STATISTICS.map((one) => (
        <label key={one} class={one === props.statistic ? "chosen" : ""}>
          <input type="radio" name="statistic" checked={one === props.statistic} onChange={() => props.choose(one)} />
          {one}
        </label>
      ))}
    </fieldset>
  );
}

function Legend({ hello, concurrency }: { readonly hello: Hello; readonly concurrency: number | null }) {
  const { sources, arms } = hello.baselines;
  const hasLimits = Object.values(hello.slo).some((limit) => limit !== undefined);
  return (
    <p class="legend">
      <span>
        <i class="swatch live" /> live
      </span>
      {BASELINE_LINES.filter(({ role }) => arms.some((arm) => arm.role === role)).map(({ role, label, colour }) => (
        <span key={role}>
          <i class={`swatch ${role}`} style={{ borderColor: `var(${colour})` }} /> {label}
          {concurrency !== null && `, recorded at ${concurrency}`}
        </span>
      ))}
      {hasLimits && (
        <span>
          <i class="swatch limit" /> SLO
        </span>
      )}
      <span class="sources" title={sources.map(({ command }) => command).join("\n")}>
        {sources.length === 0 ? "no baselines" : `baselines: ${sources.map(({ experiment }) => experiment).join(", ")}`}
      </span>
    </p>
  );
}

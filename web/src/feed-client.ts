import {
  type Command,
  COMMAND_PATH,
  type CommandReply,
  FEED_PATH,
  type Hello,
  HISTORY_MS,
  type HistoryRow,
  historyRow,
  type Snapshot,
} from "../../src/dashboard/protocol.ts";

/** `connecting` until the first word from the server; `lost` while a connection that was there is not. */
export type Connection = "connecting" | "live" | "lost";

/** All that the page knows. */
export interface LiveState {
  readonly connection: Connection;
  readonly hello: Hello | undefined;
  readonly snapshot: Snapshot | undefined;
  readonly rows: readonly HistoryRow[];
  /** When the last snapshot came, by the page's own clock. */
  readonly heardAtMs: number;
}

/** A feed that says nothing for so long is taken to be lost, though its connection may still be open. */
const SILENCE_MS = 4000;

/** Follows the server's feed and comes back to it when it was lost. */
export class FeedClient {
  readonly #changed: (state: LiveState) => void;
  #state: LiveState = {
    connection: "connecting",
    hello: undefined,
    snapshot: undefined,
    rows: [],
    heardAtMs: performance.now(),
  };
  #source: EventSource | undefined;

  constructor(changed: (state: LiveState) => void) {
    this.#changed = changed;
  }

  open(): void {
    this.#connect();
    setInterval(() => this.#listenForSilence(), SILENCE_MS / 4);
  }

  #connect(): void {
    this.#source?.close();
    const source = new EventSource(FEED_PATH);
    this.#source = source;
    source.addEventListener("hello", ({ data }) => this.#greet(JSON.parse(data as string) as Hello));
    source.addEventListener("snapshot", ({ data }) => this.#take(JSON.parse(data as string) as Snapshot));
    source.addEventListener("error", () => {
      this.#lose();
      // A server that answers with an error ends the attempts of the browser; ours go on.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.#connect(), 1000);
    });
  }

  #greet(hello: Hello): void {
    const isSameServer = this.#state.hello?.serverId === hello.serverId;
    const rows = isSameServer ? joinedRows(this.#state.rows, hello.history) : hello.history;
    this.#set({ connection: "live", hello, rows });
    this.#take(hello.snapshot);
  }

  #take(snapshot: Snapshot): void {
    const { atMs, load, window } = snapshot;
    const row = historyRow(atMs, load.concurrency, load.state === "running", window);
    const first = this.#state.rows.findIndex(([ms]) => (ms ?? 0) >= atMs - HISTORY_MS);
    const isNew = atMs > (this.#state.rows.at(-1)?.[0] ?? 0);
    const rows = isNew ? [...this.#state.rows.slice(Math.max(0, first)), row] : this.#state.rows;
    this.#set({ connection: "live", snapshot, rows, heardAtMs: performance.now() });
  }

  #listenForSilence(): void {
    const isSilent = performance.now() - this.#state.heardAtMs > SILENCE_MS;
    if (isSilent) this.#lose();
  }

  #lose(): void {
    // Told again and again, so that the age of what is shown grows on the page.
    if (this.#state.hello !== undefined) this.#set({ connection: "lost" });
  }

  #set(change: Partial<LiveState>): void {
    this.#state = { ...this.#state, ...change };
    this.#changed(this.#state);
  }
}

/** What a page has seen, which is finer than what its server kept, and what that kept since the page was cut off. */
export function joinedRows(seen: readonly HistoryRow[], kept: readonly HistoryRow[]): readonly HistoryRow[] {
  const lastMs = seen.at(-1)?.[0] ?? 0;
  return [...seen, ...kept.filter(([atMs]) => (atMs ?? 0) > lastMs)];
}

/** Asks the server for something; resolves to what is wrong, or to undefined. */
export async function send(command: Command): Promise<string | undefined> {
  try {
    const response = await fetch(COMMAND_PATH, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(command),
    });
    const reply = (await response.json()) as CommandReply;
    return reply.ok ? undefined : reply.message;
  } catch {
    return "The server does not answer.";
  }
}

import { field } from "../openai-usage.ts";

/** Name of the file in a run's folder. */
export const AIPERF_INPUTS_FILE = "inputs.json";

/** What was asked: a line per conversation and turn, without the ids that AIPerf draws anew for each run. */
export interface AiperfInputs {
  readonly sessions: number;
  readonly requests: number;
  /** The payloads in order; equal texts are equal prompts. */
  readonly payloads: Iterable<string>;
}

/** Reads `inputs.json`; undefined if it is none. */
export function parseAiperfInputs(text: string): AiperfInputs | undefined {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    return undefined;
  }
  const data = field(content, "data");
  if (!Array.isArray(data)) return undefined;
  const payloads = data.map((session) => {
    const found = field(session, "payloads");
    return Array.isArray(found) ? (found as readonly unknown[]) : [];
  });
  return {
    sessions: payloads.length,
    requests: payloads.reduce((sum, turns) => sum + turns.length, 0),
    payloads: textsOf(payloads),
  };
}

function* textsOf(sessions: readonly (readonly unknown[])[]): Generator<string, void, undefined> {
  for (const [session, turns] of sessions.entries()) {
    for (const [turn, payload] of turns.entries()) yield JSON.stringify([session, turn, payload]);
  }
}

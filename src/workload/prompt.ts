/**
 * Prompts as symbolic segments.
 *
 * A segment is a run of tokens with a name: the same id always stands for the same content, and a shorter run of it is a
 * prefix of a longer one. What the twin hashes and what a live client sends are both made from it, so they agree.
 */

/** A run of tokens of one content; `id` is any safe integer. */
export interface Segment {
  readonly id: number;
  readonly tokens: number;
}

/** A prompt whose segments all have the same length but the last, which is cut: a row of a trace, kept without copies. */
export interface UniformPrompt {
  readonly kind: "uniform";
  readonly tokens: number;
  readonly ids: ArrayLike<number>;
  readonly segmentTokens: number;
}

/** A prompt of segments of any length; `ends[i]` is the number of tokens up to and with segment `i`. */
export interface SegmentPrompt {
  readonly kind: "segments";
  readonly tokens: number;
  readonly ids: readonly number[];
  readonly ends: readonly number[];
}

/** Everything that comes before an answer, as segments. */
export type Prompt = UniformPrompt | SegmentPrompt;

/** A prompt of nothing, to extend. */
export const EMPTY_PROMPT: SegmentPrompt = { kind: "segments", tokens: 0, ids: [], ends: [] };

/** The prompt made of these segments; empty ones are left out. */
export function promptOf(segments: readonly Segment[]): SegmentPrompt {
  return extendPrompt(EMPTY_PROMPT, segments);
}

/** A prompt with more segments behind it; the given one stays as it is. */
export function extendPrompt(prompt: Prompt, segments: readonly Segment[]): SegmentPrompt {
  const ids: number[] = [];
  const ends: number[] = [];
  for (let at = 0; at < segmentCount(prompt); at++) {
    ids.push(prompt.ids[at]);
    ends.push(segmentEnd(prompt, at));
  }
  let tokens = prompt.tokens;
  for (const segment of segments) {
    if (segment.tokens === 0) continue;
    tokens += segment.tokens;
    ids.push(segment.id);
    ends.push(tokens);
  }
  return { kind: "segments", tokens, ids, ends };
}

/** How many segments have at least one token in the prompt. */
export function segmentCount(prompt: Prompt): number {
  return prompt.kind === "segments" ? prompt.ids.length : Math.ceil(prompt.tokens / prompt.segmentTokens);
}

/** The token after the last one of a segment. */
export function segmentEnd(prompt: Prompt, at: number): number {
  if (prompt.kind === "segments") return prompt.ends[at];
  return Math.min((at + 1) * prompt.segmentTokens, prompt.tokens);
}

/** The prompt taken apart again. */
export function segmentsOf(prompt: Prompt): Segment[] {
  const segments: Segment[] = [];
  for (let at = 0, start = 0; at < segmentCount(prompt); at++) {
    const end = segmentEnd(prompt, at);
    segments.push({ id: prompt.ids[at], tokens: end - start });
    start = end;
  }
  return segments;
}

/** How many leading tokens two prompts have in common. */
export function commonPrefixTokens(a: Prompt, b: Prompt): number {
  const count = Math.min(segmentCount(a), segmentCount(b));
  let common = 0;
  for (let at = 0; at < count; at++) {
    if (a.ids[at] !== b.ids[at]) return common;
    const endOfA = segmentEnd(a, at);
    const endOfB = segmentEnd(b, at);
    common = Math.min(endOfA, endOfB);
    if (endOfA !== endOfB) return common;
  }
  return common;
}

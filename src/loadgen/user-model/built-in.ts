import { Rng } from "../../core/rng.ts";
import type { ReadAnswer, UserModel } from "./types.ts";

/** What a question is made of: a passage of the answer, and two words that the answer is about. */
interface Picked {
  readonly topic: string;
  readonly passage: string;
  readonly first: string;
  readonly second: string;
}

const QUESTIONS: readonly ((picked: Picked) => string)[] = [
  ({ passage }) =>
    `You wrote: "${passage}" Why is that so? Walk me through the reasoning, and tell me what would change if it did not hold.`,
  ({ passage, first }) =>
    `I do not follow this part: "${passage}" Could you explain it again with a small example, and show where ${first} comes in?`,
  ({ first, second }) =>
    `How do ${first} and ${second} depend on each other in what you described? Which one would you look at first when something goes wrong, and why?`,
  ({ passage, second }) =>
    `You say "${passage}" What does that mean for ${second} in practice? Give me numbers or orders of magnitude where you can.`,
  ({ first, topic }) =>
    `You mention ${first}. Is that peculiar to ${topic}, or does it hold in general? Name a case in which it does not, and explain the difference.`,
  ({ passage, first }) =>
    `Suppose somebody disagrees with this: "${passage}" What would be their best argument, what does it say about ${first}, and how would you answer?`,
  ({ first, second }) =>
    `If I could improve only one of the two, ${first} or ${second}, which should it be? Compare what each would cost and what it would bring.`,
  ({ passage }) =>
    `Let us go deeper into this: "${passage}" What happens underneath, step by step, and what are the usual mistakes people make there?`,
];

const LONGEST_PASSAGE_WORDS = 18;
const SHORTEST_SENTENCE_WORDS = 5;
const SHORTEST_TERM = 5;
/** Of the words an answer uses most, so many may be asked about. */
const TERMS = 12;
const MARKS = /[*_#`>|"\\[\]()]/g;
const EDGES = /^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu;
/** Long words that no answer is about. */
const PLAIN: ReadonlySet<string> = new Set(
  (
    "about above after again against because before being below between could during every first further itself " +
    "might never often other others rather really should since still their there these thing things think those " +
    "though through under until where which while whole whose without would years example however therefore"
  ).split(" "),
);

/**
 * A user that needs no model: asks about a passage or about words of the answer it has read. The same answer in the same
 * turn of the same conversation leads to the same question.
 */
export class BuiltInUser implements UserModel {
  readonly #rng: Rng;

  constructor(seed: number) {
    this.#rng = new Rng(seed).stream("built-in-user");
  }

  followUp({ session, turn, topic, answer }: ReadAnswer): string {
    const rng = this.#rng.stream(session).stream(turn);
    const passages = passagesOf(answer);
    const terms = termsOf(answer);
    const first = rng.below(Math.max(1, terms.length));
    const second = (first + 1 + rng.below(Math.max(1, terms.length - 1))) % Math.max(1, terms.length);
    const picked: Picked = {
      topic: topic === "" ? "this subject" : topic,
      passage: passages[rng.below(Math.max(1, passages.length))] ?? "",
      first: terms[first] ?? "this",
      second: terms[second] ?? "the rest",
    };
    if (picked.passage === "") return `I have no answer that I could ask about. What should I know of ${picked.topic}?`;
    return QUESTIONS[rng.below(QUESTIONS.length)](picked);
  }
}

/** Sentences of an answer, cut where they are long; where it has none, stretches of its words. */
function passagesOf(answer: string): string[] {
  const sentences = answer
    .split(/(?<=[.!?])\s+|\n+/)
    .map(wordsOf)
    .filter((words) => words.length >= SHORTEST_SENTENCE_WORDS);
  if (sentences.length > 0) return sentences.map(shortened);
  const words = wordsOf(answer);
  return words.length === 0 ? [] : [shortened(words)];
}

function wordsOf(text: string): string[] {
  return text
    .replaceAll(MARKS, " ")
    .split(/\s+/)
    .filter((word) => word !== "");
}

function shortened(words: readonly string[]): string {
  const kept = words.slice(0, LONGEST_PASSAGE_WORDS).join(" ");
  return words.length > LONGEST_PASSAGE_WORDS ? `${kept} …` : kept;
}

/** The words an answer uses most, long ones only; equally frequent ones in the order of the alphabet. */
function termsOf(answer: string): string[] {
  const counts = new Map<string, number>();
  for (const word of wordsOf(answer)) {
    const term = word.replaceAll(EDGES, "").toLowerCase();
    if (term.length < SHORTEST_TERM || PLAIN.has(term)) continue;
    counts.set(term, (counts.get(term) ?? 0) + 1);
  }
  const byUse = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  return byUse.slice(0, TERMS).map(([term]) => term);
}

/**
 * Text in a normal form, in time that grows with its length.
 *
 * Combining marks that follow one letter are sorted by class. What does that for JavaScript (ICU) walks back over all marks before each
 * one, so that 400,000 of them in a bad order take a minute. Long runs are therefore sorted here first, class by class, which changes
 * no normal form; text that people write has no such runs, and is looked at in a few places only.
 */
import type { NormalForm } from "./definition.ts";

/** Shorter runs are ICU's to sort. */
const LONG_RUN = 64;
/** What combines with what stands before it; the last two do where compatibility forms are taken apart. */
const COMBINING = /[\p{M}\uff9e\uff9f]/u;
const MARKS = /[\p{M}\uff9e\uff9f]{2,}/gu;
/** Marks of two classes, 230 and 220: whatever combines changes places with one of them. */
const PROBES: readonly string[] = ["\u0301", "\u0316"];

/** Equal to `text.normalize(form)`. */
export function normalized(text: string, form: NormalForm): string {
  return withSortedMarks(text, form).normalize(form);
}

function withSortedMarks(text: string, form: NormalForm): string {
  let sorted = "";
  let done = 0;
  // Every long run covers one of these places.
  for (let at = LONG_RUN - 1; at < text.length; at += LONG_RUN) {
    if (at < done || !mayCombine(text, at)) continue;
    let start = at;
    let end = at + 1;
    while (start > done && mayCombine(text, start - 1)) start--;
    while (end < text.length && mayCombine(text, end)) end++;
    if (end - start >= LONG_RUN) {
      const sort = new MarkSort(form === "NFKC" || form === "NFKD" ? "NFKD" : "NFD");
      sorted += text.slice(done, start) + text.slice(start, end).replace(MARKS, (marks) => sort.sorted(marks));
      done = end;
    }
    at = end;
  }
  return done === 0 ? text : sorted + text.slice(done);
}

/** Halves of pairs may: which of them do is seen when they are sorted. */
function mayCombine(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0x300 && ((unit >= 0xd800 && unit < 0xe000) || COMBINING.test(text[at]));
}

/** Sorts marks by their classes, which it learns from how pairs of them are put in order. */
class MarkSort {
  readonly #apart: "NFD" | "NFKD";
  readonly #parts = new Map<string, string[]>();
  readonly #classOf = new Map<string, MarkClass | undefined>();
  /** In order. */
  readonly #classes: MarkClass[] = [];

  constructor(apart: "NFD" | "NFKD") {
    this.#apart = apart;
  }

  sorted(marks: string): string {
    const out: string[] = [];
    for (const mark of marks) {
      for (const part of this.#partsOf(mark)) {
        const its = this.#markClass(part);
        if (its !== undefined) its.found.push(part);
        else {
          // It combines with nothing before it, and begins anew.
          this.#flush(out);
          out.push(part);
        }
      }
    }
    this.#flush(out);
    return out.join("");
  }

  #flush(out: string[]): void {
    for (const { found } of this.#classes) for (const mark of found.splice(0)) out.push(mark);
  }

  #partsOf(mark: string): string[] {
    let parts = this.#parts.get(mark);
    if (parts === undefined) {
      parts = Array.from(mark.normalize(this.#apart));
      this.#parts.set(mark, parts);
    }
    return parts;
  }

  #markClass(mark: string): MarkClass | undefined {
    if (this.#classOf.has(mark)) return this.#classOf.get(mark);
    const its = PROBES.some((probe) => isBefore(probe, mark) || isBefore(mark, probe)) ? this.#place(mark) : undefined;
    this.#classOf.set(mark, its);
    return its;
  }

  #place(mark: string): MarkClass {
    let at = 0;
    while (at < this.#classes.length && isBefore(this.#classes[at].example, mark)) at++;
    const there = this.#classes.at(at);
    if (there !== undefined && !isBefore(mark, there.example)) return there;
    const its: MarkClass = { example: mark, found: [] };
    this.#classes.splice(at, 0, its);
    return its;
  }
}

/** Marks that stay in the order in which they come. */
interface MarkClass {
  readonly example: string;
  readonly found: string[];
}

function isBefore(mark: string, other: string): boolean {
  return mark !== other && (other + mark).normalize("NFD") === mark + other;
}

import { MOST_SECONDS } from "../../../lab/experiment/limits.ts";
import { invalid } from "./experiment-file.ts";

/** Reads an option as a whole number, 1 or more. */
export function wholeNumber(option: string, most: number): (written: string) => number {
  return (written) => {
    const value = Number(written);
    if (written.trim() !== "" && Number.isSafeInteger(value) && value >= 1 && value <= most) return value;
    throw invalid(`${option} must be a whole number, 1 to ${most}, got "${written}"`);
  };
}

/** Reads an option as numbers with commas between them. */
export function numberList(option: string): (written: string) => number[] {
  return (written) =>
    written.split(",").map((part) => {
      const value = Number(part);
      if (part.trim() !== "" && value > 0 && value < Infinity) return value;
      throw invalid(`${option} must be numbers with commas between them, got "${written}"`);
    });
}

/** Reads an option as names with commas between them. */
export function textList(option: string): (written: string) => string[] {
  return (written) => {
    const names = written.split(",").map((part) => part.trim());
    if (names.every((name) => name !== "")) return names;
    throw invalid(`${option} must be names with commas between them, got "${written}"`);
  };
}

/** Reads an option as a whole number, 0 or more. */
export function count(option: string): (written: string) => number {
  return (written) => {
    const value = Number(written);
    if (written.trim() !== "" && Number.isSafeInteger(value) && value >= 0) return value;
    throw invalid(`${option} must be a whole number, 0 or more, got "${written}"`);
  };
}

/** Reads an option as a time in seconds. */
export function duration(option: string, least: number = 0): (written: string) => number {
  return (written) => {
    const value = Number(written);
    if (written.trim() !== "" && value >= least && value <= MOST_SECONDS) return value;
    throw invalid(`${option} must be a number of seconds, ${least} to ${MOST_SECONDS}, got "${written}"`);
  };
}

/** Reads an option as one of some words. */
export function oneOf<Word extends string>(option: string, words: readonly Word[]): (written: string) => Word {
  return (written) => {
    const word = words.find((known) => known === written);
    if (word !== undefined) return word;
    throw invalid(`${option} must be ${words.join(", ")}, got "${written}"`);
  };
}

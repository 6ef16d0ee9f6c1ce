import type { ParameterSpec } from "./types.ts";

/** The knobs of `warmpath`. */
export const WARMPATH_PARAMETERS: Readonly<Record<string, ParameterSpec>> = {
  calmUrgency: {
    kind: "number",
    default: 50,
    minimum: 0,
    maximum: 1000,
    about: "what a millisecond of time to first token counts for while no prompts queue",
  },
  busyUrgency: {
    kind: "number",
    default: 4,
    minimum: 0,
    maximum: 1000,
    about: "what it counts for while many do",
  },
  queueHalf: {
    kind: "number",
    default: 1,
    minimum: 0.01,
    maximum: 1000,
    about: "prompts waiting at a replica at which urgency is half way between the two",
  },
  queueSeconds: {
    kind: "number",
    default: 2,
    minimum: 0.001,
    maximum: 3600,
    about: "time over which those are averaged: shorter bursts are no queue",
  },
  expectedCredit: {
    kind: "number",
    default: 0.7,
    minimum: 0,
    maximum: 1,
    about: "what a block counts for, at most, that a prompt under way is yet to compute",
  },
  paybackSeconds: {
    kind: "number",
    default: 90,
    minimum: 0,
    maximum: 86_400,
    about: "a prefix gets one more copy if that pays for itself within this time; 0 makes none on purpose",
  },
  speedPriorFactor: {
    kind: "number",
    default: 1,
    minimum: 0.01,
    maximum: 100,
    about: "how much slower than usual engines are believed to be before any token was seen",
  },
};

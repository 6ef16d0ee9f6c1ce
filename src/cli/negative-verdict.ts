/** A command has done its work and printed it, and the answer is no: exit code 1 and nothing more to say. */
export class NegativeVerdict extends Error {}

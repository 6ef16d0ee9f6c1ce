import { WarmpathError } from "../../../core/errors.ts";
import { type FaultChanges, faultsSchema, PLAIN_FAULTS } from "../../../worker/faults.ts";
import { inputProblem } from "../../input-problem.ts";

/** Reads `--fault name` or `--fault name=value` and adds it to those read before. */
export function readFault(written: string, before: FaultChanges = {}): FaultChanges {
  const [, name = "", value] = /^([^=]+)(?:=(.+))?$/.exec(written) ?? [];
  if (!Object.hasOwn(PLAIN_FAULTS, name)) {
    const known = Object.keys(PLAIN_FAULTS).join(", ");
    throw new WarmpathError("WP_INVALID_INPUT", `--fault: no fault is called "${name}"; there are ${known}`);
  }
  const plain = PLAIN_FAULTS[name as keyof typeof PLAIN_FAULTS];
  const input = { [name]: value === undefined ? plain : numberOrText(value) };
  const { data, error } = faultsSchema.safeParse(input);
  if (error !== undefined) throw inputProblem(error, input, "--fault");
  if (input[name] === undefined)
    throw new WarmpathError("WP_INVALID_INPUT", `--fault ${name} needs a value: ${name}=…`);
  return { ...before, ...data };
}

function numberOrText(written: string): number | string {
  const value = Number(written);
  return Number.isNaN(value) ? written : value;
}

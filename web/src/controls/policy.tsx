import { useState } from "preact/hooks";
import type {
  Command,
  FleetView,
  ParameterSpec,
  PolicyChoice,
  PolicyParameters,
} from "../../../src/dashboard/protocol.ts";

export interface PolicyProps {
  readonly policies: readonly PolicyChoice[];
  readonly fleet: FleetView;
  readonly isDisabled: boolean;
  readonly command: (command: Command) => void;
}

/** One click each; the others are in the list. */
const FAVOURITES: readonly string[] = ["round-robin", "kv-cost", "warmpath"];

/** Which policy routes, switched live. */
export function PolicySwitch({ policies, fleet, isDisabled, command }: PolicyProps) {
  const { policy } = fleet;
  const choose = (name: string): void => command({ kind: "set-policy", policy: name });
  const others = policies.filter((one) => !FAVOURITES.includes(one.policy));
  const about = policies.find((one) => one.policy === policy)?.about;
  return (
    <div class="control policy">
      <p class="heading" id="policy-heading" title={about}>
        Policy <small>{about ?? "who gets a request"}</small>
      </p>
      <div class="segments" role="radiogroup" aria-labelledby="policy-heading">
        {FAVOURITES.map((name) => (
          <label key={name} class={name === policy ? "chosen" : ""}>
            <input
              type="radio"
              name="policy"
              value={name}
              checked={name === policy}
              disabled={isDisabled}
              onChange={() => choose(name)}
            />
            {name}
          </label>
        ))}
        <span class={`other ${FAVOURITES.includes(policy) ? "" : "chosen"}`}>
          <select
            aria-label="Other policies"
            value={FAVOURITES.includes(policy) ? "" : policy}
            disabled={isDisabled}
            onChange={({ currentTarget }) => currentTarget.value !== "" && choose(currentTarget.value)}
          >
            <option value="">more…</option>
            {others.map((one) => (
              <option key={one.policy} value={one.policy}>
                {one.policy}
              </option>
            ))}
          </select>
        </span>
      </div>
      <Knobs key={policy} policies={policies} fleet={fleet} command={command} />
    </div>
  );
}

/** The knobs of the policy in force. */
function Knobs({ policies, fleet, command }: Omit<PolicyProps, "isDisabled">) {
  const { policy, parameters } = fleet;
  const specs = Object.entries(policies.find((one) => one.policy === policy)?.parameters ?? {});
  // As typed: a number that is written anew while it is typed loses its point, and with that its size.
  const [edited, setEdited] = useState<Readonly<Record<string, string>>>({});
  const apply = (event: Event): void => {
    event.preventDefault();
    const touched = specs.filter(([name]) => edited[name] !== undefined);
    const changed: PolicyParameters = Object.fromEntries(
      touched.map(([name, spec]) => [name, spec.kind === "choice" ? edited[name] : Number(edited[name])]),
    );
    command({ kind: "set-policy", policy, parameters: changed });
    setEdited({});
  };
  if (specs.length === 0) return <span class="knobs none">no knobs</span>;
  return (
    <details class="knobs">
      <summary>
        {specs.length} {specs.length === 1 ? "knob" : "knobs"}
      </summary>
      <form onSubmit={apply}>
        {specs.map(([name, spec]) => (
          <Knob
            key={name}
            name={name}
            spec={spec}
            value={edited[name] ?? String(parameters[name] ?? spec.default)}
            change={(value) => setEdited({ ...edited, [name]: value })}
          />
        ))}
        <button type="submit" disabled={Object.keys(edited).length === 0}>
          Apply
        </button>
      </form>
    </details>
  );
}

function Knob(props: {
  readonly name: string;
  readonly spec: ParameterSpec;
  readonly value: string;
  readonly change: (value: string) => void;
}) {
  const { name, spec, value, change } = props;
  return (
    <label class="knob" title={spec.about}>
      <span>{name}</span>
      {spec.kind === "choice" ? (
        <select value={value} onChange={({ currentTarget }) => change(currentTarget.value)}>
          {spec.choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      ) : (
        <input
          type="number"
          step="any"
          min={spec.minimum}
          max={spec.maximum}
          required
          value={value}
          onInput={({ currentTarget }) => change(currentTarget.value)}
        />
      )}
      <small>{spec.about}</small>
    </label>
  );
}

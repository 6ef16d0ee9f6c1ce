import { useEffect, useRef, useState } from "preact/hooks";
import { type Command, LEAST_CONCURRENCY, MOST_CONCURRENCY } from "../../../src/dashboard/protocol.ts";

export interface ConcurrencyProps {
  readonly concurrency: number;
  readonly inFlight: number;
  /** Levels for which something was recorded, marked under the slider. */
  readonly levels: readonly number[];
  readonly isDisabled: boolean;
  readonly command: (command: Command) => void;
}

/** While a slider is dragged the server is told this often. */
const TELL_EVERY_MS = 120;
/** So long after the last touch the page believes the server again. */
const HOLD_MS = 1500;

/** The concurrency as a slider and as a number; what a person does is shown at once and told at a bounded pace. */
export function Concurrency({ concurrency, inFlight, levels, isDisabled, command }: ConcurrencyProps) {
  const [touched, setTouched] = useState<number>();
  const [typed, setTyped] = useState<string>();
  /** What the server will be told when it may be told again. */
  const pending = useRef<number>(undefined);
  const shown = touched ?? concurrency;

  // The server has caught up, or time enough has passed for it to have said something else.
  useEffect(() => {
    if (touched === undefined) return;
    if (touched === concurrency) setTouched(undefined);
    const timer = setTimeout(() => setTouched(undefined), HOLD_MS);
    return () => clearTimeout(timer);
  }, [touched, concurrency]);

  const change = (value: number): void => {
    const wanted = Math.min(MOST_CONCURRENCY, Math.max(LEAST_CONCURRENCY, Math.round(value)));
    setTouched(wanted);
    if (pending.current !== undefined) {
      pending.current = wanted;
      return;
    }
    command({ kind: "set-concurrency", concurrency: wanted });
    pending.current = wanted;
    setTimeout(() => {
      const later = pending.current;
      pending.current = undefined;
      if (later !== undefined && later !== wanted) change(later);
    }, TELL_EVERY_MS);
  };
  const commit = (): void => {
    const value = Number(typed);
    setTyped(undefined);
    if (typed !== undefined && typed.trim() !== "" && Number.isFinite(value)) change(value);
  };

  return (
    <div class="control concurrency">
      <label for="concurrency">
        Concurrency <small>conversations at once</small>
      </label>
      <div class="slider">
        <input
          id="concurrency"
          type="range"
          min={LEAST_CONCURRENCY}
          max={MOST_CONCURRENCY}
          value={shown}
          disabled={isDisabled}
          style={{ "--filled": `${(100 * (shown - LEAST_CONCURRENCY)) / (MOST_CONCURRENCY - LEAST_CONCURRENCY)}%` }}
          aria-valuetext={`${shown} conversations`}
          onInput={({ currentTarget }) => change(Number(currentTarget.value))}
        />
        <div class="levels" aria-hidden="true">
          {levels.map((level) => (
            <i
              key={level}
              style={{ left: `${(100 * (level - LEAST_CONCURRENCY)) / (MOST_CONCURRENCY - LEAST_CONCURRENCY)}%` }}
            />
          ))}
        </div>
      </div>
      <input
        class="number"
        type="number"
        inputMode="numeric"
        min={LEAST_CONCURRENCY}
        max={MOST_CONCURRENCY}
        aria-label="Concurrency as a number"
        value={typed ?? String(shown)}
        disabled={isDisabled}
        onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        onChange={commit}
        onBlur={commit}
      />
      <output class="in-flight" data-testid="in-flight" title="requests sent and not ended">
        <b>{inFlight}</b> in flight
      </output>
    </div>
  );
}

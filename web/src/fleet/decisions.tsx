import { useState } from "preact/hooks";
import { type DecisionView, whyChosen } from "../../../src/dashboard/protocol.ts";
import { duration, formatCost, formatCount, written } from "../format.ts";

/** The last routing decisions: one with all its candidates, the others in a list. */
export function Decisions({ decisions }: { readonly decisions: readonly DecisionView[] }) {
  // A decision that somebody looks at stays, however many follow.
  const [held, setHeld] = useState<DecisionView>();
  const shown = decisions.find(({ decision }) => decision === held?.decision) ?? held ?? decisions[0];
  return (
    <section class="decisions" aria-label="Last decisions">
      <h2>
        Last decisions
        <small>{held === undefined ? "following the newest" : `holding number ${formatCount(held.decision)}`}</small>
        <button
          type="button"
          class="quiet"
          disabled={shown === undefined}
          onClick={() => setHeld(held ? undefined : shown)}
        >
          {held === undefined ? "Hold" : "Follow"}
        </button>
      </h2>
      <div class="card decision" data-testid="decision">
        {shown === undefined ? <p class="note">No request has been routed yet.</p> : <Candidates decision={shown} />}
      </div>
      <ol class="recent">
        {decisions.map((decision) => (
          <li key={decision.decision}>
            <button
              type="button"
              aria-pressed={decision.decision === shown?.decision}
              onClick={() => setHeld(decision)}
              title={whyChosen(decision)}
            >
              <span class="request">{decision.request}</span>
              <span class="prompt">{formatCount(decision.promptBlocks)} blocks</span>
              <span class="cached">{percent(decision)}</span>
              <span class="chosen">{decision.chosen ?? "turned away"}</span>
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}

function percent({ predictedCachedTokens, promptTokens }: DecisionView): string {
  return promptTokens === 0 ? "" : `${Math.round((100 * predictedCachedTokens) / promptTokens)} % cached`;
}

function Candidates({ decision }: { readonly decision: DecisionView }) {
  const { candidates, chosen, promptBlocks, unit, policy, filtered } = decision;
  return (
    <>
      <p class="why">{whyChosen(decision)}</p>
      <table>
        <caption>
          {decision.request}: {formatCount(promptBlocks)} blocks, {policy}
          {decision.rule !== null && <span> ({decision.rule})</span>}
        </caption>
        <thead>
          <tr>
            <th scope="col">worker</th>
            <th scope="col" title="leading blocks of the prompt that it holds">
              cached
            </th>
            <th scope="col" title="blocks that it would have to compute">
              prefill
            </th>
            <th scope="col" title="blocks that its running requests hold">
              load
            </th>
            <th scope="col" title={unit ?? ""}>
              cost
            </th>
          </tr>
        </thead>
        <tbody>
          {candidates
            .toSorted((a, b) => a.worker.localeCompare(b.worker, "en", { numeric: true }))
            .map((row) => (
              <tr key={row.worker} class={row.worker === chosen ? "chosen" : ""}>
                <th scope="row">
                  {row.worker}
                  {row.worker === chosen && <span class="won"> chosen</span>}
                </th>
                <td class="cached">
                  <i
                    style={{ width: `${promptBlocks === 0 ? 0 : (100 * row.cachedBlocks) / promptBlocks}%` }}
                    aria-hidden="true"
                  />
                  <span>{formatCount(row.cachedBlocks)}</span>
                </td>
                <td>{formatCount(row.prefillBlocks)}</td>
                <td>{formatCount(row.loadBlocks)}</td>
                <td title={row.terms.map(({ name, value }) => `${name} ${formatCost(value)}`).join("\n")}>
                  {row.cost === null ? "out" : formatCost(row.cost)}
                </td>
              </tr>
            ))}
          {filtered.map(({ worker, reason }) => (
            <tr key={worker} class="filtered">
              <th scope="row">{worker}</th>
              <td colSpan={4}>no candidate: {reason}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="after">{outcome(decision)}</p>
    </>
  );
}

/** Whether what was predicted came true. */
function outcome({ predictedCachedTokens, observedCachedTokens, ttftMs, queueWaitMs, unit }: DecisionView): string {
  const predicted = `${formatCount(predictedCachedTokens)} tokens predicted cached`;
  const observed = observedCachedTokens === null ? "not yet observed" : `${formatCount(observedCachedTokens)} observed`;
  const first = ttftMs === null ? [] : [`first token after ${written(duration(ttftMs))}`];
  const waited = queueWaitMs >= 1 ? [`waited ${written(duration(queueWaitMs))}`] : [];
  return [`${predicted}, ${observed}`, ...first, ...waited, ...(unit === null ? [] : [`cost in ${unit}`])].join(" · ");
}

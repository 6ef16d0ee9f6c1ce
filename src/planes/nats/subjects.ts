/** Names of subjects. Workers may be called anything, but a part of a subject may not. */

const PLAIN = /[A-Za-z0-9_-]/;

/** A name as one part of a subject: what is not plain is written as `=` and its bytes in hex, so no two names meet. */
function subjectPart(name: string): string {
  let part = "";
  for (const byte of new TextEncoder().encode(name)) {
    const character = String.fromCharCode(byte);
    part += PLAIN.test(character) ? character : `=${byte.toString(16).padStart(2, "0")}`;
  }
  return part === "" ? "=" : part;
}

/** What a worker's KV events and load go under. */
export interface EventSubjects {
  /** JetStream's stream that keeps events. */
  readonly stream: string;
  /** Events of all workers, as the stream takes them. */
  readonly allEvents: string;
  /** All that the worker tells, by the last part. */
  readonly told: string;
  readonly events: string;
  readonly load: string;
  readonly head: string;
  /** Answers with the head, or with the whole state. */
  readonly askHead: string;
  readonly askSnapshot: string;
}

export function eventSubjects(prefix: string, replica: string): EventSubjects {
  const part = subjectPart(replica);
  const told = `${prefix}.worker.${part}`;
  return {
    stream: `${prefix}-events`,
    allEvents: `${prefix}.worker.*.kv`,
    told: `${told}.*`,
    events: `${told}.kv`,
    load: `${told}.load`,
    head: `${told}.head`,
    askHead: `${prefix}.ask.${part}.head`,
    askSnapshot: `${prefix}.ask.${part}.snapshot`,
  };
}

/** What requests to a worker go under. */
export interface RequestSubjects {
  readonly requests: string;
  /** Pauses, resumes and aborts of requests under way. */
  readonly control: string;
}

export function requestSubjects(prefix: string, worker: string): RequestSubjects {
  const part = subjectPart(worker);
  return { requests: `${prefix}.requests.${part}`, control: `${prefix}.control.${part}` };
}

/** What gateways before one fleet tell each other. */
export function peerSubject(prefix: string): string {
  return `${prefix}.peers`;
}

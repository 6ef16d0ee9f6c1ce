/** What a user has read when it asks on. */
export interface ReadAnswer {
  /** Number of the conversation, and the turn that was answered, from 0. */
  readonly session: number;
  readonly turn: number;
  /** What the conversation is about: the first line of its starter. */
  readonly topic: string;
  /** The answer as text. */
  readonly answer: string;
}

/** Plays the user: reads an answer and asks on. */
export interface UserModel {
  /** The next message of the user; rejects if there is none to be had. */
  followUp(read: ReadAnswer, signal: AbortSignal): Promise<string> | string;
  close?(): Promise<void>;
}

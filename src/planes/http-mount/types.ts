import type { IncomingMessage, ServerResponse } from "node:http";

/** Something that answers a few paths of a server that somebody else runs. */
export interface HttpMount {
  /** Answers the request if it is meant for this mount; false, and nothing done, if it is not. */
  handle(request: IncomingMessage, response: ServerResponse): boolean;
}

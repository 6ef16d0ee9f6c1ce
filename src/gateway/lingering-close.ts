import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { BytesInTurn } from "./bytes-in-turn.ts";

/** How long a client that was refused may send nothing, or anything at all, before its connection is closed upon it. */
const SILENCE_MS = 5_000;
const LONGEST_MS = 30_000;
/** What is taken from a connection at most that nobody reads. */
const MOST_BYTES = 64 * 1024 * 1024;

/**
 * Closes a connection on which more may come than anybody is going to read. If it were closed at once, what still comes would be
 * answered with a reset, which takes the answer away that the client has not read yet. So only this side ends, and what comes
 * is thrown away until the client has ended too; for so long, and so much.
 */
export function closeLingering(socket: Socket): void {
  const latestMs = performance.now() + LONGEST_MS;
  const timer = setTimeout(() => socket.destroy(), SILENCE_MS);
  socket.once("close", () => clearTimeout(timer));
  socket.end();
  discard(socket, () => {
    if (performance.now() < latestMs) timer.refresh();
  });
}

/** Has the connection of an answer closed after it, in a way that lets the client read it. */
export function closeAfter(response: ServerResponse): void {
  response.setHeader("connection", "close");
  const { socket } = response;
  // What Node calls when the last answer of a connection is written.
  if (socket !== null) socket.destroySoon = () => closeLingering(socket);
}

/** Throws away all that comes on a connection from now on, as if it were not HTTP, and closes it if that is too much. */
export function discard(socket: Socket, heard: () => void = () => {}): void {
  const turns = new BytesInTurn(socket);
  let bytes = 0;
  const take = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) socket.destroy();
    else {
      heard();
      turns.took(chunk.length);
    }
  };
  const begin = (): void => {
    socket.removeAllListeners("data");
    socket.on("data", take);
  };
  // Node's parser takes bytes from below the socket, and gives a paused one back in a state that nothing wakes it from.
  if (socket.isPaused()) socket.once("resume", begin).resume();
  else begin();
}

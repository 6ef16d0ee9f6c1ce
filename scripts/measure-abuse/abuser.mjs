/** Does to a gateway what it should bear; told `begin` and `end` by `measure-abuse.mjs`, and tells what it did. */
import { once } from "node:events";
import { get } from "node:http";
import { connect } from "node:net";

const IDLE_CONNECTIONS = 2000;
const AT_ONCE = 100;
const DRIPS = 20;
const DRIP_MS = 100;
/** How long after one body of a gigabyte the next is tried. */
const AGAIN_MS = 1000;
const PIECE = Buffer.alloc(256 * 1024, "x");
const GIGABYTE = 1024 ** 3;

const { hostname, port } = new URL(process.argv[2]);
const kinds = new Set(process.argv[3].split(","));
let state;

process.on("message", async (word) => {
  if (word === "begin") {
    state = {
      sockets: new Set(),
      isOver: false,
      counts: { idle: 0, drips: 0, bodies: 0, bodyMegabytes: 0, cutOff: 0 },
    };
    // No more at once than the system lines up for a busy server.
    for (let at = 0; at < IDLE_CONNECTIONS && kinds.has("idle"); at += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, () => hold(state)));
    }
    if (kinds.has("drips")) await Promise.all(Array.from({ length: DRIPS }, () => drip(state)));
    await settled();
    if (kinds.has("bodies")) void sendBodies(state);
    process.send("begun");
  } else {
    state.isOver = true;
    for (const socket of state.sockets) socket.destroy();
    await settled();
    process.send(state.counts);
  }
});
process.on("disconnect", () => process.exit(0));

/** Resolves when the gateway has taken note of all connections that were opened or closed before: new ones come after them. */
async function settled() {
  for (let i = 0; i < 2; i++) {
    const [response] = await once(get(new URL("/health", process.argv[2]), { agent: false }), "response");
    await once(response.resume(), "end");
  }
}

async function opened(round) {
  const socket = connect(Number(port), hostname);
  round.sockets.add(socket);
  socket.on("error", () => {});
  socket.on("close", () => {
    round.sockets.delete(socket);
    if (!round.isOver) round.counts.cutOff += 1;
  });
  await once(socket, "connect");
  socket.resume();
  return socket;
}

async function hold(round) {
  await opened(round);
  round.counts.idle += 1;
}

async function drip(round) {
  const socket = await opened(round);
  round.counts.drips += 1;
  socket.write("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-slow: ");
  const timer = setInterval(() => socket.write("x"), DRIP_MS);
  socket.on("close", () => clearInterval(timer));
}

async function sendBodies(round) {
  while (!round.isOver) {
    round.counts.bodies += 1;
    const socket = await opened(round);
    socket.write("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    const closed = new Promise((resolve) => socket.once("close", resolve));
    for (let sent = 0; sent < GIGABYTE && !socket.destroyed; sent += PIECE.length) {
      socket.write(`${PIECE.length.toString(16)}\r\n`);
      socket.write(PIECE);
      round.counts.bodyMegabytes += PIECE.length / 1024 ** 2;
      if (!socket.write("\r\n")) await Promise.race([once(socket, "drain").catch(() => {}), closed]);
    }
    socket.destroy();
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

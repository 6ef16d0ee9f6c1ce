import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** Passes bytes on to another port, and can be made to drop all connections, or to be gone for a while. */
export class CuttableProxy {
  readonly #server = createServer((socket) => this.#join(socket));
  readonly #sockets = new Set<Socket>();
  /** Where bytes go; changes count for new connections. */
  target: number;
  #port = 0;

  constructor(target: number) {
    this.target = target;
  }

  /** Starts to listen, or starts again after `close`, where it was before. */
  async listen(): Promise<string> {
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = (this.#server.address() as AddressInfo).port;
    return `tcp://127.0.0.1:${this.#port}`;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    this.cut();
    await closed;
  }

  #join(inner: Socket): void {
    const outer = connect(this.target, "127.0.0.1");
    for (const [one, other] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      this.#sockets.add(one);
      one.on("data", (bytes) => other.write(bytes));
      one.on("error", () => other.destroy());
      one.on("close", () => {
        this.#sockets.delete(one);
        other.destroy();
      });
    }
  }
}

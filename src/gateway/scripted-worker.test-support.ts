/** Workers that do what a test says, for the tests of this folder. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { collectBody } from "../wire/body.ts";

export type Script = (body: string, response: ServerResponse, request: IncomingMessage) => void;

/** A worker that follows a script, and how to end it. */
export async function scriptedWorker(script: Script): Promise<{ readonly url: string; close(): void }> {
  const server: Server = createServer((request, response) => {
    void collectBody(request, 1e6).then(({ bytes }) => script(Buffer.from(bytes ?? []).toString(), response, request));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

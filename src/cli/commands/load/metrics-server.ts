import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { WarmpathError } from "../../../core/errors.ts";
import type { LoadMetrics } from "../../../loadgen/metrics.ts";

/** A server of one page. */
export interface MetricsServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves `/metrics`; throws with one line if the port cannot be had. */
export async function serveMetrics(metrics: LoadMetrics, host: string, port: number): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    if (request.url !== "/metrics") {
      response.writeHead(404).end();
      return;
    }
    metrics.text().then(
      (text) => response.writeHead(200, { "content-type": metrics.contentType }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  await listening(server, host, port);
  const address = server.address() as AddressInfo;
  const name = host.includes(":") ? `[${host}]` : host;
  return {
    url: `http://${name}:${address.port}/metrics`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const problem = `--metrics-port ${port}: cannot listen on it (${cause.code ?? cause.message})`;
      reject(new WarmpathError("WP_INVALID_INPUT", problem, { cause }));
    });
    server.listen(port, host, () => resolve());
  });
}

import { type Log, startDecider, startProxy } from "./compose.ts";
import type { GatewaySettings } from "./settings.ts";

/** A gateway that serves. */
export interface ServingGateway {
  readonly url: string;
  readonly adminUrl: string;
  close(): Promise<void>;
}

/** Starts a gateway in this process. */
export async function serveGateway(settings: GatewaySettings, log: Log = () => {}): Promise<ServingGateway> {
  const deciding = await startDecider(settings, log);
  const proxy = await startProxy(settings, deciding.front, "request-", log).catch(async (error: unknown) => {
    await deciding.close();
    throw error;
  });
  return {
    url: proxy.url,
    adminUrl: deciding.adminUrl,
    close: async () => {
      await proxy.close();
      await deciding.close();
    },
  };
}

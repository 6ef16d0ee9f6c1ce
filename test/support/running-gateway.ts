import OpenAI from "openai";
import { type RunningDecider, startDecider, startProxy } from "../../src/cli/commands/gateway/compose.ts";
import { type GatewaySettings, readSettings } from "../../src/cli/commands/gateway/settings.ts";
import { settled } from "../../src/cli/commands/gateway/settled-settings.ts";

/** A gateway in this process and an official client of it. */
export interface GatewayUnderTest {
  readonly url: string;
  readonly adminUrl: string;
  readonly decider: RunningDecider["decider"];
  readonly settings: GatewaySettings;
  readonly client: OpenAI;
  close(): Promise<void>;
}

/** Starts a gateway on free ports. */
export async function startTestGateway(
  given: Readonly<Record<string, unknown>>,
  log: (line: string) => void = () => undefined,
): Promise<GatewayUnderTest> {
  const { settings } = await settled(readSettings({ port: 0, adminPort: 0, drainSeconds: 0, ...given }));
  const deciding = await startDecider(settings, log);
  const { decider, adminUrl } = deciding;
  const proxy = await startProxy(settings, deciding.front, "request-", log);
  return {
    url: proxy.url,
    adminUrl,
    decider,
    settings,
    client: new OpenAI({ baseURL: `${proxy.url}/v1`, apiKey: "none", maxRetries: 0, timeout: 20_000 }),
    close: async () => {
      await proxy.close();
      await deciding.close();
    },
  };
}

import { NatsRequestPlane } from "../../../planes/request/nats.ts";
import type { RequestPlane } from "../../../planes/request/types.ts";
import { natsLink, requestServer } from "../../nats-option.ts";
import type { GatewaySettings } from "./settings.ts";

/** How requests reach workers, and what must be closed after it. */
export interface RequestWay {
  /** Undefined for HTTP, which the gateway does by itself. */
  readonly plane: RequestPlane | undefined;
  close(): Promise<void>;
}

export async function createRequestWay(settings: GatewaySettings): Promise<RequestWay> {
  const url = requestServer(settings);
  if (url === undefined) return { plane: undefined, close: () => Promise.resolve() };
  const link = await natsLink(url, settings, "gateway, requests");
  return { plane: new NatsRequestPlane({ link }), close: () => link.close() };
}

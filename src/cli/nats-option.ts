import { WarmpathError } from "../core/errors.ts";
import { NatsLink } from "../planes/nats/connection.ts";

/** How options name a NATS server. */
export const NATS_URL: RegExp = /^(nats|tls):\/\/\S+$/;

const REACHED_WITHIN_MS = 2000;

/** What the options of a gateway or a worker say about NATS. */
export interface NatsSettings {
  readonly eventPlane: string;
  readonly requestPlane: string;
  readonly natsPrefix: string;
}

/** What the options of a gateway say about others before the same fleet. */
export interface PeerSettings {
  readonly eventPlane: string;
  readonly peerPlane: string;
}

/** The server that events go over; undefined where they do not go over NATS. */
export function eventServer({ eventPlane }: Pick<NatsSettings, "eventPlane">): string | undefined {
  return NATS_URL.test(eventPlane) ? eventPlane : undefined;
}

/** The server that requests go over; undefined where they go over HTTP. */
export function requestServer(settings: NatsSettings): string | undefined {
  const { requestPlane } = settings;
  if (requestPlane === "http") return undefined;
  const url = requestPlane === "nats" ? eventServer(settings) : requestPlane;
  if (url !== undefined) return url;
  const advice =
    "--request-plane nats takes the server of --event-plane; name one there, or --request-plane nats://HOST:PORT";
  throw new WarmpathError("WP_INVALID_INPUT", advice);
}

/** The server over which gateways tell each other of their requests; undefined where they do not. */
export function peerServer({ peerPlane, eventPlane }: PeerSettings): string | undefined {
  if (peerPlane === "none") return undefined;
  const url = peerPlane === "nats" ? eventServer({ eventPlane }) : peerPlane;
  if (url !== undefined) return url;
  const advice =
    "--peer-plane nats takes the server of --event-plane; name one there, or --peer-plane nats://HOST:PORT";
  throw new WarmpathError("WP_INVALID_INPUT", advice);
}

/** Connects; a server that is not there within two seconds is waited for in the background. */
export async function natsLink(
  url: string,
  { natsPrefix }: Pick<NatsSettings, "natsPrefix">,
  name: string,
): Promise<NatsLink> {
  const link = await NatsLink.load({ url, prefix: natsPrefix, name: `warmpath ${name}` });
  await link.reached(REACHED_WITHIN_MS);
  return link;
}

/** Settings as they may be shown: a server's password is nobody's business. */
export function withoutPasswords<T extends Partial<NatsSettings & PeerSettings>>(settings: T): T {
  const shown = (plane: string): string => plane.replace(/^(\w+:\/\/)[^@/]*@/, "$1…@");
  return {
    ...settings,
    ...(settings.eventPlane !== undefined && { eventPlane: shown(settings.eventPlane) }),
    ...(settings.requestPlane !== undefined && { requestPlane: shown(settings.requestPlane) }),
    ...(settings.peerPlane !== undefined && { peerPlane: shown(settings.peerPlane) }),
  };
}

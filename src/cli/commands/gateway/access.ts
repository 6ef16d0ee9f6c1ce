import { createSecureContext } from "node:tls";
import { WarmpathError } from "../../../core/errors.ts";
import type { ApiKey } from "../../../gateway/access/api-key.ts";
import { BearerToken } from "../../../gateway/access/bearer-token.ts";
import { KeyLimitedDecider } from "../../../gateway/access/key-limited-decider.ts";
import { KeyLimits } from "../../../gateway/access/key-limits.ts";
import { KeyRing } from "../../../gateway/access/key-ring.ts";
import type { Decider } from "../../../gateway/decider.ts";
import type { TlsIdentity } from "../../../gateway/listener.ts";
import type { LocalDecider } from "../../../gateway/local-decider.ts";
import type { Gateway } from "../../../gateway/server.ts";
import { ownAdminToken, ownUpstreamKey } from "../../secrets.ts";
import { type FollowedFiles, followFiles } from "./followed-files.ts";
import { parseKeys } from "./key-file.ts";
import type { GatewaySettings } from "./settings.ts";

type Log = (line: string) => void;

/** The deciding half reads the same files, and says so for both. */
const SILENT: Log = () => {};

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/;
const SHORTEST_ADMIN_TOKEN = 16;

/** What the deciding half of a gateway asks of those who come to it. */
export interface DeciderAccess {
  readonly adminToken: BearerToken | undefined;
  /** What engines are sent; undefined where that is the clients' business. */
  readonly engineAuthorization: (() => string | undefined) | undefined;
  /** The decider, behind the limits of keys where there are keys. */
  readonly front: (decider: LocalDecider) => Decider;
  close(): void;
}

/** Reads what the deciding half needs to know, and refuses an admin API that everybody could use. */
export async function deciderAccess(settings: GatewaySettings, log: Log): Promise<DeciderAccess> {
  const admin = await adminToken(settings, log);
  const engines = await engineKey(settings, log);
  let limits: KeyLimits | undefined;
  const keys = await followKeys(settings, log, (changed) => limits?.replace(changed, performance.now()));
  if (keys !== undefined) limits = new KeyLimits(keys.first, performance.now());
  return {
    adminToken: admin.token,
    engineAuthorization: engines.authorization,
    front: (decider) => (limits === undefined ? decider : new KeyLimitedDecider(decider, limits)),
    close: () => {
      for (const file of [admin.file, engines.file, keys]) file?.close();
    },
  };
}

/** What the half that holds connections asks of clients and shows to them. */
export interface ProxyAccess {
  readonly keys: KeyRing | undefined;
  readonly engineAuthorization: (() => string | undefined) | undefined;
  readonly tls: TlsIdentity | undefined;
  /** Has changes of files reach the gateway from now on. */
  follow(gateway: Gateway): void;
  close(): void;
}

export async function proxyAccess(settings: GatewaySettings, log: Log): Promise<ProxyAccess> {
  if (settings.saltByKey && settings.apiKeys === undefined) throw invalid("--salt-by-key needs --api-keys");
  let gateway: Gateway | undefined;
  let ring: KeyRing | undefined;
  const keys = await followKeys(settings, SILENT, (changed) => {
    ring?.replace(changed);
    gateway?.forgetPauses();
  });
  if (keys !== undefined) ring = new KeyRing(keys.first);
  const engines = await engineKey(settings, SILENT);
  const tls = await followTls(settings, log, (changed) => gateway?.renewTls(changed));
  return {
    keys: ring,
    engineAuthorization: engines.authorization,
    tls: tls?.first,
    follow: (followed) => (gateway = followed),
    close: () => {
      for (const file of [keys, engines.file, tls]) file?.close();
    },
  };
}

async function followKeys(
  { apiKeys: path }: GatewaySettings,
  log: Log,
  changed: (keys: readonly ApiKey[]) => void,
): Promise<FollowedFiles<readonly ApiKey[]> | undefined> {
  if (path === undefined) return undefined;
  const read = (text: string): readonly ApiKey[] => parseKeys(text, `--api-keys ${path}`);
  return await followFiles({ files: { "api-keys": path }, read, changed, log });
}

async function adminToken(
  { adminHost, adminTokenFile: path }: GatewaySettings,
  log: Log,
): Promise<{ token: BearerToken | undefined; file?: FollowedFiles<string> }> {
  const given = ownAdminToken();
  if (path === undefined) {
    if (given !== undefined) return { token: new BearerToken(checkedToken(given, "WARMPATH_ADMIN_TOKEN")) };
    if (LOOPBACK.test(adminHost)) return { token: undefined };
    throw invalid(
      `--admin-host ${adminHost} lets others reach the admin API: give --admin-token-file or WARMPATH_ADMIN_TOKEN`,
    );
  }
  const read = (text: string): string => checkedToken(text.trim(), `--admin-token-file ${path}`);
  const changed = (renewed: string): void => token.replace(renewed);
  const file = await followFiles({ files: { "admin-token-file": path }, read, changed, log });
  const token = new BearerToken(file.first);
  return { token, file };
}

function checkedToken(token: string, source: string): string {
  if (token.length >= SHORTEST_ADMIN_TOKEN && !/\s/.test(token)) return token;
  throw invalid(`${source} must hold one token of at least ${SHORTEST_ADMIN_TOKEN} characters`);
}

/** The engines' own key, which takes the place of whatever clients send. */
async function engineKey(
  { upstreamKeyFile: path }: GatewaySettings,
  log: Log,
): Promise<{ authorization: (() => string) | undefined; file?: FollowedFiles<string> }> {
  const given = ownUpstreamKey();
  if (path === undefined) {
    return { authorization: given === undefined ? undefined : () => `Bearer ${given}` };
  }
  const read = (text: string): string => {
    if (/^\S+$/.test(text.trim())) return text.trim();
    throw invalid(`--upstream-key-file ${path} must hold one key`);
  };
  let key = "";
  const changed = (renewed: string): void => void (key = renewed);
  const file = await followFiles({ files: { "upstream-key-file": path }, read, changed, log });
  key = file.first;
  return { authorization: () => `Bearer ${key}`, file };
}

/** The certificate to show to clients. Between the writes of its two files they do not belong together, and are not taken. */
async function followTls(
  { tlsCert, tlsKey }: GatewaySettings,
  log: Log,
  changed: (tls: TlsIdentity) => void,
): Promise<FollowedFiles<TlsIdentity> | undefined> {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) throw invalid("--tls-cert and --tls-key need each other");
  const read = (cert: string, key: string): TlsIdentity => {
    try {
      createSecureContext({ cert, key });
      return { cert, key };
    } catch (cause) {
      const { code = "not PEM" } = cause as NodeJS.ErrnoException;
      throw invalid(`--tls-cert ${tlsCert} and --tls-key ${tlsKey} cannot be used together (${code})`, cause);
    }
  };
  return await followFiles({ files: { "tls-cert": tlsCert, "tls-key": tlsKey }, read, changed, log });
}

function invalid(message: string, cause?: unknown): WarmpathError {
  return new WarmpathError("WP_INVALID_INPUT", message, { cause });
}

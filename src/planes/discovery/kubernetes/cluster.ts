import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { WarmpathError } from "../../../core/errors.ts";

/** Where a cluster's API answers and who asks; what is in files is read again for every question, since it is renewed. */
export interface ClusterAccess {
  readonly url: string;
  /** The namespace to look in where nobody says another. */
  namespace(): Promise<string>;
  /** Bearer token; undefined where the server wants none. */
  token?(): Promise<string>;
  /** Certificate authority of the server; undefined for those that the system trusts. */
  authority?(): Promise<string>;
}

/** Where every pod has what it needs to ask, unless its spec says otherwise. */
const SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";

/** The cluster that this process runs in, as a pod sees it; undefined outside of one. */
export function ownCluster(
  environment: Readonly<Record<string, string | undefined>>,
  folder: string = SERVICE_ACCOUNT_FOLDER,
): ClusterAccess | undefined {
  const host = environment["KUBERNETES_SERVICE_HOST"];
  if (host === undefined || host === "") return undefined;
  const port = environment["KUBERNETES_SERVICE_PORT"] ?? "443";
  const read = async (name: string): Promise<string> => {
    try {
      return (await readFile(join(folder, name), "utf8")).trim();
    } catch (cause) {
      const hint = "is automountServiceAccountToken off?";
      throw new WarmpathError("WP_INVALID_INPUT", `kubernetes: cannot read ${join(folder, name)}; ${hint}`, { cause });
    }
  };
  return {
    url: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    namespace: () => read("namespace"),
    token: () => read("token"),
    authority: () => read("ca.crt"),
  };
}

/** A server that asks for no token, such as `kubectl proxy`. */
export function openCluster(url: string): ClusterAccess {
  return { url: url.replace(/\/+$/, ""), namespace: () => Promise.resolve("default") };
}

/**
 * Secrets that commands take out of the environment: on a command line everybody on the machine could read them, and a
 * settings file gets copied. What is empty is not set.
 */
function secret(name: string): string | undefined {
  const value = process.env[name]?.trim();
  return value === "" ? undefined : value;
}

/** What clients of ours send to a gateway or an engine. */
export function ownApiKey(): string | undefined {
  return secret("WARMPATH_API_KEY");
}

/** What a gateway's admin API asks for, and what clients of ours send to it. */
export function ownAdminToken(): string | undefined {
  return secret("WARMPATH_ADMIN_TOKEN");
}

/** What a gateway sends to its engines. */
export function ownUpstreamKey(): string | undefined {
  return secret("WARMPATH_UPSTREAM_KEY");
}

/** The header that a secret is sent in; none without a secret. */
export function bearer(value: string | undefined): Readonly<Record<string, string>> {
  return value === undefined ? {} : { authorization: `Bearer ${value}` };
}

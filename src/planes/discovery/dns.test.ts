import { describe, expect, test } from "vitest";
import { DnsDiscovery, type DnsDiscoveryOptions } from "./dns.ts";

/** What is told of these services, and what is wrong with them. */
async function told(...services: readonly [host: string, port: number][]): Promise<string[]> {
  const records = services.map(([name, port]) => ({ name, port, priority: 0, weight: 0 }));
  const resolver = { resolveSrv: () => Promise.resolve(records) } as unknown as NonNullable<
    DnsDiscoveryOptions["resolver"]
  >;
  const heard: string[] = [];
  const watch = await new DnsDiscovery({ name: "_http._tcp.x", intervalMs: 1e6, resolver }).watch({
    appeared: ({ url }) => heard.push(url),
    changed: ({ url }) => heard.push(url),
    left: (name) => heard.push(`${name} left`),
    problem: (message) => heard.push(message),
  });
  // What has not changed is not told again.
  await watch.look?.();
  await watch.close();
  return heard;
}

describe("services behind a name", () => {
  test("are workers", async () => {
    expect(await told(["b", 2], ["a", 1])).toEqual(["http://a:1", "http://b:2"]);
  });

  test("are none where the name says so, by the root as their host", async () => {
    expect(await told(["", 0])).toEqual([]);
    expect(await told([".", 0])).toEqual([]);
  });

  test("that no URL can name are left out, and the others are not", async () => {
    expect(await told(["a b", 80], ["c", 1])).toEqual([
      "http://c:1",
      '_http._tcp.x: "http://a b:80" is no address of a worker; it is left out',
    ]);
  });
});

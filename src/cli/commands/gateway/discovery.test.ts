import { expect, test } from "vitest";
import { createDiscovery } from "./discovery.ts";

test.each(["dns:x:0", "dns:x:65536", "dns:x", "dns:x:http", "consul:x"])(
  "workers are not looked for by %s",
  (source) => {
    expect(() => createDiscovery([], source)).toThrow("--discover must be file:PATH, dns:NAME:PORT,");
  },
);

test("a port is any that there is", () => {
  expect(createDiscovery([], "dns:x:65535").planes).toHaveLength(2);
});

import { Command } from "commander";
import { expect, test } from "vitest";
import { addPageOptions, type PageFlags } from "./live-page.ts";

test.each(["http://host:8900", "http://host:8900/", "http://host:8900/admin", "http://host:8900/admin/workers"])(
  "%s is where the admin API is",
  (written) => {
    const command = addPageOptions(new Command()).parse(["--admin-url", written], { from: "user" });
    expect(command.opts<PageFlags>().adminUrl).toBe("http://host:8900");
  },
);

test("the page's port may be any, and must be one", () => {
  const port = (written: string): number | undefined =>
    addPageOptions(new Command()).parse(["--ui-port", written], { from: "user" }).opts<PageFlags>().uiPort;
  expect([port("0"), port("8081")]).toEqual([0, 8081]);
  for (const written of ["", "3.5", "-1", "65536", "http"]) expect(() => port(written)).toThrow("is no port");
});

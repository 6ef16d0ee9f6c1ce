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

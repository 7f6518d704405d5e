import { beforeAll, expect, test } from "bun:test";
import { createCommandLine } from "../testing/command-line.ts";

const { run } = createCommandLine();
const TEST = ["--mode", "test"];

beforeAll(async () => {
  await run(["migrate"]);
  await run(["accounts", "create", "acme"]);
  await run(["dmarc", "domains", "add", "shop.example", ...TEST]);
  await run(["dmarc", "domains", "verify", "shop.example", ...TEST]);
});

test("a policy is served, enforced only when asked twice, withdrawn and ended; each is in the audit log", async () => {
  const set = (...args: readonly string[]) => run(["dmarc", "mta-sts", "set", "shop.example", ...args, ...TEST]);
  const show = (...args: readonly string[]) => run(["dmarc", "mta-sts", "show", "shop.example", ...args, ...TEST]);
  expect((await show()).out).toContain("`postwarden dmarc mta-sts set shop.example testing` begins.");
  const begun = await set("testing");
  expect(begun.out).toContain("Mode: testing since");
  expect(begun.out).toMatch(/Publish: _mta-sts\.shop\.example {2}TXT {2}v=STSv1; id=[0-9a-f]{20};/);
  expect(begun.out).toContain("mx: mail.shop.example");
  expect(await set("enforce")).toMatchObject({ status: 1, err: expect.stringContaining("Tested for 0 of 14 days") });
  expect((await show("--json")).json).toMatchObject({ mode: "testing", mx: ["mail.shop.example"] });
  expect((await set("enforce", "--early")).out).toContain("Mode: enforce");
  expect(await set("off")).toMatchObject({ status: 1, err: expect.stringContaining("Withdraw it first") });
  expect((await set("none")).out).toContain("Serve it until");
  const { json } = await run(["audit", "--limit", "20", "--json"]);
  const done = (json.entries as Array<{ action: string; subject: string }>).filter(
    ({ action }) => action === "dmarc.mta-sts",
  );
  expect(done).toMatchObject([{ subject: "shop.example" }, {}, {}]);
});
